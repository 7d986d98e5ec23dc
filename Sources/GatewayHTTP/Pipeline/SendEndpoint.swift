import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// An endpoint that sends messages: REST's, the legacy protocol's, or v1's.
///
/// They differ in reading the request and writing the outcome. In between all messages take the same path, with or
/// without an idempotency key.
protocol SendEndpoint: Endpoint where Work == Sending<Writer> {
    associatedtype Writer: SendReplyWriter

    var sender: MessageSender { get }
}

/// Writes the outcome of a message in one protocol. The reply may be replayed, so it holds nothing of a single request, such
/// as the request's id.
protocol SendReplyWriter: Sendable {
    func reply(to outcome: SendOutcome) -> Reply
    /// The reply to a request that was refused because of its idempotency key.
    func reply(refusing refusal: Refusal) -> Reply
}

/// A message that was read.
///
/// It is a class because every step of the pipeline would copy its parts.
final class Sending<Writer: SendReplyWriter>: Sendable {
    let command: SendCommand
    /// The content that the idempotency key protects; `nil` for a request without one.
    let idempotent: IdempotentRequest?
    let writer: Writer
    /// Accepts the message, to be sent later; `nil` for one that is sent at once.
    let later: (@Sendable () async throws -> HTTPServerResponse)?

    init(
        command: SendCommand,
        idempotent: IdempotentRequest? = nil,
        writer: Writer,
        later: (@Sendable () async throws -> HTTPServerResponse)? = nil
    ) {
        self.command = command
        self.idempotent = idempotent
        self.writer = writer
        self.later = later
    }
}

/// The parts that send messages.
struct MessageSender: Sendable {
    let pipeline: SendPipeline
    let idempotent: IdempotentSends
}

extension SendEndpoint {
    func load(of work: Work) -> RequestLoad {
        let command = work.command
        let calls = command.profile.tenant.upstream.callCount(of: command.target)
        return .message(recipients: command.recipientCount, calls: calls, isUrgent: command.isUrgent)
    }

    @inline(__always)  // Saves an async frame in the pipeline.
    func perform(_ work: Work, for exchange: Exchange) async throws -> HTTPServerResponse {
        guard let request = work.idempotent else {
            if let later = work.later { return try await later() }
            let outcome = await self.sender.pipeline.send(work.command)
            return self.response(to: outcome, work)
        }
        return await self.perform(work, once: request, for: exchange)
    }

    @inline(never)  // Keeps the frame small.
    private func response(to outcome: SendOutcome, _ work: Work) -> HTTPServerResponse {
        HTTPServerResponse(work.writer.reply(to: outcome), outcome.quotas)
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
            render: writer.reply(to:)
        )
        switch answer {
        case .sent(let outcome, let reply, _):
            return HTTPServerResponse(reply, outcome.quotas)
        case .replayed(let reply):
            var response = HTTPServerResponse(reply)
            response.headers.append(.idempotentReplayed, "true")
            return response
        case .refused(let refusal):
            return HTTPServerResponse(writer.reply(refusing: refusal))
        }
    }
}
