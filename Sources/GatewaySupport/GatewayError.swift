/// A failure inside the gateway, as opposed to an expected refusal.
package struct GatewayError: Error, Sendable {
    /// The kinds. Metrics may use them, since the set is closed.
    package enum Code: String, Sendable, Hashable {
        /// The store did not answer, or refused to write.
        case storeUnavailable = "store_unavailable"
        /// Too many of the same operation are running. A later attempt may succeed.
        case overloaded
        case notFound = "not_found"
        case conflict
        /// The caller's `If-Match` names another state.
        case preconditionFailed = "precondition_failed"
        /// Nothing can be recorded, so nothing is done.
        case auditUnavailable = "audit_unavailable"
        case invalid
        case cancelled
        /// The store's answer was lost, so a change may have been made. Repeating it blindly may make it twice.
        case outcomeUnknown = "outcome_unknown"
    }

    package var code: Code
    /// Shown to the caller. Never contains a token, key or payload.
    package var message: String
    /// Logged, never shown.
    package var cause: (any Error)?

    package init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    /// True if the change may have been stored despite the error.
    package var leavesOutcomeUnknown: Bool { self.cause is CommitOutcomeUnknown }
}

/// The cause of a `storeUnavailable` after which the transaction may have been committed. Its unique keys show the
/// outcome.
package struct CommitOutcomeUnknown: Error, CustomStringConvertible {
    package init() {}

    package var description: String { "the connection was lost during COMMIT" }
}
