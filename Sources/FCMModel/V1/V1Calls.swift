package import NIOCore
import StrictJSON

/// The `messages:send` calls of v1 for one message: one for each recipient, in order, including repeated ones
/// (TR-FANOUT).
///
/// All calls share one body except for the member that names the target, since v1 has no lists (http-v1, section 3).
/// Every message can be expressed: v1 has every kind of target, and every field has its place or is dropped by the
/// translation page.
package struct V1Calls: Sendable {
    private static let sending = ByteBuffer(string: #"{"message":{"#)
    private static let validating = ByteBuffer(string: #"{"validate_only":true,"message":{"#)

    private let target: Target
    /// The body's bytes before the member that names the target.
    private let prefix: ByteBuffer
    /// The bytes after it, to the end.
    private let suffix: ByteBuffer

    /// The calls of a message. The target of a legacy request is its ``LegacySendRequest/sentTarget``. The time to live
    /// starts at `now`, in seconds since 1970 (TR-TTL).
    package init(_ message: Message, to target: Target, now: Int) {
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
            // The target comes first, so a comma replaces the brace.
            suffix.setInteger(UInt8(ascii: ","), at: suffix.readerIndex)
            suffix.writeInteger(UInt8(ascii: "}"))
        }
        self.target = target
        self.prefix = message.dryRun ? Self.validating : Self.sending
        self.suffix = suffix
    }

    package var count: Int { self.target.recipientCount }

    /// The body of the call at an index below ``count``. Built on each call.
    package func body(at index: Int) -> ByteBuffer {
        precondition((0..<self.count).contains(index), "there are \(self.count) calls, and none at \(index)")
        return switch self.target {
        // A device group's key replaces a token.
        case .token(let text), .notificationKey(let text): self.body("token", text)
        case .tokens(let tokens): self.body("token", tokens[index])
        case .installation(let id): self.body("fid", id)
        case .installations(let ids): self.body("fid", ids[index])
        case .topic(let topic): self.body("topic", topic.text)
        case .condition(let condition): self.body("condition", condition.canonical)
        case .deviceGroup: preconditionFailure("messages to a device group need its key, not its name")
        }
    }

    private func body(_ key: StaticString, _ text: String) -> ByteBuffer {
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

    /// Writes a text as JSON. Tokens need no escapes, so they are copied.
    private static func write(_ text: String, to body: inout ByteBuffer) {
        if Self.needsEscape(text) {
            var writer = JSONWriter()
            writer.string(text)
            body.writeImmutableBuffer(writer.finish())
        } else {
            body.writeInteger(UInt8(ascii: "\""))
            body.writeString(text)
            body.writeInteger(UInt8(ascii: "\""))
        }
    }

    private static func needsEscape(_ text: String) -> Bool {
        let bytes = text.utf8.span
        for index in bytes.indices {
            let byte = bytes[index]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return true }
        }
        return false
    }
}
