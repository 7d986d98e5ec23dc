import EventLoopHTTP

extension HTTPClientError {
    /// What the error says of the server's health.
    ///
    /// - Parameter hadFullTime: whether the attempt had all the time that an attempt may take; a caller in a hurry says
    ///   nothing of the server.
    /// - Returns: what the breaker is told.
    func verdict(hadFullTime: Bool) -> CircuitBreaker.Verdict {
        switch self.code {
        case .connectFailed, .connectTimeout, .tlsFailed, .refused, .responseTooLarge, .invalidResponse: .trouble
        case .connectionClosed: .lost
        case .deadlineExceeded: hadFullTime ? .trouble : .silent
        case .poolExhausted, .cancelled, .shutDown: .silent
        }
    }

    /// Whether the same request may be sent again at once: nothing of it has left, and another connection may do.
    var isWorthRepeating: Bool {
        switch self.code {
        case .connectFailed, .connectTimeout, .connectionClosed: !self.requestSent
        case .tlsFailed, .refused, .deadlineExceeded, .responseTooLarge, .invalidResponse, .poolExhausted, .cancelled,
            .shutDown:
            false
        }
    }
}
