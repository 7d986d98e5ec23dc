package import NIOCore
import StrictJSON

/// The format of a legacy request and of its answer.
package enum LegacyFormat: Sendable, Hashable {
    case json
    /// `application/x-www-form-urlencoded`. The answer is lines of text.
    case form

    /// Selects the format by a request's media type (L-CT). `application/json`, in any letter case and with any
    /// parameters, means JSON. Anything else means a form.
    package init(contentType: String?) {
        var mediaType = (contentType ?? "").prefix { $0 != ";" }.drop(while: \.isWhitespace)
        while let last = mediaType.last, last.isWhitespace { mediaType.removeLast() }
        self = mediaType.lowercased() == "application/json" ? .json : .form
    }
}

/// A valid request to the legacy `/fcm/send`.
package struct LegacySendRequest: Sendable, Hashable {
    /// The target. A group's key in `to` looks like a token, and is read as a token.
    package var target: Target
    package var message: Message
    /// The size in bytes of the payload as the caller wrote it (L-SIZE).
    package var payloadBytes: Int
    /// The errors of entries of `registration_ids` that fail without being sent, by index. An entry fails if it is
    /// empty (L-EMPTYID), a topic (L-TOPICINLIST), or beyond a token's bounds.
    package var localErrors: [Int: LegacyErrorName] = [:]

    /// The target without the entries that fail locally (TR-FANOUT). `nil` if no entry is left.
    package var sentTarget: Target? {
        guard !self.localErrors.isEmpty, case .tokens(let tokens) = self.target else { return self.target }
        let sent = tokens.indices.filter { self.localErrors[$0] == nil }.map { tokens[$0] }
        return sent.isEmpty ? nil : .tokens(sent)
    }

    func checkingSize() throws(Refusal) -> LegacySendRequest {
        guard self.payloadBytes <= self.target.maxPayloadBytes else {
            throw Refusal(.messageTooBig, "The payload has \(self.payloadBytes) bytes")
        }
        return self
    }
}

/// Reads and validates a JSON request to the legacy `/fcm/send`.
///
/// The checks run in the order of the protocol page (L-ORDER): syntax, types of all known fields, target, values,
/// `time_to_live`, data keys, size. The fixed order gives each request a single outcome.
package enum LegacyRequestDecoder {
    /// Decodes a body. Sets `shape` as soon as the target is known, so that a later refusal is answered in this shape.
    package static func decode(
        _ body: ByteBuffer,
        shape: inout LegacyReplyWriter.Shape
    ) throws(Refusal) -> LegacySendRequest {
        let fields = try Fields(body)
        let (target, localErrors) = try fields.target()
        shape = LegacyReplyWriter.Shape(target: target)

        var message = fields.message
        var payloadBytes = 0
        message.priority = try fields.checkedPriority()
        if let members = fields.notification {
            (message.notification, payloadBytes) = try NotificationDecoder.decode(members)
        }
        message.timeToLive = try fields.checkedTimeToLive()
        if let members = fields.data {
            for member in members {
                let key = member.key
                guard !ValueRules.isRefusedDataKey(key) else { throw Refusal(.invalidDataKey) }
                guard !member.value.isNull else { continue }
                let entry = DataEntry(key: key, value: member.value.string ?? member.value.canonicalText)
                payloadBytes += entry.payloadBytes
                message.data.append(entry)
            }
        }
        return try LegacySendRequest(
            target: target,
            message: message,
            payloadBytes: payloadBytes,
            localErrors: localErrors
        )
        .checkingSize()
    }

    /// Decodes a body for a caller that does not answer a refusal in the protocol's own shapes.
    package static func decode(_ body: ByteBuffer) throws(Refusal) -> LegacySendRequest {
        var shape = LegacyReplyWriter.Shape.results(count: 1)
        return try Self.decode(body, shape: &shape)
    }
}

extension LegacyRequestDecoder {
    /// The members of a legacy request. Only their types have been checked.
    ///
    /// `null` and empty texts count as absent (L-NULL, L-EMPTY). Unknown members and `delay_while_idle` are ignored
    /// (L-UNKNOWN, L-DWI).
    private struct Fields {
        private var to: String?
        private var registrationIDs: [String]?
        private var condition: String?
        private var notificationKey: String?
        private var priority: String?
        private var timeToLive: JSONNumber?
        private(set) var data: JSONMembers?
        private(set) var notification: JSONMembers?
        private(set) var message = Message()

        init(_ body: ByteBuffer) throws(Refusal) {
            let root: JSONValue
            do {
                root = try JSONDocument(parsing: body).root
            } catch {
                throw Refusal(.malformedJSON, "\(error.reason) at position \(error.offset).")
            }
            guard let members = root.members else { throw Refusal(.malformedJSON, "The request must be a JSON object") }
            for member in members where !member.value.isNull {
                try self.read(member)
            }
        }

        private mutating func read(_ member: JSONMember) throws(Refusal) {
            switch member.key.protocolWord {
            case "to": self.to = try member.text()
            case "registration_ids":
                guard let texts = member.value.texts else { throw member.refusal("an array of strings") }
                self.registrationIDs = texts
            case "condition": self.condition = try member.text()
            case "notification_key": self.notificationKey = try member.text()
            case "collapse_key": self.message.collapseKey = try member.text()
            case "priority": self.priority = try member.text()
            case "content_available": self.message.contentAvailable = try member.flag()
            case "mutable_content": self.message.mutableContent = try member.flag()
            case "time_to_live":
                guard let number = member.value.number else { throw member.refusal("a number") }
                self.timeToLive = number
            case "restricted_package_name": self.message.restrictedPackageName = try member.text()
            case "dry_run": self.message.dryRun = try member.flag()
            case "data": self.data = try member.object()
            case "notification":
                let members = try member.object()
                for member in members where !member.value.isNull {
                    try NotificationDecoder.checkType(of: member)
                }
                self.notification = members
            default: break
            }
        }

        func target() throws(Refusal) -> (Target, [Int: LegacyErrorName]) {
            guard [self.to != nil, self.registrationIDs != nil, self.condition != nil].count(where: { $0 }) <= 1 else {
                throw Refusal(.invalidField, "At most one of to, registration_ids and condition is allowed")
            }
            if let to = self.to {
                guard TopicName.hasLegacyPrefix(to) else { return (.token(to), [:]) }
                guard let topic = TopicName(legacy: to) else {
                    throw Refusal(.invalidField, "to holds an invalid topic name")
                }
                return (.topic(topic), [:])
            }
            if let tokens = self.registrationIDs {
                guard (1...Target.maxRecipients).contains(tokens.count) else {
                    throw Refusal(.invalidField, "registration_ids must hold 1 to \(Target.maxRecipients) entries")
                }
                return (.tokens(tokens), Self.localErrors(in: tokens))
            }
            if let text = self.condition {
                guard let condition = try? TopicCondition(parsing: text), condition.fits(.legacy) else {
                    throw Refusal(.invalidField, "condition is not a valid topic expression")
                }
                return (.condition(condition), [:])
            }
            if let key = self.notificationKey { return (.notificationKey(key), [:]) }
            throw Refusal(.invalidTarget)
        }

        private static func localErrors(in tokens: [String]) -> [Int: LegacyErrorName] {
            var errors: [Int: LegacyErrorName] = [:]
            for (index, token) in tokens.enumerated() {
                if token.isEmpty {
                    errors[index] = .missingRegistration
                } else if TopicName.hasLegacyPrefix(token) || !RegistrationToken.isWithinBounds(token) {
                    errors[index] = .invalidRegistration
                }
            }
            return errors
        }

        func checkedPriority() throws(Refusal) -> Message.Priority? {
            guard let text = self.priority else { return nil }
            guard let priority = text.protocolWord.flatMap(Message.Priority.init) else {
                throw Refusal(.invalidField, "priority must be normal or high")
            }
            return priority
        }

        func checkedTimeToLive() throws(Refusal) -> Int? {
            guard let number = self.timeToLive else { return nil }
            guard let seconds = number.integer, ValueRules.isTimeToLive(seconds) else { throw .invalidTTL }
            return seconds
        }
    }

    private enum NotificationDecoder {
        private static let badge = "badge"
        private static let locArgs: Set<String> = ["title_loc_args", "body_loc_args"]

        /// Checks the JSON type of a known key. Unknown keys may have any type.
        static func checkType(of member: JSONMember) throws(Refusal) {
            guard let key = member.key.protocolWord else { return }
            let kind = member.value.kind
            if NotificationKey(rawValue: key) != nil {
                guard kind == .string else { throw member.refusal("a string") }
            } else if key == Self.badge {
                guard kind == .string || kind == .number else { throw member.refusal("a string or an integer") }
            } else if Self.locArgs.contains(key) {
                guard kind == .string || kind == .array else {
                    throw member.refusal("an array or a string that holds one")
                }
            }
        }

        /// Decodes members whose types have been checked. Returns the notification and its size in bytes as written
        /// (L-SIZE). The notification is `nil` if no known key is set.
        static func decode(_ members: JSONMembers) throws(Refusal) -> (Notification?, bytes: Int) {
            var notification = Notification()
            var bytes = 0
            for member in members where !member.value.isNull {
                guard let name = member.key.protocolWord else { continue }
                let known = NotificationKey(rawValue: name)
                guard known != nil || name == Self.badge || Self.locArgs.contains(name) else { continue }
                let written = member.value.string ?? member.value.canonicalText
                guard !written.isEmpty else { continue }
                if let known {
                    if known == .color, !ValueRules.isColor(written) {
                        throw Refusal(.invalidField, "color must be # and six hexadecimal digits")
                    }
                    notification[known] = written
                } else if name == Self.badge {
                    notification.badge = try Self.badge(member.value, written)
                } else if name == "title_loc_args" {
                    notification.titleLocArgs = try Self.arguments(member.value, written, key: name)
                } else {
                    notification.bodyLocArgs = try Self.arguments(member.value, written, key: name)
                }
                bytes += name.utf8.count + written.utf8.count
            }
            return (notification.isEmpty ? nil : notification, bytes)
        }

        private static func badge(_ value: JSONValue, _ written: String) throws(Refusal) -> Int {
            let badge: Int? =
                if value.kind == .string {
                    ValueRules.badge(fromDigits: written)
                } else if let number = value.number, number.isPlainInteger {
                    number.integer
                } else {
                    nil
                }
            guard let badge, (0...ValueRules.maxBadge).contains(badge) else {
                throw Refusal(.invalidField, "badge must be an integer from 0 to \(ValueRules.maxBadge)")
            }
            return badge
        }

        /// Reads a list from a JSON array, or from a string that contains a JSON array (L-LOCARGS).
        private static func arguments(_ value: JSONValue, _ written: String, key: String) throws(Refusal) -> [String] {
            let refusal = Refusal(.invalidField, "\(key) must be a JSON array of texts")
            let elements =
                value.kind == .string
                ? (try? JSONDocument(parsing: ByteBuffer(string: written)))?.root.elements : value.elements
            guard let elements else { throw refusal }
            var arguments: [String] = []
            for element in elements {
                switch element.kind {
                case .string, .number, .bool:
                    arguments.append(element.string ?? element.number?.text ?? element.canonicalText)
                case .null, .array, .object:
                    throw refusal
                }
            }
            return arguments
        }
    }
}

/// Readers of a member's value, with errors in the legacy protocol's words. The errors contain the member's name. Only
/// members with known names are read this way, so no error repeats a caller's text.
extension JSONMember {
    /// Returns the text. Returns `nil` for the empty text, which counts as absent.
    func text() throws(Refusal) -> String? {
        guard let text = self.value.string else { throw self.refusal("a string") }
        return text.isEmpty ? nil : text
    }

    fileprivate func flag() throws(Refusal) -> Bool {
        guard let flag = self.value.bool else { throw self.refusal("a boolean") }
        return flag
    }

    fileprivate func object() throws(Refusal) -> JSONMembers {
        guard let members = self.value.members else { throw self.refusal("an object") }
        return members
    }

    func refusal(_ demand: String) -> Refusal { Refusal(.invalidField, "\(self.key) must be \(demand)") }
}

extension JSONValue {
    /// The elements of a list of strings. `nil` for any other value.
    var texts: [String]? {
        guard let elements = self.elements else { return nil }
        var texts: [String] = []
        texts.reserveCapacity(elements.count)
        for element in elements {
            guard let text = element.string else { return nil }
            texts.append(text)
        }
        return texts
    }
}

extension Refusal {
    static var invalidTTL: Refusal { Refusal(.invalidField, legacyName: .invalidTTL) }
}

/// Writes a message as the JSON body of a legacy `/fcm/send`, in canonical form.
///
/// Leaves out absent members and flags that are not set. Members with the protocol's type "string", such as `badge` and
/// `*_loc_args`, are always strings.
package enum LegacyRequestEncoder {
    /// The reason that a message can't be sent by the legacy protocol.
    package enum Inexpressible: Error, Sendable, Hashable {
        case installationTarget
        case condition
        /// The message is in v1's own form and must be translated first.
        case passThrough
    }

    package static func encode(_ message: Message, to target: Target) throws(Inexpressible) -> ByteBuffer {
        guard message.passThrough == nil, message.platforms == nil else { throw .passThrough }
        var writer = JSONWriter(reservingCapacity: 320 + target.recipientCount * 192)
        writer.beginObject()
        try Self.write(target, to: &writer)
        Self.writeOptions(of: message, to: &writer)
        if let notification = message.notification, !notification.isEmpty {
            Self.write(notification, to: &writer)
        }
        writer.data(of: message)
        writer.endObject()
        return writer.finish()
    }

    private static func write(_ target: Target, to writer: inout JSONWriter) throws(Inexpressible) {
        switch target {
        case .token(let token), .notificationKey(let token):
            writer.member("to", token)
        case .tokens(let tokens):
            writer.member("registration_ids", tokens)
        case .topic(let topic):
            writer.member("to", TopicName.legacyPrefix + topic.text)
        case .condition(let condition):
            guard condition.fits(.legacy) else { throw .condition }
            writer.member("condition", condition.canonical)
        case .installation, .installations, .deviceGroup:
            throw .installationTarget
        }
    }

    private static func writeOptions(of message: Message, to writer: inout JSONWriter) {
        if let collapseKey = message.collapseKey { writer.member("collapse_key", collapseKey) }
        if let priority = message.priority { writer.member("priority", priority.rawValue) }
        if message.contentAvailable { writer.member("content_available", true) }
        if message.mutableContent { writer.member("mutable_content", true) }
        if let timeToLive = message.timeToLive { writer.member("time_to_live", timeToLive) }
        if let package = message.restrictedPackageName { writer.member("restricted_package_name", package) }
        if message.dryRun { writer.member("dry_run", true) }
    }

    private static func write(_ notification: Notification, to writer: inout JSONWriter) {
        writer.beginObject("notification")
        for text in notification.texts {
            writer.key(text.key.rawValue)
            writer.string(text.value)
        }
        if let badge = notification.badge { writer.member("badge", String(badge)) }
        if let arguments = notification.titleLocArgs {
            writer.member("title_loc_args", Self.compactJSON(arguments))
        }
        if let arguments = notification.bodyLocArgs {
            writer.member("body_loc_args", Self.compactJSON(arguments))
        }
        writer.endObject()
    }

    /// A list of strings as JSON without blanks. Legacy FCM expects `*_loc_args` in this form.
    private static func compactJSON(_ strings: [String]) -> String {
        var writer = JSONWriter()
        writer.beginArray()
        for string in strings {
            writer.string(string)
        }
        writer.endArray()
        return String(buffer: writer.finish())
    }
}
