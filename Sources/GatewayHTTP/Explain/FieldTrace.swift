import FCMModel
import NIOCore
import StrictJSON

/// Where one field of a message ends up in the upstream's request.
package struct FieldTrace: Sendable, Hashable {
    /// The field as the caller wrote it (RFC 6901).
    package var pointer: String
    /// The members of the upstream's body that would be missing or different without the field; none for a field that
    /// is not sent.
    package var becomes: [String]

    /// Traces the fields of a message.
    ///
    /// Each field is left out in turn, and what that changes is what it becomes: so the traces can't differ from what is
    /// sent.
    static func all(of message: Message, to target: Target, by plan: UpstreamPlan) -> [FieldTrace] {
        guard let whole = plan.body(message, to: target).flatMap(Self.members(of:)) else { return [] }
        return MessageField.present(in: message)
            .map { field in
                let rest = plan.body(field.removed(from: message), to: target).flatMap(Self.members(of:)) ?? []
                let texts = Dictionary(rest.map { ($0.pointer, $0.text) }) { first, _ in first }
                return FieldTrace(
                    pointer: field.pointer,
                    becomes: whole.filter { texts[$0.pointer] != $0.text }.map(\.pointer)
                )
            }
    }

    /// A member that holds no further ones, or the caller's own pairs as a whole.
    private struct Leaf {
        var pointer: String
        var text: String
    }

    private static func members(of body: ByteBuffer) -> [Leaf]? {
        guard let root = (try? JSONDocument(parsing: body))?.root else { return nil }
        var leaves: [Leaf] = []
        Self.gather(root, at: JSONPointer(), into: &leaves)
        return leaves
    }

    private static func gather(_ value: JSONValue, at pointer: JSONPointer, into leaves: inout [Leaf]) {
        guard let members = value.members, !Self.dataPointers.contains(pointer.description) else {
            leaves.append(Leaf(pointer: pointer.description, text: value.canonicalText))
            return
        }
        for member in members {
            Self.gather(member.value, at: pointer.appending(member.key), into: &leaves)
        }
    }

    private static let dataPointers: Set<String> = ["/data", "/message/data"]
}
