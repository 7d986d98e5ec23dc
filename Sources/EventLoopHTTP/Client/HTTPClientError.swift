/// Why an exchange has no answer.
package struct HTTPClientError: Error, Sendable {
    /// What went wrong.
    package enum Code: String, Sendable, CaseIterable {
        /// No connection could be made.
        case connectFailed
        /// No connection could be made in time.
        case connectTimeout
        /// The connection could not be encrypted, or the certificate is not the origin's.
        case tlsFailed
        /// The exchange's deadline passed.
        case deadlineExceeded
        /// The connection ended before the answer was complete.
        case connectionClosed
        /// The answer's head or body exceeds its limit.
        case responseTooLarge
        /// The answer is malformed.
        case invalidResponse
        /// Every connection refused the exchange without having looked at it, as often as that is repeated.
        case refused
        /// As many exchanges wait for a connection as may, or the pools have all the connections that they may.
        case poolExhausted
        /// The calling task was cancelled.
        case cancelled
        /// The pool is shut down.
        case shutDown
    }

    /// What went wrong.
    package let code: Code
    /// Whether any byte of the request may have reached the peer; if not, repeating it cannot duplicate it.
    package let requestSent: Bool
    /// What lies beneath, for the log.
    package let cause: (any Error)?

    /// Creates an error.
    ///
    /// - Parameters:
    ///   - code: what went wrong.
    ///   - requestSent: whether any byte of the request may have reached the peer.
    ///   - cause: what lies beneath.
    package init(code: Code, requestSent: Bool, cause: (any Error)? = nil) {
        self.code = code
        self.requestSent = requestSent
        self.cause = cause
    }
}
