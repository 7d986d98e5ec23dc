package import NIOCore
import StrictJSON

/// A message in the words of a caller of HTTP v1, without its target (V-FACADE: it is forwarded with nothing added).
package struct V1Verbatim: Sendable, Hashable {
    /// The message's members as one JSON object without blanks: order, spelling of names and numbers as the caller had
    /// them.
    package let members: ByteBuffer

    /// Takes a checked message over.
    ///
    /// - Parameters:
    ///   - message: an object; members of the target's group and `null` are left out.
    ///   - maxBytes: more than what is written, such as the length of the text.
    init(_ message: JSONMembers, maxBytes: Int) {
        var writer = JSONWriter(reservingCapacity: maxBytes)
        writer.beginObject()
        for member in message where !member.value.isNull {
            let key = member.key
            if Self.targetKeys.contains(key) { continue }
            writer.key(key)
            writer.value(member.value)
        }
        writer.endObject()
        self.members = writer.finish()
    }

    /// None of these has a second spelling.
    private static let targetKeys: Set<String> = ["token", "fid", "topic", "condition"]
}
