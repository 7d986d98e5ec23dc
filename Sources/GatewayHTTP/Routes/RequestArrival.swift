import EventLoopHTTP
import GatewayCore

/// When a request came and under which id it is known, for the routes that are spared the router.
struct RequestArrival {
    /// When the request was complete.
    let instant: ContinuousClock.Instant
    /// The same on the wall clock.
    let time: Timestamp
    /// The request's id: the caller's own where it is sane, else a new one.
    let requestID: String
    /// The trace that it belongs to, if it belongs to one.
    let trace: RequestTrace?

    init(of request: HTTPServerRequest, clock: any WallClock, tracer: RequestTracer) {
        self.instant = .now
        self.time = clock.now()
        self.requestID = IdentityMiddleware.requestID(given: request.head.fields[.requestID], now: self.time)
        self.trace = tracer.trace(of: request.head)
    }
}
