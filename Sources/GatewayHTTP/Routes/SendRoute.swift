import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import Logging
import NIOCore

/// Sends messages: `POST /v1/tenants/{tenant}/messages`.
///
/// This route alone is spared the router and its middleware, which cost as much as the rest of the gateway's own work
/// on it. It takes the same steps by the same functions and in the same order as ``ListenerRouting``.
struct SendRoute: Sendable {
    /// The route's template, for metrics and logs.
    static let template = "/v1/tenants/{tenant}/messages"
    /// Its first and last segments.
    private static let prefix = Array("/v1/tenants/".utf8)
    private static let suffix = Array("/messages".utf8)

    let authentication: AuthenticationMiddleware
    let pipeline: SendPipeline
    let keyed: KeyedExchange
    let clock: any WallClock
    let metrics: HTTPMetrics
    let gate: LoadGate
    let accessLog: AccessLog
    let tracer: RequestTracer
    let rendering: ProblemRendering
    let requestDeadline: DurationSetting

    /// The tenant in a path that is this route's; `nil` for any other path.
    static func tenant(in path: [UInt8]) -> ArraySlice<UInt8>? {
        guard path.starts(with: Self.prefix),
            let end = path[Self.prefix.count...].firstIndex(of: UInt8(ascii: "/")), end > Self.prefix.count,
            path[end...].starts(with: Self.suffix)
        else { return nil }
        let rest = end + Self.suffix.count
        guard rest == path.count || path[rest] == UInt8(ascii: "?") else { return nil }
        return path[Self.prefix.count..<end]
    }

    /// Answers a request whose path names a tenant.
    func respond(to request: HTTPServerRequest, tenant: ArraySlice<UInt8>) async -> HTTPServerResponse {
        let arrival = RequestArrival(of: request, clock: self.clock, tracer: self.tracer)
        self.metrics.began()
        switch self.command(in: request, tenant: tenant, arrival) {
        case .command(let command):
            if let reason = self.gate.enter(command, lag: request.lag) {
                return self.shed(reason, request, tenant: tenant, arrival, command.principal)
            }
            let outcome = await self.pipeline.send(command)
            self.gate.leave(command)
            let response = self.answer(outcome, to: command)
            return self.finished(response, to: request, tenant: tenant, arrival, command.principal)
        case .keyed(let command, let keyed):
            if let reason = self.gate.enter(command, lag: request.lag) {
                return self.shed(reason, request, tenant: tenant, arrival, command.principal)
            }
            let response = await self.respond(to: request, command, keyed)
            self.gate.leave(command)
            return self.finished(response, to: request, tenant: tenant, arrival, command.principal)
        case .forbidden(let principal):
            let origin = RequestOrigin(method: "POST", requestID: arrival.requestID, trace: arrival.trace)
            let refusal = await self.pipeline.refuse(principal, origin: origin)
            let response = refusal.response
            return self.finished(response, to: request, tenant: tenant, arrival, principal)
        case .refusal(let response, let principal):
            return self.finished(response, to: request, tenant: tenant, arrival, principal)
        case .shed(let reason, let principal):
            return self.shed(reason, request, tenant: tenant, arrival, principal)
        }
    }

    /// What a request turned out to be.
    private enum Reading {
        case command(SendCommand)
        case keyed(SendCommand, KeyedRequest)
        /// The key may not send, so that the body is not read.
        case forbidden(Principal)
        case refusal(HTTPServerResponse, Principal?)
        case shed(ShedReason, Principal?)
    }

    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller, which is allocated.
    private func command(
        in request: HTTPServerRequest,
        tenant: ArraySlice<UInt8>,
        _ arrival: RequestArrival
    ) -> Reading {
        if let reason = self.gate.refusal(of: request) { return .shed(reason, nil) }
        var caller: Principal?
        do {
            let fields = request.head.fields
            let timeout = try DeadlineMiddleware.timeout(
                given: fields[.requestTimeout],
                limit: self.requestDeadline.current
            )
            let principal = try self.authentication.principal(
                authorization: fields.bytes(of: .authorization),
                clientNames: request.connection.clientNames,
                now: arrival.time
            )
            caller = principal
            try principal.checkTenant(tenant)
            if let reason = self.gate.refusal(of: request, from: principal) { return .shed(reason, principal) }
            guard principal.has(.sendMessages) else { return .forbidden(principal) }
            let key = try KeyedExchange.key(in: fields)
            let body = try SendBody(JSONBody.members(of: request.body, contentType: fields[.contentType]))
            let command = body.command(
                from: principal,
                origin: RequestOrigin(
                    method: "POST",
                    requestID: arrival.requestID,
                    trace: arrival.trace
                ),
                deadline: arrival.instant + timeout
            )
            guard command.payloadBytes <= command.target.maxPayloadBytes else {
                throw Refusal.messageTooBig(command.payloadBytes, to: command.target)
            }
            guard let key else { return .command(command) }
            let keyed = KeyedRequest(
                key: key,
                route: .messages,
                method: "POST",
                path: request.head.pathBytes,
                target: command.target,
                groupName: command.groupName,
                message: command.message
            )
            return .keyed(command, keyed)
        } catch {
            return .refusal(self.refusal(error, arrival), caller)
        }
    }

    private func refusal(_ error: any Error, _ arrival: RequestArrival) -> HTTPServerResponse {
        self.rendering.response(
            for: error,
            path: Self.template,
            requestID: arrival.requestID,
            trace: arrival.trace
        )
    }

    private func respond(
        to request: HTTPServerRequest,
        _ command: SendCommand,
        _ keyed: KeyedRequest
    ) async -> HTTPServerResponse {
        await self.keyed.respond(
            to: request,
            command,
            once: keyed,
            render: { SendAnswer(outcome: $0, target: command.target).answer },
            refuse: { $0.response }
        )
    }

    @inline(never)  // As for `command`.
    private func answer(_ outcome: SendOutcome, to command: SendCommand) -> HTTPServerResponse {
        SendAnswer(outcome: outcome, target: command.target).response
    }

    @inline(never)  // As for `command`.
    private func shed(
        _ reason: ShedReason,
        _ request: HTTPServerRequest,
        tenant: ArraySlice<UInt8>,
        _ arrival: RequestArrival,
        _ principal: Principal?
    ) -> HTTPServerResponse {
        let response = self.gate.answer(reason, in: .rest)
        return self.finished(response, to: request, tenant: tenant, arrival, principal, isShed: true)
    }

    @inline(never)  // As for `command`.
    private func finished(
        _ response: consuming HTTPServerResponse,
        to request: HTTPServerRequest,
        tenant: ArraySlice<UInt8>,
        _ arrival: RequestArrival,
        _ principal: Principal?,
        isShed: Bool = false
    ) -> HTTPServerResponse {
        let duration = ContinuousClock.now - arrival.instant
        let status = response.status.code
        self.metrics.endedSend(status: status, in: duration)
        self.accessLog.write(
            Self.entry(arrival, request, response, principal, tenant, in: duration),
            status: status,
            isShed: isShed
        )
        arrival.trace?.end(Self.entry(arrival, request, response, principal, tenant, in: duration).ending("POST"))
        response.headers.append(.requestID, arrival.requestID)
        return response
    }

    private static func entry(
        _ arrival: RequestArrival,
        _ request: HTTPServerRequest,
        _ response: HTTPServerResponse,
        _ principal: Principal?,
        _ tenant: ArraySlice<UInt8>,
        in duration: Duration
    ) -> AccessLogEntry {
        AccessLogEntry(
            arrival,
            request,
            response,
            route: Self.template,
            principal: principal,
            tenant: tenant,
            in: duration
        )
    }
}

extension Principal {
    /// Makes sure that a path's tenant is the caller's own; a foreign one is as good as none.
    ///
    /// - Throws: `not_found`.
    func checkTenant(_ text: some Sequence<UInt8>) throws(Refusal) {
        guard self.profile.id.text.utf8.elementsEqual(text) else { throw Refusal(.notFound, "There is no such tenant") }
    }
}
