import Foundation

/// What an accepted message leads to: the answer, and who receives it.
struct LegacySettlement {
    let answer: Answer
    let recipients: [Recipient]

    /// Why recipients failed; nil when none did.
    let reason: String?

    /// Settles a message with its recipients.
    ///
    /// - Parameters:
    ///   - message: a message that passed the checks.
    ///   - format: the encoding of the request, and so of the answer.
    ///   - subscriptions: who receives messages to topics and conditions.
    ///   - groups: the device groups, whose keys stand where tokens do.
    ///   - registrations: which tokens are dead, and which have a canonical one.
    ///   - now: the time that goes into message ids.
    init(
        _ message: LegacyMessage,
        format: LegacyFormat,
        subscriptions: Subscriptions,
        groups: GroupRegistry,
        registrations: Registrations,
        now: Date
    ) {
        switch message.target {
        case .device(let token):
            switch groups.meaning(of: token) {
            case .group(let group):
                self.init(GroupDelivery(to: group, isDryRun: message.isDryRun, now: now), format: format)
            case .dead:
                self.init(deadGroupFor: format)
            case .none:
                self.init([token], registrations, isSingle: true, message: message, format: format, now: now)
            }
        case .devices(let tokens):
            self.init(tokens, registrations, isSingle: false, message: message, format: format, now: now)
        case .topic(let name):
            self.init(subscribers: subscriptions.tokens(of: name), message: message, format: format)
        case .condition(let condition):
            self.init(subscribers: subscriptions.tokens(matching: condition), message: message, format: format)
        }
    }

    private init(
        _ tokens: [String],
        _ registrations: Registrations,
        isSingle: Bool,
        message: LegacyMessage,
        format: LegacyFormat,
        now: Date
    ) {
        var recipients: [Recipient] = []
        var failures: [String] = []
        let results = tokens.map { token in
            let result = Self.result(for: token, registrations, isDryRun: message.isDryRun, now: now)
            switch result {
            case .accepted(let messageID, _):
                recipients.append(Recipient(token: token, messageID: messageID))
            case .failed(let name):
                failures.append(name)
            }
            return result
        }
        self.answer = LegacyAnswers(format: format).devices(results, isSingle: isSingle, multicastID: .random())
        self.recipients = message.isDryRun ? [] : recipients
        self.reason = failures.isEmpty ? nil : "refused recipients: " + Set(failures).sorted().joined(separator: ", ")
    }

    private init(_ delivery: GroupDelivery, format: LegacyFormat) {
        switch format {
        case .json: self.answer = delivery.json
        case .form: self.answer = .text(delivery.accepted.isEmpty ? "Error=Unavailable" : "id=0")
        }
        self.recipients = delivery.recipients
        self.reason = delivery.reason
    }

    private init(deadGroupFor format: LegacyFormat) {
        let result = RecipientResult.failed(LegacyErrorName.notRegistered.rawValue)
        self.answer = LegacyAnswers(format: format).devices([result], isSingle: true, multicastID: .random())
        self.recipients = []
        self.reason = "the device group is gone"
    }

    private init(subscribers: [String], message: LegacyMessage, format: LegacyFormat) {
        let messageID = MessageID.topic()
        self.answer = LegacyAnswers(format: format).topic(messageID: messageID)
        self.recipients =
            message.isDryRun ? [] : subscribers.map { Recipient(token: $0, messageID: String(messageID)) }
        self.reason = nil
    }

    /// The same in the form both protocols share.
    func settlement(of message: LegacyMessage) -> Settlement {
        var topic: String?
        var condition: String?
        switch message.target {
        case .device, .devices: break
        case .topic(let name): topic = name
        case .condition(let evaluator): condition = evaluator.canonical
        }
        return Settlement(
            answer: self.answer,
            recipients: self.recipients,
            topic: topic,
            condition: condition,
            content: message.content,
            reason: self.reason,
            notes: message.notes
        )
    }

    private static func result(
        for token: String,
        _ registrations: Registrations,
        isDryRun: Bool,
        now: Date
    ) -> RecipientResult {
        guard !token.isEmpty else { return .failed(LegacyErrorName.missingRegistration.rawValue) }
        guard !token.hasPrefix(TopicName.prefix) else { return .failed(LegacyErrorName.invalidRegistration.rawValue) }
        switch registrations.script(of: token) {
        case .accepted(let canonical):
            let messageID = isDryRun ? MessageID.dryRun : MessageID.device(at: now)
            return .accepted(messageID: messageID, canonical: canonical)
        case .failed(let name):
            return .failed(name)
        }
    }
}
