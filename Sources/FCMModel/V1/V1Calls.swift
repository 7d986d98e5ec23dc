package import NIOCore
import StrictJSON

/// The `messages:send` calls of v1 for one message. There is one call for each recipient, in order, including repeated
/// recipients (TR-FANOUT).
///
/// v1 has no lists (http-v1, section 3), so the bodies of all calls differ only in the member that names the target. v1
/// can express every message: it has every kind of target, and the translation page maps or drops each field.
package struct V1Calls: Sendable {
    private static let sending = ByteBuffer(string: #"{"message":{"#)
    private static let validating = ByteBuffer(string: #"{"validate_only":true,"message":{"#)

    private let target: Target
    /// The body's bytes before the member that names the target.
    private let prefix: ByteBuffer
    /// The body's bytes after that member, to the end.
    private let suffix: ByteBuffer

    /// Creates the calls for a message. For a legacy request, the target is its ``LegacySendRequest/sentTarget``. The
    /// time to live starts at `now`, in seconds since 1970 (TR-TTL).
    package init(_ message: borrowing Message, to target: Target, now: Int) {
        var suffix: ByteBuffer
        if let members = message.passThrough {
            suffix = members
        } else {
            var writer = JSONWriter(reservingCapacity: 1_024)
            writer.beginObject()
            // The only copy. A message that is passed through needs none.
            V1MessageWriter(copy message, now: now).writeMembers(to: &writer)
            writer.endObject()
            let members = writer.finish()
            suffix = message.platforms?.applied(to: members) ?? members
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

    /// Returns the body of the call at an index below ``count``. Builds the body anew each time.
    package func body(at index: Int) -> ByteBuffer {
        precondition((0..<self.count).contains(index), "the index \(index) must be below \(self.count)")
        return switch self.target {
        // A device group's key takes the place of a token.
        case .token(let text), .notificationKey(let text): self.body(#""token":"#, text)
        case .tokens(let tokens): self.body(#""token":"#, tokens[index])
        case .installation(let id): self.body(#""fid":"#, id)
        case .installations(let ids): self.body(#""fid":"#, ids[index])
        case .topic(let topic): self.body(#""topic":"#, topic.text)
        case .condition(let condition): self.body(#""condition":"#, condition.canonical)
        case .deviceGroup: preconditionFailure("messages to a device group need its key, not its name")
        }
    }

    private func body(_ name: StaticString, _ text: String) -> ByteBuffer {
        let around = self.prefix.readableBytes + name.utf8CodeUnitCount + 2 + self.suffix.readableBytes
        var body = ByteBufferAllocator().buffer(capacity: around + text.utf8.count)
        body.writeImmutableBuffer(self.prefix)
        body.writeStaticString(name)
        body.writeJSONString(text)
        body.writeImmutableBuffer(self.suffix)
        return body
    }
}
