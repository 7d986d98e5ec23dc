import Foundation

/// A device that receives a message, and the message's id there.
struct Recipient: Sendable, Equatable {
    let token: String
    let messageID: String
}

/// The outcome of an accepted message, for either protocol.
struct Settlement: Sendable, Equatable {
    let message: AcceptedMessage
    let answer: Answer
    var recipients: [Recipient] = []
    /// The reason why recipients failed; `nil` if none did.
    var reason: String?
}

// MARK: The legacy protocol

extension Settlement {
    /// A result per device, or one id for a topic or condition.
    static func legacy(
        _ message: AcceptedMessage,
        format: LegacyFormat,
        subscriptions: Subscriptions,
        groups: GroupRegistry,
        registrations: Registrations,
        now: Date
    ) -> Self {
        let answers = LegacyAnswers(format: format)
        func toDevices(_ tokens: [String], isSingle: Bool) -> Self {
            let results = tokens.map { self.result(for: $0, registrations, isDryRun: message.isDryRun, now: now) }
            var recipients: [Recipient] = []
            var failures: Set<String> = []
            for (token, result) in zip(tokens, results) {
                switch result {
                case .accepted(let messageID, _): recipients.append(Recipient(token: token, messageID: messageID))
                case .failed(let name): failures.insert(name)
                }
            }
            return Self(
                message: message,
                answer: answers.devices(results, isSingle: isSingle, multicastID: .random()),
                recipients: message.isDryRun ? [] : recipients,
                reason: failures.isEmpty ? nil : "refused recipients: " + failures.sorted().joined(separator: ", ")
            )
        }
        func toSubscribers(_ tokens: [String]) -> Self {
            let id = MessageID.topic()
            return Self(
                message: message,
                answer: answers.topic(messageID: id),
                recipients: message.isDryRun ? [] : tokens.map { Recipient(token: $0, messageID: String(id)) }
            )
        }
        switch message.target {
        case .device(let token):
            switch groups.meaning(of: token) {
            case .none: return toDevices([token], isSingle: true)
            case .group(let group): return .legacy(message, to: group, format: format, now: now)
            case .dead:
                let result = RecipientResult.failed(LegacyErrorName.notRegistered.rawValue)
                let answer = answers.devices([result], isSingle: true, multicastID: .random())
                return Self(message: message, answer: answer, reason: "the device group was deleted")
            }
        case .devices(let tokens): return toDevices(tokens, isSingle: false)
        case .topic(let name): return toSubscribers(subscriptions.tokens(of: name))
        case .condition(let condition): return toSubscribers(subscriptions.tokens(matching: condition))
        }
    }

    private static func legacy(
        _ message: AcceptedMessage,
        to group: GroupRegistry.Group,
        format: LegacyFormat,
        now: Date
    ) -> Self {
        let (accepted, failed) = group.settle(at: now)
        let answer: Answer
        switch format {
        case .form: answer = .text(accepted.isEmpty ? "Error=Unavailable" : "id=0")
        case .json:
            let counts = #""success":\#(accepted.count),"failure":\#(failed.count)"#
            let names = failed.map(JSONValue.quoted).joined(separator: ",")
            answer = .json("{\(counts)" + (failed.isEmpty ? "}" : #","failed_registration_ids":[\#(names)]}"#))
        }
        return Self(
            message: message,
            answer: answer,
            recipients: message.isDryRun ? [] : accepted,
            reason: self.reason(failed)
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

    /// The reason for the journal; `nil` if all members of a group are reached.
    private static func reason(_ failed: [String]) -> String? {
        failed.isEmpty ? nil : "it fails for \(failed.count) of the group's members"
    }
}

// MARK: HTTP v1

extension Settlement {
    /// One name, or one failure.
    static func v1(
        _ message: AcceptedMessage,
        project: String,
        subscriptions: Subscriptions,
        groups: GroupRegistry,
        registrations: Registrations,
        now: Date
    ) -> Self {
        func accepted(_ tokens: [String], id: String) -> Self {
            let id = message.isDryRun ? MessageID.dryRun : id
            let name = "projects/\(project)/messages/\(id)"
            return Self(
                message: message,
                answer: .json(#"{"name":\#(JSONValue.quoted(name))}"#),
                recipients: message.isDryRun ? [] : tokens.map { Recipient(token: $0, messageID: id) }
            )
        }
        func refused(_ name: String, _ reason: String) -> Self {
            Self(message: message, answer: V1Failure(scripted: name).answer, reason: reason)
        }
        switch message.target {
        case .device(let token):
            switch groups.meaning(of: token) {
            case .dead: return refused("UNREGISTERED", "the device group was deleted")
            case .group(let group):
                let (accepted, failed) = group.settle(at: now)
                // Neither an id nor counts: the answer hides failed members.
                return Self(
                    message: message,
                    answer: .json("{}"),
                    recipients: message.isDryRun ? [] : accepted,
                    reason: self.reason(failed)
                )
            case .none:
                if case .failed(let name) = registrations.script(of: token) {
                    return refused(name, "refused recipient: \(name)")
                }
                return accepted([token], id: MessageID.device(at: now))
            }
        case .devices(let tokens): preconditionFailure("v1 addresses one device, not \(tokens.count)")
        case .topic(let name): return accepted(subscriptions.tokens(of: name), id: String(MessageID.topic()))
        case .condition(let condition):
            return accepted(subscriptions.tokens(matching: condition), id: String(MessageID.topic()))
        }
    }
}

extension GroupRegistry.Group {
    /// Returns the members that a message reaches, and those that it fails for.
    fileprivate func settle(at now: Date) -> (accepted: [Recipient], failed: [String]) {
        var accepted: [Recipient] = []
        var failed: [String] = []
        for member in self.members {
            switch TokenScript(token: member) {
            case .accepted: accepted.append(Recipient(token: member, messageID: MessageID.device(at: now)))
            case .failed: failed.append(member)
            }
        }
        return (accepted, failed)
    }
}

/// Message ids in FCM's shapes.
enum MessageID {
    /// FCM's answer to a dry run.
    static let dryRun = "fake_message_id"

    /// An id such as `0:1500415314455276%31bd1c9631bd1c96`: microseconds since 1970 and 16 hexadecimal digits.
    static func device(at time: Date) -> String {
        let micros = Int64(time.timeIntervalSince1970 * 1_000_000)
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        return "0:\(micros)%" + String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// An id of a topic message: a positive number of 63 bits.
    static func topic() -> Int64 {
        .random(in: 1 ... .max)
    }
}
