import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

/// Sends messages as the legacy protocol does: `POST /fcm/send`, JSON or a form.
///
/// Requests are read and answered as the protocol page has it; between the two they take the way that every send takes.
struct LegacyFacade: Sendable {
    /// The route's template, for metrics and logs.
    static let template = "/fcm/send"
    private static let path = Array(Self.template.utf8)

    let exchange: FacadeExchange

    /// Whether a path is this route's.
    static func serves(_ path: [UInt8]) -> Bool {
        path.starts(with: Self.path) && (path.count == Self.path.count || path[Self.path.count] == UInt8(ascii: "?"))
    }

    /// Answers a request.
    func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
        let arrival = self.exchange.began(request)
        switch self.reading(of: request, arrival) {
        case .sending(let command, let writer):
            if let reason = self.exchange.gate.enter(command, lag: request.lag) {
                let reply = self.exchange.shed(reason, in: .legacy, principal: command.principal)
                return self.exchange.finished(reply, to: request, route: Self.template, arrival)
            }
            let outcome = await self.exchange.pipeline.send(command)
            self.exchange.gate.leave(command)
            let reply = self.reply(to: command, outcome, writer)
            return self.exchange.finished(reply, to: request, route: Self.template, arrival)
        case .sendingOnce(let command, let writer, let keyed):
            if let reason = self.exchange.gate.enter(command, lag: request.lag) {
                let reply = self.exchange.shed(reason, in: .legacy, principal: command.principal)
                return self.exchange.finished(reply, to: request, route: Self.template, arrival)
            }
            let reply = await self.reply(to: request, command, writer, keyed)
            self.exchange.gate.leave(command)
            return self.exchange.finished(reply, to: request, route: Self.template, arrival)
        case .forbidden(let principal):
            let refusal = await self.exchange.pipeline.refuse(
                principal,
                origin: self.exchange.origin(of: request, arrival)
            )
            let response = HTTPServerResponse(LegacyReply.unauthorized(refusal.code))
            let reply = FacadeExchange.Reply(response: response, principal: principal)
            return self.exchange.finished(reply, to: request, route: Self.template, arrival)
        case .answered(let reply):
            return self.exchange.finished(reply, to: request, route: Self.template, arrival)
        }
    }

    /// What a request turned out to be.
    private enum Reading {
        case sending(SendCommand, LegacyReplyWriter)
        case sendingOnce(SendCommand, LegacyReplyWriter, KeyedRequest)
        /// The key may not send, so that the body is not read.
        case forbidden(Principal)
        case answered(FacadeExchange.Reply)
    }

    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller, which is allocated.
    private func reading(of request: HTTPServerRequest, _ arrival: RequestArrival) -> Reading {
        if let reason = self.exchange.gate.refusal(of: request) {
            return .answered(self.exchange.shed(reason, in: .legacy))
        }
        let fields = request.head.fields
        let key = fields.bytes(of: .authorization).flatMap(LegacyKey.bytes(in:))
        guard let principal = self.exchange.principal(of: request, key: key, arrival) else {
            return .answered(FacadeExchange.Reply(response: HTTPServerResponse(.unauthorized(.unauthenticated))))
        }
        if let reason = self.exchange.gate.refusal(of: request, from: principal) {
            return .answered(self.exchange.shed(reason, in: .legacy, principal: principal))
        }
        guard principal.has(.sendMessages) else { return .forbidden(principal) }
        let answered = { (reply: LegacyReply) -> Reading in
            .answered(FacadeExchange.Reply(response: HTTPServerResponse(reply), principal: principal))
        }
        guard !FacadeExchange.isEncoded(request) else {
            let text = "The body must be sent without Content-Encoding"
            return answered(.text(status: 415, text, code: .unsupportedMediaType))
        }
        let format = LegacyFormat(contentType: fields[.contentType])
        let multicastID = Int.random(in: 1..<(1 << 53))
        var shape = LegacyReply.Shape.results(count: 1)
        do throws(Refusal) {
            let terms = try self.exchange.terms(of: request, arrival)
            let message =
                switch format {
                case .json: try LegacyRequestDecoder.decode(request.body, shape: &shape)
                case .form: try LegacyFormDecoder.decode(request.body)
                }
            guard !message.target.isDisguisedTopic else { throw Refusal(.invalidToken) }
            let writer = LegacyReplyWriter(answering: message, format: format, multicastID: multicastID)
            guard let target = message.sentTarget else { return answered(writer.reply(with: [])) }
            let command = SendCommand(
                principal: principal,
                target: target,
                tokenMayBeGroup: true,
                message: message.message,
                payloadBytes: message.payloadBytes,
                origin: self.exchange.origin(of: request, arrival),
                deadline: terms.deadline
            )
            guard let key = terms.key else { return .sending(command, writer) }
            let keyed = KeyedRequest(
                key: key,
                route: .legacy,
                format: format,
                method: request.head.method.rawValue,
                path: request.head.pathBytes,
                target: message.target,
                message: message.message
            )
            return .sendingOnce(command, writer, keyed)
        } catch {
            return answered(
                LegacyReply(refusing: error, format: format, shape: shape, multicastID: multicastID)
            )
        }
    }

    private func reply(
        to request: HTTPServerRequest,
        _ command: SendCommand,
        _ writer: LegacyReplyWriter,
        _ keyed: KeyedRequest
    ) async -> FacadeExchange.Reply {
        let response = await self.exchange.keyed.respond(
            to: request,
            command,
            once: keyed,
            render: { HTTPServerResponse(writer.reply(to: $0)) },
            refuse: { HTTPServerResponse(writer.reply(refusing: $0.rejection)) }
        )
        return FacadeExchange.Reply(response: response, principal: command.principal)
    }

    @inline(never)  // As for `reading`.
    private func reply(
        to command: SendCommand,
        _ outcome: SendOutcome,
        _ writer: LegacyReplyWriter
    ) -> FacadeExchange.Reply {
        var response = HTTPServerResponse(writer.reply(to: outcome))
        response.headers.append(outcome.quotas)
        return FacadeExchange.Reply(response: response, principal: command.principal)
    }
}
