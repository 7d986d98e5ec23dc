import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird
import NIOCore

/// How a send is answered that carries `Idempotency-Key`, on whichever route.
struct KeyedExchange: Sendable {
    /// Turns what became of a send into an answer, without what belongs to one request alone.
    typealias Rendering = @Sendable (SendOutcome) -> HTTPServerResponse

    private let sends: KeyedSends

    init(sends: KeyedSends) {
        self.sends = sends
    }

    /// The key of a request; `nil` for a request without one.
    ///
    /// - Throws: `bad_request` for a field that is no key, or is there more than once.
    static func key(in fields: HTTPFieldLines) throws(Refusal) -> IdempotencyKey? {
        guard fields[.idempotencyKey] != nil else { return nil }
        guard let key = fields.bytes(of: .idempotencyKey).flatMap(IdempotencyKey.init) else {
            throw Refusal(
                .badRequest,
                "Idempotency-Key must be given once and have 1 to \(IdempotencyKey.maxBytes) printable ASCII characters"
            )
        }
        return key
    }

    /// Refuses a key on a request that is no send.
    ///
    /// Nothing would be kept of it, and to ignore it would break the promise that callers attach to it.
    ///
    /// - Throws: `bad_request`.
    static func refuseKey(_ key: String?) throws(Refusal) {
        guard key == nil else {
            throw Refusal(.badRequest, "Only sends take Idempotency-Key; leave it out here")
        }
    }

    /// Answers a request whose command and key are known.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - command: what it asks for.
    ///   - keyed: its key, and what tells it from others.
    ///   - render: renders its answer.
    ///   - refuse: renders why it was not looked at further.
    /// - Returns: the answer.
    func respond(
        to request: HTTPServerRequest,
        _ command: SendCommand,
        once keyed: KeyedRequest,
        render: @escaping Rendering,
        refuse: (Refusal) -> HTTPServerResponse
    ) async -> HTTPServerResponse {
        let answer = await self.sends.send(
            command,
            once: keyed,
            on: EventLoopTaskExecutor(eventLoop: request.connection.eventLoop),
            render: { StoredAnswer(render($0)).bytes }
        )
        switch answer {
        case .sent(let outcome, let bytes):
            var response = StoredAnswer(bytes)?.response ?? Refusal(.internalError).response
            response.headers.append(outcome.quotas)
            return response
        case .replayed(let bytes):
            guard var response = StoredAnswer(bytes)?.response else {
                return refuse(Refusal(.outcomeUnknown, "The kept answer can't be read"))
            }
            response.headers.append(.idempotentReplayed, "true")
            return response
        case .refused(let refusal):
            return refuse(refusal)
        }
    }
}

/// Refuses `Idempotency-Key` on every route that is served through the router: none of them is a send.
struct IdempotencyKeyMiddleware: RouterMiddleware {
    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        try KeyedExchange.refuseKey(request.headers[.idempotencyKey])
        return try await next(request, context)
    }
}
