package import FCMModel

/// A checked message on its way into the pipeline.
///
/// A class, since it is handed on many times and copying its parts each time would cost more than the pipeline itself.
package final class SendCommand: Sendable {
    /// Who sends.
    package let principal: Principal
    /// Whom it is for.
    package let target: Target
    /// What it says.
    package let message: Message
    /// The payload's size in bytes.
    package let payloadBytes: Int
    /// The request it came with.
    package let origin: RequestOrigin
    /// When the caller stops waiting.
    package let deadline: ContinuousClock.Instant

    /// A command.
    package init(
        principal: Principal,
        target: Target,
        message: Message,
        payloadBytes: Int,
        origin: RequestOrigin,
        deadline: ContinuousClock.Instant
    ) {
        self.principal = principal
        self.target = target
        self.message = message
        self.payloadBytes = payloadBytes
        self.origin = origin
        self.deadline = deadline
    }
}

/// What is recorded of the request behind an action.
package struct RequestOrigin: Sendable, Hashable {
    /// The HTTP method.
    package var method: String
    /// The request's id.
    package var requestID: String
    /// The trace's id, where the caller sent one.
    package var traceID: String?

    /// An origin.
    package init(method: String, requestID: String, traceID: String? = nil) {
        self.method = method
        self.requestID = requestID
        self.traceID = traceID
    }
}
