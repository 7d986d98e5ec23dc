package import FCMModel

/// A checked message on its way into the pipeline.
package struct SendCommand: Sendable {
    /// Who sends.
    package var principal: Principal
    /// Whom it is for.
    package var target: Target
    /// What it says.
    package var message: Message
    /// The payload's size in bytes.
    package var payloadBytes: Int
    /// The request it came with.
    package var origin: RequestOrigin
    /// When the caller stops waiting.
    package var deadline: ContinuousClock.Instant

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
