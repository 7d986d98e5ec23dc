package import NIOCore
import StrictJSON

/// The body of a `messages:send` call but for its target: written once, shared by all calls of a fan-out.
///
/// A body is ``prefix``, the member that names the target, ``suffix``.
package struct V1BodyTemplate: Sendable, Hashable {
    /// What stands before the target.
    package let prefix: ByteBuffer
    /// What stands after it, to the end of the body.
    package let suffix: ByteBuffer

    private static let sending = ByteBuffer(string: #"{"message":{"#)
    private static let validating = ByteBuffer(string: #"{"validate_only":true,"message":{"#)

    /// A template around the members of a message.
    ///
    /// - Parameters:
    ///   - members: all but the target, as one JSON object without blanks.
    ///   - dryRun: whether the message is only checked.
    init(members: ByteBuffer, dryRun: Bool) {
        self.prefix = dryRun ? Self.validating : Self.sending
        var suffix = members
        if suffix.readableBytes <= "{}".utf8.count {
            suffix = ByteBuffer(string: "}}")
        } else {
            // The target comes first, so that what began the object now follows a member.
            suffix.setInteger(UInt8(ascii: ","), at: suffix.readerIndex)
            suffix.writeInteger(UInt8(ascii: "}"))
        }
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
