import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import Logging

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
    let clock: any WallClock
    let metrics: HTTPMetrics
    let accessLog: AccessLog
    let rendering: ProblemRendering
    let requestDeadline: Duration

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
        let receivedAt = ContinuousClock.now
        let now = self.clock.now()
        let fields = request.head.fields
        let requestID = IdentityMiddleware.requestID(given: fields[.requestID], now: now)
        let traceID = fields[.traceParent].flatMap { TraceMiddleware.traceID(in: $0) }
        self.metrics.began()
        var response: HTTPServerResponse
        do {
            let origin = RequestOrigin(method: "POST", requestID: requestID, traceID: traceID)
            let timeout = try DeadlineMiddleware.timeout(given: fields[.requestTimeout], limit: self.requestDeadline)
            let principal = try self.authentication.principal(authorization: fields.bytes(of: .authorization), now: now)
            try principal.checkTenant(tenant)
            response = try await self.send(request, principal, origin, deadline: receivedAt + timeout)
        } catch {
            response = self.rendering.response(for: error, path: Self.template, requestID: requestID)
        }
        let duration = ContinuousClock.now - receivedAt
        self.metrics.ended(route: Self.template, method: "POST", status: response.status.code, in: duration)
        self.accessLog.write(
            AccessLog.Entry(
                requestID: requestID,
                method: "POST",
                route: Self.template,
                status: response.status.code,
                tenant: String(decoding: tenant, as: UTF8.self),
                remoteAddress: request.connection.remoteAddress,
                duration: duration
            ),
            status: response.status.code
        )
        response.headers.append(.requestID, requestID)
        return response
    }

    private func send(
        _ request: HTTPServerRequest,
        _ principal: Principal,
        _ origin: RequestOrigin,
        deadline: ContinuousClock.Instant
    ) async throws(Problem) -> HTTPServerResponse {
        let fields = request.head.fields
        guard fields[.idempotencyKey] == nil else {
            // Ignoring it would break the promise that callers attach to it.
            throw Problem(.badRequest, "Idempotency-Key is not supported by this version")
        }
        let members = try JSONBody.members(of: request.body, contentType: fields[.contentType])
        let body = try SendBody(members)
        let target: Target
        switch body.target {
        case .direct(let direct): target = direct
        case .deviceGroup: throw Problem(.notFound, "The tenant has no device group of this name")
        }
        let payloadBytes = body.message.payloadBytes
        guard payloadBytes <= target.maxPayloadBytes else {
            throw Problem(
                .messageTooBig,
                "The payload has \(payloadBytes) bytes; at most \(target.maxPayloadBytes) are allowed for this target"
            )
        }
        let outcome = await self.pipeline.send(
            SendCommand(
                principal: principal,
                target: target,
                message: body.message,
                payloadBytes: payloadBytes,
                origin: origin,
                deadline: deadline
            )
        )
        return SendAnswer(outcome: outcome, target: target).response
    }
}

extension Principal {
    /// Makes sure that a path's tenant is the caller's own; a foreign one is as good as none.
    ///
    /// - Throws: `not_found`.
    func checkTenant(_ text: some Sequence<UInt8>) throws(Problem) {
        guard self.profile.id.text.utf8.elementsEqual(text) else { throw Problem(.notFound, "There is no such tenant") }
    }
}
