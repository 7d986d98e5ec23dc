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
    var idempotent: IdempotentRequest?
    var writer: Writer
}

/// What sends messages.
struct MessageSender: Sendable {
    let pipeline: SendPipeline
    let idempotent: IdempotentSends
}

extension SendEndpoint {
    func load(of work: Work) -> RequestLoad {
        .message(recipients: work.command.recipientCount, isUrgent: work.command.isUrgent)
    }

    @inline(__always)  // Into the pipeline, which spares an async frame.
    func perform(_ work: Work, for exchange: Exchange) async throws -> HTTPServerResponse {
        guard let request = work.idempotent else {
            let outcome = await self.sender.pipeline.send(work.command)
            return self.response(to: outcome, work)
        }
        return await self.perform(work, once: request, for: exchange)
    }

    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller, which is allocated.
    private func response(to outcome: SendOutcome, _ work: Work) -> HTTPServerResponse {
        var response = work.writer.response(to: outcome)
        response.headers.append(outcome.quotas)
        return response
    }

    /// Sends a message unless its key was used before.
    private func perform(
        _ work: Work,
        once request: IdempotentRequest,
        for exchange: Exchange
    ) async -> HTTPServerResponse {
        let writer = work.writer
        let answer = await self.sender.idempotent.send(
            work.command,
            once: request,
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

/// An answer as replays give it: status, the fields that belong to its content, and the body; for logs, its code as well.
///
/// What belongs to one request alone, its id and what is left of quotas, is no part of it.
struct StoredAnswer {
    /// Rises when the layout changes.
    private static let version = 1

    let response: HTTPServerResponse

    init(_ response: HTTPServerResponse) {
        self.response = response
    }

    init?(_ bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        guard reader.number() == Self.version, let status = reader.number(), (100...599).contains(status),
            let code = reader.optionalText(), let fieldCount = reader.number()
        else { return nil }
        var headers = HTTPHeaderLines()
        for _ in 0..<fieldCount {
            guard let name = reader.text().flatMap({ HTTPField.Name($0) }), let value = reader.text() else {
                return nil
            }
            headers.append(HTTPFieldKey(name), value)
        }
        var response = HTTPServerResponse(
            status: HTTPResponse.Status(code: status),
            headers: headers,
            body: ByteBuffer(bytes: reader.rest)
        )
        response.code = code
        self.response = response
    }

    var bytes: [UInt8] {
        var writer = ByteWriter(reservingCapacity: 128 + self.response.body.readableBytes)
        let fields = self.response.headers.fields
        writer.write(number: Self.version)
        writer.write(number: self.response.status.code)
        writer.write(text: self.response.code)
        writer.write(number: fields.count)
        for field in fields {
            writer.write(text: field.name.rawName)
            writer.write(text: field.value)
        }
        writer.write(rest: self.response.body.readableBytesView)
        return writer.bytes
    }
}
