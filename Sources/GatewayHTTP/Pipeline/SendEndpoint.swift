import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// An endpoint that sends messages: REST's, the legacy protocol's, or v1's.
///
/// They differ in how a request is read and in how an outcome is told. Between the two a message takes one way, whether it
/// carries an idempotency key or not.
protocol SendEndpoint: Endpoint where Work == Sending<Writer> {
    /// Writes the answers to one request.
    associatedtype Writer: SendReplyWriter

    var sender: MessageSender { get }
}

/// Tells what became of a message in a protocol's words, without what belongs to one request alone.
protocol SendReplyWriter: Sendable {
    func response(to outcome: SendOutcome) -> HTTPServerResponse
    /// The answer to a request that was not looked at further, because of its idempotency key.
    func response(refusing refusal: Refusal) -> HTTPServerResponse
}

/// A message that was read.
struct Sending<Writer: SendReplyWriter>: Sendable {
    var command: SendCommand
    /// What the idempotency key protects; `nil` for a request without one.
    var keyed: KeyedRequest?
    var writer: Writer
}

/// What sends messages.
struct MessageSender: Sendable {
    let pipeline: SendPipeline
    let keyed: KeyedSends
}

extension SendEndpoint {
    func load(of work: Work) -> RequestLoad {
        .message(recipients: work.command.target.recipientCount, isUrgent: work.command.message.isUrgent)
    }

    func refuse(_ principal: Principal, lacking scope: Scope, _ exchange: Exchange) async -> Refusal {
        await self.sender.pipeline.refuse(principal, origin: exchange.origin)
    }

    @inline(__always)  // Into the pipeline, which spares an async frame.
    func perform(_ work: Work, for exchange: Exchange) async throws -> HTTPServerResponse {
        guard let keyed = work.keyed else {
            let outcome = await self.sender.pipeline.send(work.command)
            return self.response(to: outcome, work)
        }
        return await self.perform(work, once: keyed, for: exchange)
    }

    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller, which is allocated.
    private func response(to outcome: SendOutcome, _ work: Work) -> HTTPServerResponse {
        var response = work.writer.response(to: outcome)
        response.headers.append(outcome.quotas)
        return response
    }

    /// Sends a message unless its key was used before.
    private func perform(_ work: Work, once keyed: KeyedRequest, for exchange: Exchange) async -> HTTPServerResponse {
        let writer = work.writer
        let answer = await self.sender.keyed.send(
            work.command,
            once: keyed,
            on: EventLoopTaskExecutor(eventLoop: exchange.request.connection.eventLoop),
            render: { StoredAnswer(writer.response(to: $0)).bytes }
        )
        switch answer {
        case .sent(let outcome, let bytes):
            var response = StoredAnswer(bytes)?.response ?? Refusal(.internalError).response
            response.headers.append(outcome.quotas)
            return response
        case .replayed(let bytes):
            guard var response = StoredAnswer(bytes)?.response else {
                let refusal = Refusal(.outcomeUnknown, "The kept answer can't be read")
                return writer.response(refusing: refusal)
            }
            response.headers.append(.idempotentReplayed, "true")
            return response
        case .refused(let refusal):
            return writer.response(refusing: refusal)
        }
    }
}

/// An answer as repeats of its request get it: status, the fields that belong to its content, and the body; for logs, its
/// code as well.
///
/// What belongs to one request alone, its id and what is left of quotas, is no part of it.
struct StoredAnswer {
    /// Rises when the layout changes.
    private static let version: UInt8 = 2
    /// The layout before answers had their code; such answers may be kept yet.
    private static let versionWithoutCode: UInt8 = 1

    let response: HTTPServerResponse

    /// An answer that was given.
    init(_ response: HTTPServerResponse) {
        self.response = response
    }

    /// The answer of some bytes; `nil` for bytes that no answer has.
    init?(_ bytes: [UInt8]) {
        var buffer = ByteBuffer(bytes: bytes)
        guard let version = buffer.readInteger(as: UInt8.self),
            version == Self.version || version == Self.versionWithoutCode,
            let status = buffer.readInteger(as: UInt16.self),
            let fieldCount = buffer.readInteger(as: UInt16.self)
        else { return nil }
        var headers = HTTPHeaderLines()
        for _ in 0..<fieldCount {
            guard let name = buffer.readText().flatMap({ HTTPField.Name($0) }), let value = buffer.readText() else {
                return nil
            }
            headers.append(HTTPFieldKey(name), value)
        }
        var code = ""
        if version == Self.version {
            guard let text = buffer.readText() else { return nil }
            code = text
        }
        var response = HTTPServerResponse(
            status: HTTPResponse.Status(code: Int(status)),
            headers: headers,
            body: buffer
        )
        response.code = code.isEmpty ? nil : code
        self.response = response
    }

    /// The answer as bytes.
    var bytes: [UInt8] {
        var buffer = ByteBuffer()
        let fields = self.response.headers.fields
        buffer.reserveCapacity(128 + self.response.body.readableBytes)
        buffer.writeInteger(Self.version)
        buffer.writeInteger(UInt16(clamping: self.response.status.code))
        buffer.writeInteger(UInt16(clamping: fields.count))
        for field in fields {
            buffer.writeText(field.name.rawName)
            buffer.writeText(field.value)
        }
        buffer.writeText(self.response.code ?? "")
        buffer.writeImmutableBuffer(self.response.body)
        return Array(buffer.readableBytesView)
    }
}

extension ByteBuffer {
    fileprivate mutating func writeText(_ text: String) {
        self.writeInteger(UInt16(clamping: text.utf8.count))
        self.writeString(text)
    }

    fileprivate mutating func readText() -> String? {
        self.readInteger(as: UInt16.self).flatMap { self.readString(length: Int($0)) }
    }
}
