import Synchronization

/// Whether the gateway should get traffic: from the end of its start until it drains, unless nothing can be recorded and
/// so nothing is sent.
package final class Readiness: Sendable {
    /// Why traffic is not welcome, in words for operators.
    package enum Refusal: String, Sendable, CaseIterable {
        /// The listener is not there yet, or not for long.
        case notServing = "The gateway starts or drains"
        /// The start waits for PostgreSQL.
        case storeAwaited = "The gateway starts: it waits for its store"
        /// ``AuditLog/isStalled(at:)``.
        case auditStalled = "The audit log can't be written, so nothing is sent"
    }

    private let ready = Atomic(false)
    private let held = Atomic(false)
    private let audit: AuditLog?

    /// Not ready yet; `nil` where nothing is recorded.
    package init(audit: AuditLog? = nil) {
        self.audit = audit
    }

    package func refusal(at now: ContinuousClock.Instant) -> Refusal? {
        guard self.isServing else { return .notServing }
        return self.audit?.isStalled(at: now) == true ? .auditStalled : nil
    }

    package var isServing: Bool { self.ready.load(ordering: .relaxed) && !self.held.load(ordering: .acquiring) }

    package func set(_ isReady: Bool) {
        self.ready.store(isReady, ordering: .relaxed)
    }

    /// Keeps traffic away, whatever ``set(_:)`` is told, until ``release()``: something is being set up beside the listener.
    package func hold() {
        self.held.store(true, ordering: .releasing)
    }

    package func release() {
        self.held.store(false, ordering: .releasing)
    }
}
