import FCMModel
import StrictJSON

/// The body of a change of subscriptions, read and checked.
struct SubscriptionBody {
    /// The devices, in order and as often as they are named.
    let tokens: [String]

    /// Reads a body.
    ///
    /// - Throws: a problem with every field at fault.
    init(_ members: JSONMembers) throws(Refusal) {
        var problems = FieldProblems()
        var tokens: [String]?
        var isGiven = false
        for member in members where !problems.isFull {
            guard member.keyEquals("tokens") else {
                problems.unknown(JSONPointer().appending(member.key))
                continue
            }
            isGiven = true
            tokens = problems.registrations(member.value, at: JSONPointer().appending("tokens"))
        }
        if !isGiven {
            problems.report(.invalidField, at: JSONPointer().appending("tokens"), "This must be present")
        }
        guard let tokens, problems.list.isEmpty else { throw Refusal(problems.list) }
        self.tokens = tokens
    }
}

extension FieldProblems {
    fileprivate mutating func registrations(_ value: JSONValue, at pointer: JSONPointer) -> [String]? {
        guard let count = value.elements?.count, (1...Target.maxRecipients).contains(count) else {
            self.report(
                .invalidField,
                at: pointer,
                "This must be an array of 1 to \(Target.maxRecipients) registration tokens"
            )
            return nil
        }
        guard let texts = self.strings(value, at: pointer) else { return nil }
        for (index, text) in texts.enumerated() where !RegistrationToken.isPlausible(text) {
            self.report(.invalidToken, at: pointer.appending(index), "This is no registration token")
        }
        return texts
    }
}
