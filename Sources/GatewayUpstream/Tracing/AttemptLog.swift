import EventLoopHTTP
import GatewayCore
package import Logging

/// The lines about calls to FCM: nothing of the message, and nobody's name but the tenant's.
///
/// One is written at `debug` for every call, and one at `warning` where a tenant lacks what calls need.
package struct AttemptLog: Sendable {
    private let logger: Logger?

    /// A log; without a logger nothing is written.
    package init(_ logger: Logger? = nil) {
        self.logger = logger
    }

    /// Writes that a call can't be made for want of something that an operator must provide, once until the tenant, or
    /// another, is changed.
    ///
    /// - Parameters:
    ///   - cause: the cause's name.
    ///   - text: what is missing and what to do about it.
    ///   - profile: whose call it would have been.
    ///   - origin: the request behind it.
    func missing(_ cause: String, _ text: String?, of profile: TenantProfile, _ origin: RequestOrigin) {
        guard let logger = self.logger, profile.isGapNews() else { return }
        logger.warning(
            "FCM can't be asked for a tenant",
            metadata: [
                "tenant": "\(profile.id.text)", "cause": "\(cause)", "detail": "\(text ?? "")",
                "request_id": "\(origin.requestID)",
            ]
        )
    }

    /// Writes the line of a call that has ended.
    ///
    /// - Parameters:
    ///   - outcome: the answer's status, or the name of what went wrong on the way.
    ///   - subject: where the call went, and for whom; asked for only where a line is written.
    ///   - duration: how long it took.
    func ended(
        _ outcome: @autoclosure () -> String,
        _ subject: @autoclosure () -> AttemptRecorder.Subject,
        in duration: Duration
    ) {
        guard let logger = self.logger, logger.logLevel <= .debug else { return }
        let subject = subject()
        let origin = subject.origin
        var metadata: Logger.Metadata = [
            "outcome": "\(outcome())", "server": "\(subject.server.authority)",
            "tenant": "\(subject.profile.id.text)", "duration_us": "\(Int(duration / .microseconds(1)))",
            "request_id": "\(origin.requestID)",
        ]
        if let traceID = origin.traceID { metadata["trace_id"] = "\(traceID)" }
        if let spanID = origin.trace?.spanID { metadata["span_id"] = "\(spanID)" }
        logger.debug("A call to FCM has ended", metadata: metadata)
    }
}
