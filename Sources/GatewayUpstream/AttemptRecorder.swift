import EventLoopHTTP
import GatewayCore
import HTTPTypes
import Logging
import Metrics

/// Observes the calls to one API: how long each takes, its span, and its line in the log.
struct AttemptRecorder: Sendable {
    /// The metrics of calls to one API.
    final class Metrics: Sendable {
        private let api: FCMAPI
        private let attempts: MetricFamily<Timer>
        private let answered: Timer
        private let inFlight: Meter

        init(_ api: FCMAPI, _ metrics: GatewayMetrics) {
            self.api = api
            self.attempts = metrics.timers(.upstreamAttemptDuration)
            self.answered = self.attempts[api.label, "answered"]
            self.inFlight = metrics.gauge(.upstreamInFlight, api.label)
        }

        func began() {
            self.inFlight.increment()
        }

        func answered(in duration: Duration) {
            self.inFlight.decrement()
            self.answered.recordNanoseconds(duration.nanoseconds)
        }

        func failed(_ failure: String, in duration: Duration) {
            self.inFlight.decrement()
            self.attempts[self.api.label, failure].recordNanoseconds(duration.nanoseconds)
        }
    }

    /// A call under way; ``answered(_:status:_:)`` or ``failed(_:_:_:)`` ends it.
    struct Attempt {
        let start: Uptime
        /// `nil` unless the trace of the request behind it is recorded.
        fileprivate let span: UpstreamSpan?
    }

    let metrics: Metrics
    let log: Log

    /// Begins a call; its request carries the call's trace and tenant.
    func begin(
        _ request: inout HTTPClientRequest,
        of route: String,
        _ context: CallContext,
        at start: Uptime,
        retries: Int
    ) -> Attempt {
        self.metrics.began()
        request.tenant = context.profile.load.number
        guard let trace = context.origin.trace else { return Attempt(start: start, span: nil) }
        let span = trace.begin(
            request.method.rawValue,
            at: route,
            of: context.pool.origin.parts,
            tenant: context.profile.id.text,
            resends: retries,
            start: start
        )
        for field in span?.fields ?? trace.fields {
            switch field.name {
            case .parent: request.headers.append(.traceParent, field.value)
            case .state: request.headers.append(.traceState, field.value)
            }
        }
        return Attempt(start: start, span: span)
    }

    /// Ends a call that the server answered; returns the time of the end.
    func answered(_ attempt: Attempt, status: Int, _ context: CallContext) -> Uptime {
        let now = Uptime.now
        self.metrics.answered(in: now - attempt.start)
        attempt.span?.answered(status: status, at: now)
        self.log.ended(String(status), context, in: now - attempt.start)
        return now
    }

    /// Ends a call without an answer; returns the time of the end.
    func failed(_ attempt: Attempt, _ error: HTTPClientError, _ context: CallContext) -> Uptime {
        let now = Uptime.now
        let name = error.code.rawValue
        self.metrics.failed(name, in: now - attempt.start)
        attempt.span?.failed(name, at: now)
        self.log.ended(name, context, in: now - attempt.start)
        return now
    }
}

extension AttemptRecorder {
    /// Log lines about calls to FCM; they hold nothing of the message, and no name but the tenant's.
    ///
    /// Each call writes one at `debug`. A tenant that lacks something calls need gets one at `warning`.
    struct Log: Sendable {
        /// Without a logger nothing is written.
        private let logger: Logger?

        init(_ logger: Logger? = nil) {
            self.logger = logger
        }

        /// Logs what an operator must provide before calls can be made: once, until the tenant is changed.
        func missing(_ cause: String, _ text: String?, of profile: TenantProfile, _ origin: RequestOrigin) {
            guard let logger = self.logger, profile.isGapNews() else { return }
            logger.warning(
                "FCM can't be called for a tenant",
                metadata: [
                    "tenant": "\(profile.id.text)", "cause": "\(cause)", "detail": "\(text ?? "")",
                    "request_id": "\(origin.requestID)",
                ]
            )
        }

        func ended(_ outcome: @autoclosure () -> String, _ context: CallContext, in duration: Duration) {
            guard let logger = self.logger, logger.logLevel <= .debug else { return }
            let origin = context.origin
            var metadata: Logger.Metadata = [
                "outcome": "\(outcome())", "server": "\(context.pool.origin.authority)",
                "tenant": "\(context.profile.id.text)",
                "duration_us": .stringConvertible(Int(duration.microseconds)),
                "request_id": "\(origin.requestID)",
            ]
            if let traceID = origin.traceID { metadata["trace_id"] = "\(traceID)" }
            if let spanID = origin.trace?.spanID { metadata["span_id"] = "\(spanID)" }
            logger.debug("A call to FCM has ended", metadata: metadata)
        }
    }
}

extension HTTPOrigin {
    /// The parts of a server's address that spans record.
    var parts: (scheme: String, host: String, port: Int) { (self.scheme.rawValue, self.host, self.port) }
}

extension HTTPFieldKey {
    fileprivate static let traceParent = HTTPFieldKey(HTTPField.Name(constant: "traceparent"))
    fileprivate static let traceState = HTTPFieldKey(HTTPField.Name(constant: "tracestate"))
}
