import EventLoopHTTP
import GatewayCore
import HTTPTypes

/// Keeps what is to be known of the calls by one API: how long each takes, its span, and its line in the log.
struct AttemptRecorder: Sendable {
    /// Where a call goes, and for whom.
    struct Subject {
        /// The server.
        let server: HTTPOrigin
        /// Whose call it is.
        let profile: TenantProfile
        /// The request behind it.
        let origin: RequestOrigin
    }

    /// A call under way; ``answered(_:status:_:)`` or ``failed(_:_:_:)`` ends it.
    struct Attempt {
        /// When it began.
        let start: ContinuousClock.Instant
        /// Its span, where the request behind it belongs to a trace.
        fileprivate let span: UpstreamSpan?

        /// What the call has to send: the request, with the trace that it belongs to and its tenant.
        @inline(never)  // As for `begin`.
        func carried(by request: HTTPClientRequest, for profile: TenantProfile) -> HTTPClientRequest {
            var request = self.span.map { request.carrying($0) } ?? request
            request.tenant = profile.load.number
            return request
        }
    }

    let metrics: UpstreamMetrics
    let log: AttemptLog

    /// Begins a call.
    ///
    /// - Parameters:
    ///   - start: when.
    ///   - trace: the trace that it belongs to.
    ///   - method: its method.
    ///   - route: the template of its path.
    ///   - repeats: how often the same has been tried before.
    ///   - subject: where it goes, and for whom; asked for only where that is told.
    /// - Returns: the call.
    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller, which is allocated.
    func begin(
        at start: ContinuousClock.Instant,
        in trace: RequestTrace?,
        _ method: HTTPRequest.Method,
        _ route: String,
        repeats: Int,
        _ subject: @autoclosure () -> Subject
    ) -> Attempt {
        self.metrics.began()
        let span = trace.map { trace in
            let subject = subject()
            return trace.begin(
                UpstreamAttempt(
                    method: method.rawValue,
                    route: route,
                    host: subject.server.host,
                    port: subject.server.port,
                    tenant: subject.profile.id.text,
                    repeats: repeats
                )
            )
        }
        return Attempt(start: start, span: span)
    }

    /// Ends a call that the server answered.
    ///
    /// - Returns: when it ended.
    @inline(never)  // As for `begin`.
    @discardableResult
    func answered(
        _ attempt: Attempt,
        status: Int,
        _ subject: @autoclosure () -> Subject
    ) -> ContinuousClock.Instant {
        let now = ContinuousClock.now
        self.metrics.answered(in: now - attempt.start)
        attempt.span?.answered(status: status)
        self.log.ended(String(status), subject(), in: now - attempt.start)
        return now
    }

    /// Ends a call that got no answer.
    ///
    /// - Returns: when it ended.
    @inline(never)  // As for `begin`.
    @discardableResult
    func failed(
        _ attempt: Attempt,
        _ error: HTTPClientError,
        _ subject: @autoclosure () -> Subject
    ) -> ContinuousClock.Instant {
        let now = ContinuousClock.now
        let name = error.code.rawValue
        self.metrics.failed(name, in: now - attempt.start)
        attempt.span?.failed(name)
        self.log.ended(name, subject(), in: now - attempt.start)
        return now
    }
}
