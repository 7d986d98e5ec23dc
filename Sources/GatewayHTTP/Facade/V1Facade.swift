import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

/// Sends messages as HTTP v1 does: `POST /v1/projects/{project}/messages:send`.
///
/// A v1 upstream gets the message as the caller wrote it, a legacy one its translation where nothing is lost by it.
struct V1Facade: Sendable {
    /// The route's template, for metrics and logs.
    static let template = "/v1/projects/{project}/messages:send"
    private static let prefix = Array("/v1/projects/".utf8)
    private static let suffix = Array("/messages:send".utf8)

    let exchange: FacadeExchange

    /// The project in a path that is this route's; `nil` for any other path.
    static func project(in path: [UInt8]) -> ArraySlice<UInt8>? {
        guard path.starts(with: Self.prefix),
            let end = path[Self.prefix.count...].firstIndex(of: UInt8(ascii: "/")), end > Self.prefix.count,
            path[end...].starts(with: Self.suffix)
        else { return nil }
        let rest = end + Self.suffix.count
        guard rest == path.count || path[rest] == UInt8(ascii: "?") else { return nil }
        return path[Self.prefix.count..<end]
    }

    /// Answers a request whose path names a project.
    func respond(to request: HTTPServerRequest, project: ArraySlice<UInt8>) async -> HTTPServerResponse {
        let arrival = self.exchange.began(request)
        switch self.reading(of: request, project: project, arrival) {
        case .sending(let command):
            if let reason = self.exchange.gate.enter(command, lag: request.lag) {
                let reply = self.exchange.shed(reason, in: .v1, principal: command.principal)
                return self.exchange.finished(reply, to: request, route: Self.template, arrival)
            }
            let outcome = await self.exchange.pipeline.send(command)
            self.exchange.gate.leave(command)
            let reply = self.reply(to: command, outcome)
            return self.exchange.finished(reply, to: request, route: Self.template, arrival)
        case .sendingOnce(let command, let keyed):
            if let reason = self.exchange.gate.enter(command, lag: request.lag) {
                let reply = self.exchange.shed(reason, in: .v1, principal: command.principal)
                return self.exchange.finished(reply, to: request, route: Self.template, arrival)
            }
            let reply = await self.reply(to: request, command, keyed)
            self.exchange.gate.leave(command)
            return self.exchange.finished(reply, to: request, route: Self.template, arrival)
        case .forbidden(let principal):
            let refusal = await self.exchange.pipeline.refuse(
                principal,
                origin: self.exchange.origin(of: request, arrival)
            )
            let response = HTTPServerResponse(V1Reply(refusing: refusal.rejection))
            let reply = FacadeExchange.Reply(response: response, principal: principal)
            return self.exchange.finished(reply, to: request, route: Self.template, arrival)
        case .answered(let reply):
            return self.exchange.finished(reply, to: request, route: Self.template, arrival)
        }
    }

    /// What a request turned out to be.
    private enum Reading {
        case sending(SendCommand)
        case sendingOnce(SendCommand, KeyedRequest)
        /// The key may not send, so that the body is not read.
        case forbidden(Principal)
        case answered(FacadeExchange.Reply)
    }

    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller, which is allocated.
    private func reading(
        of request: HTTPServerRequest,
        project: ArraySlice<UInt8>,
        _ arrival: RequestArrival
    ) -> Reading {
        if let reason = self.exchange.gate.refusal(of: request) {
            return .answered(self.exchange.shed(reason, in: .v1))
        }
        let key = request.head.fields.bytes(of: .authorization).flatMap(BearerToken.bytes(in:))
        guard let principal = self.exchange.principal(of: request, key: key, arrival) else {
            let reply = V1Reply(refusing: Rejection(code: .unauthenticated))
            return .answered(FacadeExchange.Reply(response: HTTPServerResponse(reply)))
        }
        if let reason = self.exchange.gate.refusal(of: request, from: principal) {
            return .answered(self.exchange.shed(reason, in: .v1, principal: principal))
        }
        guard principal.has(.sendMessages) else { return .forbidden(principal) }
        let answered = { (reply: V1Reply) -> Reading in
            .answered(FacadeExchange.Reply(response: HTTPServerResponse(reply), principal: principal))
        }
        guard principal.profile.project.utf8.elementsEqual(project) else {
            return answered(V1Reply(refusing: Rejection(code: .forbidden)))
        }
        guard !FacadeExchange.isEncoded(request) else {
            return answered(
                .badRequest("The body must be sent without Content-Encoding", code: .unsupportedMediaType)
            )
        }
        let terms: FacadeExchange.Terms
        do {
            terms = try self.exchange.terms(of: request, arrival)
        } catch {
            return answered(.badRequest(error.detail ?? error.code.title, code: error.code))
        }
        do throws(Refusal) {
            let given = try V1RequestDecoder.decode(request.body)
            let message = try Self.reworded(given, for: principal.profile, now: arrival.time)
            guard !message.target.isDisguisedTopic else {
                return answered(V1Reply(refusing: Rejection(code: .invalidToken)))
            }
            let command = SendCommand(
                principal: principal,
                target: message.target,
                tokenMayBeGroup: true,
                message: message.message,
                payloadBytes: message.payloadBytes,
                origin: self.exchange.origin(of: request, arrival),
                deadline: terms.deadline
            )
            guard let key = terms.key else { return .sending(command) }
            // As the caller put it: its translation depends on the time.
            let keyed = KeyedRequest(
                key: key,
                route: .v1,
                method: request.head.method.rawValue,
                path: request.head.pathBytes,
                target: given.target,
                message: given.message
            )
            return .sendingOnce(command, keyed)
        } catch {
            return answered(V1Reply(refusing: error))
        }
    }

    /// A message in the words of the tenant's upstream.
    private struct Reworded {
        var target: Target
        var message: Message
        var payloadBytes: Int
    }

    private static func reworded(
        _ given: V1SendRequest,
        for profile: TenantProfile,
        now: Timestamp
    ) throws(Refusal) -> Reworded {
        switch profile.tenant.upstream {
        case .v1:
            return Reworded(target: given.target, message: given.message, payloadBytes: given.payloadBytes)
        case .legacy:
            let legacy = try given.legacyRequest(now: now.seconds)
            return Reworded(target: legacy.target, message: legacy.message, payloadBytes: legacy.payloadBytes)
        }
    }

    private func reply(
        to request: HTTPServerRequest,
        _ command: SendCommand,
        _ keyed: KeyedRequest
    ) async -> FacadeExchange.Reply {
        let project = command.principal.profile.project
        let response = await self.exchange.keyed.respond(
            to: request,
            command,
            once: keyed,
            render: { HTTPServerResponse(V1Reply($0, project: project)) },
            refuse: { HTTPServerResponse(V1Reply(refusing: $0.rejection)) }
        )
        return FacadeExchange.Reply(response: response, principal: command.principal)
    }

    @inline(never)  // As for `reading`.
    private func reply(to command: SendCommand, _ outcome: SendOutcome) -> FacadeExchange.Reply {
        var response = HTTPServerResponse(V1Reply(outcome, project: command.principal.profile.project))
        response.headers.append(outcome.quotas)
        return FacadeExchange.Reply(response: response, principal: command.principal)
    }
}

extension TenantProfile {
    /// What stands for the tenant's project in paths of v1.
    var project: String { self.tenant.projectID ?? self.id.text }
}
