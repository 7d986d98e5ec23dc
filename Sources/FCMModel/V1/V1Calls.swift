package import NIOCore
import StrictJSON

/// The calls of v1's `messages:send` that one message becomes: one for each recipient, in order, repeated ones included
/// (TR-FANOUT).
package struct V1Calls: Sendable {
    private enum Recipients {
        case one(V1Recipient)
        case tokens([String])
        case installations([String])
    }

    private let template: V1BodyTemplate
    private let recipients: Recipients

    /// The calls of a message; the target of a legacy request is its ``LegacySendRequest/sentTarget``, now is in
    /// seconds since 1970.
    package init(_ message: Message, to target: Target, now: Int) {
        self.template = V1BodyTemplate(message, now: now)
        self.recipients =
            switch target {
            case .token(let token), .notificationKey(let token): .one(.token(token))
            case .tokens(let tokens): .tokens(tokens)
            case .installation(let id): .one(.installation(id))
            case .installations(let ids): .installations(ids)
            case .topic(let topic): .one(.topic(topic))
            case .condition(let condition): .one(.condition(condition))
            }
    }

    package var count: Int {
        switch self.recipients {
        case .one: 1
        case .tokens(let texts), .installations(let texts): texts.count
        }
    }

    /// The target of the call at an index below ``count``.
    package func recipient(at index: Int) -> V1Recipient {
        switch self.recipients {
        case .one(let recipient):
            precondition(index == 0, "there is one call, and none at \(index)")
            return recipient
        case .tokens(let tokens): return .token(tokens[index])
        case .installations(let ids): return .installation(ids[index])
        }
    }

    /// The body of the call at an index below ``count``, made anew each time.
    package func body(at index: Int) -> ByteBuffer {
        self.template.body(for: self.recipient(at: index))
    }
}

/// The target of one call: v1 has no lists (http-v1, section 3).
package enum V1Recipient: Sendable, Hashable {
    /// A registration token, or the notification key of a device group.
    case token(String)
    case installation(String)
    case topic(TopicName)
    case condition(TopicCondition)

    /// The member of the message that names the target.
    fileprivate var key: StaticString {
        switch self {
        case .token: "token"
        case .installation: "fid"
        case .topic: "topic"
        case .condition: "condition"
        }
    }

    fileprivate var text: String {
        switch self {
        case .token(let text), .installation(let text): text
        case .topic(let topic): topic.text
        case .condition(let condition): condition.canonical
        }
    }
}

/// The body of a call but for its target: written once, shared by all calls of a fan-out.
///
/// Nothing can be inexpressible: v1 knows every target, and every field has its place or is dropped where the
/// translation page says so.
package struct V1BodyTemplate: Sendable, Hashable {
    /// The bytes before the member that names the target.
    private let prefix: ByteBuffer
    /// The bytes after it, to the end of the body.
    private let suffix: ByteBuffer

    private static let sending = ByteBuffer(string: #"{"message":{"#)
    private static let validating = ByteBuffer(string: #"{"validate_only":true,"message":{"#)

    /// The bodies of a message; its time to live counts from now, in seconds since 1970 (TR-TTL).
    package init(_ message: Message, now: Int) {
        var suffix: ByteBuffer
        if let members = message.passThrough {
            suffix = members
        } else {
            var writer = JSONWriter(reservingCapacity: 1_024)
            writer.beginObject()
            V1MessageWriter(message, now: now).writeMembers(to: &writer)
            writer.endObject()
            suffix = writer.finish()
        }
        if suffix.readableBytes <= "{}".utf8.count {
            suffix = ByteBuffer(string: "}}")
        } else {
            // The target comes first, so that a comma takes the place of the brace.
            suffix.setInteger(UInt8(ascii: ","), at: suffix.readerIndex)
            suffix.writeInteger(UInt8(ascii: "}"))
        }
        self.prefix = message.dryRun ? Self.validating : Self.sending
        self.suffix = suffix
    }

    /// The body of the call to one recipient.
    package func body(for recipient: V1Recipient) -> ByteBuffer {
        let key = recipient.key
        let text = recipient.text
        var body = ByteBuffer()
        // Two pairs of quotes and a colon.
        let around = self.prefix.readableBytes + key.utf8CodeUnitCount + 5 + self.suffix.readableBytes
        body.reserveCapacity(around + text.utf8.count)
        body.writeImmutableBuffer(self.prefix)
        body.writeInteger(UInt8(ascii: "\""))
        body.writeStaticString(key)
        body.writeInteger(UInt8(ascii: "\""))
        body.writeInteger(UInt8(ascii: ":"))
        Self.write(text, to: &body)
        body.writeImmutableBuffer(self.suffix)
        return body
    }

    /// Writes a text as JSON; tokens need no escape, so that they are copied as they are.
    private static func write(_ text: String, to body: inout ByteBuffer) {
        let needsEscape = text.utf8.contains { byte in
            byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
        }
        if needsEscape {
            var writer = JSONWriter()
            writer.string(text)
            body.writeImmutableBuffer(writer.finish())
        } else {
            body.writeInteger(UInt8(ascii: "\""))
            body.writeString(text)
            body.writeInteger(UInt8(ascii: "\""))
        }
    }
}
