extension V1Reply {
    /// The answer to a request that is wrong in itself, whatever message it carries: 400 `INVALID_ARGUMENT`.
    ///
    /// - Parameters:
    ///   - message: what is wrong, for a developer.
    ///   - code: the same for logs.
    /// - Returns: the answer.
    package static func badRequest(_ message: String, code: OutcomeCode = .badRequest) -> V1Reply {
        V1Reply(V1Fault(status: .invalidArgument, message: message), code: code)
    }
}
