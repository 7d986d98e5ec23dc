import Foundation

/// Settles a v1 message that passed every check.
enum V1Settlement {
    /// Finds who receives a message, and the answer.
    ///
    /// - Parameters:
    ///   - message: the message.
    ///   - subscriptions: who receives messages to topics and conditions.
    ///   - groups: the device groups, whose keys stand where tokens do.
    ///   - registrations: which tokens are dead.
    ///   - now: the time that goes into message ids.
    /// - Returns: what the message leads to.
    static func settle(
        _ message: V1Message,
        subscriptions: Subscriptions,
        groups: GroupRegistry,
        registrations: Registrations,
        now: Date
    ) -> Settlement {
        switch message.target {
        case .device(let key) where groups.meaning(of: key) != .none:
            guard case .group(let group) = groups.meaning(of: key) else {
                let failure = V1Failure(scripted: "UNREGISTERED")
                return Self.settlement(message, answer: failure.answer, reason: "the device group is gone")
            }
            let delivery = GroupDelivery(to: group, isDryRun: message.isValidateOnly, now: now)
            // Neither an id nor counts: failed members are not to be seen.
            return Self.settlement(
                message,
                answer: .json("{}"),
                recipients: delivery.recipients,
                reason: delivery.reason
            )
        case .device(let token):
            if case .failed(let name) = registrations.script(of: token) {
                let failure = V1Failure(scripted: name)
                return Self.settlement(message, answer: failure.answer, reason: "refused recipient: \(name)")
            }
            return Self.settlement(message, to: [token], id: MessageID.device(at: now))
        case .topic(let name):
            return Self.settlement(message, to: subscriptions.tokens(of: name), id: String(MessageID.topic()))
        case .condition(let condition):
            let tokens = subscriptions.tokens(matching: condition)
            return Self.settlement(message, to: tokens, id: String(MessageID.topic()))
        }
    }

    private static func settlement(_ message: V1Message, to tokens: [String], id: String) -> Settlement {
        let id = message.isValidateOnly ? MessageID.dryRun : id
        let name = "projects/\(message.project)/messages/\(id)"
        return Self.settlement(
            message,
            answer: .json(#"{"name":\#(JSONValue.quoted(name))}"#),
            recipients: message.isValidateOnly ? [] : tokens.map { Recipient(token: $0, messageID: id) }
        )
    }

    private static func settlement(
        _ message: V1Message,
        answer: Answer,
        recipients: [Recipient] = [],
        reason: String? = nil
    ) -> Settlement {
        var topic: String?
        var condition: String?
        switch message.target {
        case .device: break
        case .topic(let name): topic = name
        case .condition(let evaluator): condition = evaluator.canonical
        }
        return Settlement(
            answer: answer,
            recipients: recipients,
            topic: topic,
            condition: condition,
            content: message.content,
            reason: reason,
            notes: message.notes
        )
    }
}
