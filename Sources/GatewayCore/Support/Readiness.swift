import Synchronization

/// Decides if load balancers should send traffic: from the end of the start until the gateway drains, unless the audit is
/// stalled and nothing is sent.
package final class Readiness: Sendable {
    /// The reason to send no traffic, in words for operators.
    package enum Refusal: String, Sendable, CaseIterable {
        /// The listener does not serve yet, or is about to close.
        case notServing = "The gateway starts or drains"
        /// The start waits for PostgreSQL.
        case storeAwaited = "The gateway starts: it waits for its store"
        /// ``AuditLog/isStalled(at:)``.
        case auditStalled = "The audit log can't be written, so nothing is sent"
    }

    private let ready = Atomic(false)
    private let held = Atomic(false)
    private let audit: AuditLog?

    /// Begins as not ready. The audit is `nil` if nothing is recorded.
    package init(audit: AuditLog? = nil) {
        self.audit = audit
    }

    package func refusal(at now: Uptime) -> Refusal? {
        guard self.isServing else { return .notServing }
        return self.audit?.isStalled(at: now) == true ? .auditStalled : nil
    }

    package var isServing: Bool { self.ready.load(ordering: .relaxed) && !self.held.load(ordering: .acquiring) }

    package func set(_ isReady: Bool) {
        self.ready.store(isReady, ordering: .relaxed)
    }

    /// Keeps traffic away until ``release()``, whatever ``set(_:)`` says, because a part beside the listener still starts.
    package func hold() {
        self.held.store(true, ordering: .releasing)
    }

    package func release() {
        self.held.store(false, ordering: .releasing)
    }
}
