package import NIOCore
import StrictJSON

/// Reads and validates a JSON request to the legacy `/fcm/send`.
///
/// The checks run in the protocol page's order (L-ORDER), so that one request has one outcome: syntax, types of all
/// known fields, target, values, `time_to_live`, data keys, size.
package enum LegacyRequestDecoder {
    /// Decodes a body; the shape is set to the target's as soon as that is known, for the answer to a refusal.
    ///
    /// - Throws: the first failing check.
    package static func decode(
        _ body: ByteBuffer,
        shape: inout LegacyReply.Shape
    ) throws(Refusal) -> LegacySendRequest {
        let fields = try LegacyRequestFields(document: Self.parse(body))
        let (target, localErrors) = try Self.target(of: fields)
        shape = LegacyReply.Shape(target: target)

        var message = Message()
        message.priority = try Self.priority(of: fields)
        var notificationBytes = 0
        if let members = fields.notification {
            (message.notification, notificationBytes) = try LegacyNotificationDecoder.decode(members)
        }
        if let number = fields.timeToLive {
            guard let seconds = number.integer, ValueRules.isTimeToLive(seconds) else {
                throw .invalidTTL
            }
            message.timeToLive = seconds
        }
        message.collapseKey = fields.collapseKey
        message.contentAvailable = fields.contentAvailable
        message.mutableContent = fields.mutableContent
        message.restrictedPackageName = fields.restrictedPackageName
        message.dryRun = fields.dryRun

        if let members = fields.data {
            for member in members {
                let key = member.key
                guard !ValueRules.isRefusedDataKey(key) else { throw Refusal(.invalidDataKey) }
                guard !member.value.isNull else { continue }
                message.data.append(DataEntry(key: key, value: member.value.string ?? member.value.canonicalText))
            }
        }

        let dataBytes = message.data.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        let payloadBytes = dataBytes + notificationBytes
        guard payloadBytes <= target.maxPayloadBytes else {
            throw Refusal(.messageTooBig, "The payload has \(payloadBytes) bytes")
        }
        return LegacySendRequest(
            target: target,
            message: message,
            payloadBytes: payloadBytes,
            localErrors: localErrors
        )
    }

    /// Decodes a body whose refusal is not answered in the protocol's own shapes.
    ///
    /// - Throws: the first failing check.
    package static func decode(_ body: ByteBuffer) throws(Refusal) -> LegacySendRequest {
        var shape = LegacyReply.Shape.results(count: 1)
        return try Self.decode(body, shape: &shape)
    }

    private static func parse(_ body: ByteBuffer) throws(Refusal) -> JSONDocument {
        do {
            return try JSONDocument(parsing: body)
        } catch {
            throw Refusal(.malformedJSON, "\(error.reason) at position \(error.offset).")
        }
    }

    private static func target(
        of fields: LegacyRequestFields
    ) throws(Refusal) -> (Target, [Int: LegacyErrorName]) {
        let present = [fields.to != nil, fields.registrationIDs != nil, fields.condition != nil].count { $0 }
        guard present <= 1 else {
            throw Refusal(.invalidField, "Exactly one of to, registration_ids and condition is allowed")
        }
        if let to = fields.to {
            return (try Self.recipient(to), [:])
        }
        if let tokens = fields.registrationIDs {
            guard (1...Target.maxRecipients).contains(tokens.count) else {
                throw Refusal(.invalidField, "registration_ids must hold 1 to \(Target.maxRecipients) entries")
            }
            return (.tokens(tokens), Self.localErrors(in: tokens))
        }
        if let text = fields.condition {
            guard let condition = try? TopicCondition(parsing: text), condition.fits(.legacy) else {
                throw Refusal(.invalidField, "condition is not a valid topic expression")
            }
            return (.condition(condition), [:])
        }
        if let key = fields.notificationKey {
            return (.notificationKey(key), [:])
        }
        throw Refusal(.invalidTarget)
    }

    private static func recipient(_ to: String) throws(Refusal) -> Target {
        guard TopicName.hasLegacyPrefix(to) else { return .token(to) }
        let name = to.utf8.dropFirst(TopicName.legacyPrefix.utf8.count)
        guard let topic = TopicName(String(decoding: name, as: UTF8.self)) else {
            throw Refusal(.invalidField, "to holds an invalid topic name")
        }
        return .topic(topic)
    }

    private static func localErrors(in tokens: [String]) -> [Int: LegacyErrorName] {
        var errors: [Int: LegacyErrorName] = [:]
        for (index, token) in tokens.enumerated() {
            if token.isEmpty {
                errors[index] = .missingRegistration
            } else if TopicName.hasLegacyPrefix(token) {
                errors[index] = .invalidRegistration
            }
        }
        return errors
    }

    private static func priority(of fields: LegacyRequestFields) throws(Refusal) -> Message.Priority? {
        guard let text = fields.priority else { return nil }
        guard let priority = text.protocolWord.flatMap(Message.Priority.init) else {
            throw Refusal(.invalidField, "priority must be normal or high")
        }
        return priority
    }
}

extension Refusal {
    /// `InvalidTtl`, an invalid field among others.
    static var invalidTTL: Refusal { Refusal(.invalidField, legacyName: .invalidTTL) }
}
