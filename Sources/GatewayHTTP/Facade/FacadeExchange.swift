import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

/// What the facades share: how a request is begun, sent and finished, whatever words it is answered in.
struct FacadeExchange: Sendable {
    let authentication: AuthenticationMiddleware
    let pipeline: SendPipeline
    let keyed: KeyedExchange
    let clock: any WallClock
    let metrics: HTTPMetrics
    let gate: LoadGate
    let accessLog: AccessLog
    let tracer: RequestTracer
    let requestDeadline: DurationSetting

    /// A request's answer before it is measured and logged.
    struct Reply {
        var response: HTTPServerResponse
        /// Whose key the request carried, if it carried one.
        var principal: Principal?
        /// Whether it was refused under load.
        var isShed = false
    }

    /// Notes that a request came.
    func began(_ request: HTTPServerRequest) -> RequestArrival {
        self.metrics.began()
        return RequestArrival(of: request, clock: self.clock, tracer: self.tracer)
    }

    /// Measures and logs a request, and gives the answer what every answer has.
    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller, which is allocated.
    func finished(
        _ reply: Reply,
        to request: HTTPServerRequest,
        route: String,
        _ arrival: RequestArrival
    ) -> HTTPServerResponse {
        let duration = ContinuousClock.now - arrival.instant
        var response = reply.response
        let status = response.status.code
        let method = request.head.method.rawValue
        self.metrics.ended(route: route, method: method, status: status, in: duration)
        self.accessLog.write(
            AccessLogEntry(arrival, request, response, route: route, principal: reply.principal, in: duration),
            status: status,
            isShed: reply.isShed
        )
        arrival.trace?
            .end(
                AccessLogEntry(arrival, request, response, route: route, principal: reply.principal, in: duration)
                    .ending(method)
            )
        response.headers.append(.requestID, arrival.requestID)
        return response
    }

    /// The answer to a request that is not taken on.
    @inline(never)  // As for `finished`.
    func shed(_ reason: ShedReason, in wording: ShedWording, principal: Principal? = nil) -> Reply {
        Reply(response: self.gate.answer(reason, in: wording), principal: principal, isShed: true)
    }

    /// What a send says of itself beside its body.
    struct Terms {
        /// When the caller stops waiting.
        var deadline: ContinuousClock.Instant
        /// The key under which it may be repeated.
        var key: IdempotencyKey?
    }

    /// What a send says of itself beside its body.
    ///
    /// - Throws: why the request can't be served as it was sent, in words for a developer.
    func terms(of request: HTTPServerRequest, _ arrival: RequestArrival) throws(Refusal) -> Terms {
        let fields = request.head.fields
        let key = try KeyedExchange.key(in: fields)
        let limit = self.requestDeadline.current
        let timeout = try DeadlineMiddleware.timeout(given: fields[.requestTimeout], limit: limit)
        return Terms(deadline: arrival.instant + timeout, key: key)
    }

    /// Whose key a request carries; `nil` for nobody's, or for one that its client may not use.
    func principal(of request: HTTPServerRequest, key: ArraySlice<UInt8>?, _ arrival: RequestArrival) -> Principal? {
        self.authentication.principal(key: key, clientNames: request.connection.clientNames, now: arrival.time)
    }

    /// When the caller of a request stops waiting that is no send.
    ///
    /// - Throws: why the request can't be served as it was sent, in words for a developer.
    func deadline(of request: HTTPServerRequest, _ arrival: RequestArrival) throws(Refusal) -> ContinuousClock.Instant {
        let fields = request.head.fields
        try KeyedExchange.refuseKey(fields[.idempotencyKey])
        let timeout = try DeadlineMiddleware.timeout(
            given: fields[.requestTimeout],
            limit: self.requestDeadline.current
        )
        return arrival.instant + timeout
    }

    /// What is recorded of a request.
    func origin(of request: HTTPServerRequest, _ arrival: RequestArrival) -> RequestOrigin {
        RequestOrigin(
            method: request.head.method.rawValue,
            requestID: arrival.requestID,
            trace: arrival.trace
        )
    }

    /// Whether a body is compressed, which no route takes: it could be a thousand times as large as it looks.
    static func isEncoded(_ request: HTTPServerRequest) -> Bool {
        guard let encoding = request.head.fields[.contentEncoding] else { return false }
        return !encoding.isEmpty && encoding.lowercased() != "identity"
    }
}
