import FCMModel
import NIOCore
import StrictJSON

/// The body of a change of a device group: `{"tokens": […]}`.
struct DeviceGroupBody {
    /// Different tokens, at their first positions; 1 to 20.
    let tokens: [String]

    /// Reads a body.
    ///
    /// - Throws: a problem with every field at fault; `group_too_large` for more tokens than a group can have.
    init(_ members: JSONMembers) throws(Refusal) {
        var problems = FieldProblems()
        var given: [String]?
        var isThere = false
        for member in members where !problems.isFull {
            guard member.keyEquals("tokens") else {
                problems.unknown(JSONPointer().appending(member.key))
                continue
            }
            isThere = true
            // A token may be listed several times.
            given = problems.strings(
                member.value,
                atMost: GroupChange.maxListedTokens,
                at: JSONPointer().appending("tokens")
            )
        }
        let pointer = JSONPointer().appending("tokens")
        if !isThere { problems.report(.invalidField, at: pointer, "This is needed: an array of registration tokens") }
        var tokens: [String] = []
        // By bytes: as texts, some that FCM tells apart are equal.
        var seen: Set<ByteBuffer> = []
        for (index, token) in (given ?? []).enumerated() {
            guard Self.isToken(token, at: pointer.appending(index), &problems) else { continue }
            if seen.insert(ByteBuffer(string: token)).inserted { tokens.append(token) }
        }
        if given?.isEmpty == true { problems.report(.invalidField, at: pointer, "This must not be empty") }
        if tokens.count > GroupChange.maxTokens {
            problems.report(.groupTooLarge, at: pointer, "This may hold \(GroupChange.maxTokens) different tokens")
        }
        guard problems.list.isEmpty else { throw Refusal(problems.list) }
        self.tokens = tokens
    }

    private static func isToken(
        _ token: String,
        at pointer: @autoclosure () -> JSONPointer,
        _ problems: inout FieldProblems
    ) -> Bool {
        if TopicName.hasLegacyPrefix(token) {
            problems.report(.invalidField, at: pointer(), "This is a topic, not a device")
        } else if token.utf8.count > RegistrationToken.maxBytes {
            problems.report(.invalidToken, at: pointer(), "This is too long for a registration token")
        } else {
            return true
        }
        return false
    }
}
