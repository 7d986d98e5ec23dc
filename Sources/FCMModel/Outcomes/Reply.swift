import GatewaySupport
package import NIOCore
import StrictJSON

/// An answer in one of the facades' protocols, ready to be sent to a client.
///
/// Each protocol has a writer: `LegacyReplyWriter`, `V1ReplyWriter`, `InstanceIDReplyWriter`, `GroupReplyWriter`.
package struct Reply: Sendable, Hashable {
    package static let json = "application/json; charset=UTF-8"
    static let emptyObject = Reply(ByteBuffer(string: "{}"))

    package let status: Int
    package let contentType: String
    /// The value of `Retry-After` in seconds. `nil` if the header must be missing.
    package let retryAfter: Int?
    package let body: ByteBuffer
    /// The code of the refusal, or of the first refused recipient, for logs.
    package var code: OutcomeCode?

    package init(
        status: Int = 200,
        contentType: String = Self.json,
        _ body: ByteBuffer,
        retryAfter: Int? = nil,
        code: OutcomeCode? = nil
    ) {
        self.status = status
        self.contentType = contentType
        self.retryAfter = retryAfter
        self.body = body
        self.code = code
    }

    /// Creates a reply that no client receives: what the gateway stores for itself.
    package init(bytes: [UInt8]) { self.init(ByteBuffer(bytes: bytes)) }

    package var bytes: [UInt8] { Array(self.body.readableBytesView) }

    init(status: Int = 200, json writer: consuming JSONWriter, retryAfter: Int? = nil, code: OutcomeCode? = nil) {
        self.init(status: status, writer.finish(), retryAfter: retryAfter, code: code)
    }

    /// Creates a reply with a JSON object of one text, and with a reason if one is given.
    init(
        status: Int = 200,
        member: StaticString,
        _ text: String,
        reason: String? = nil,
        retryAfter: Int? = nil,
        code: OutcomeCode? = nil
    ) {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member(member, text)
        if let reason { writer.member("reason", reason) }
        writer.endObject()
        self.init(status: status, json: writer, retryAfter: retryAfter, code: code)
    }

    init(status: Int, text: String, retryAfter: Int? = nil, code: OutcomeCode? = nil) {
        self.init(
            status: status,
            contentType: "text/plain; charset=UTF-8",
            ByteBuffer(string: text),
            retryAfter: retryAfter,
            code: code
        )
    }
}

extension Reply {
    /// The version of the stored layout. Increases when the layout changes.
    private static let version = 2

    /// The reply as it is stored for replays. The request's id and the tenant's remaining quotas belong to a single
    /// response and are not stored.
    package var storedBytes: [UInt8] {
        var writer = ByteWriter(reservingCapacity: 128 + self.body.readableBytes)
        writer.write(number: Self.version)
        writer.write(number: self.status)
        writer.write(text: self.contentType)
        writer.write(number: self.retryAfter ?? ByteReader.absent)
        writer.write(text: self.code?.rawValue)
        writer.write(rest: self.body.readableBytesView)
        return writer.bytes
    }

    /// Reads stored bytes. Returns `nil` if the bytes are not a stored reply.
    package init?(storedBytes bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        guard reader.number() == Self.version, let status = reader.number(), (100...599).contains(status),
            let contentType = reader.text(), let retryAfter = reader.number(), let code = reader.optionalText()
        else { return nil }
        self.init(
            status: status,
            contentType: contentType,
            ByteBuffer(bytes: reader.rest),
            retryAfter: retryAfter == ByteReader.absent ? nil : retryAfter,
            code: code.flatMap(OutcomeCode.init(rawValue:))
        )
    }
}
