import Synchronization

/// Whether the gateway should get traffic: from the end of its start until it drains.
package final class Readiness: Sendable {
    private let ready = Atomic(false)
    private let held = Atomic(false)

    /// Not ready yet.
    package init() {}

    /// Whether traffic is welcome.
    package var isReady: Bool { self.ready.load(ordering: .relaxed) && !self.held.load(ordering: .acquiring) }

    /// Says whether traffic is welcome from now on.
    package func set(_ isReady: Bool) {
        self.ready.store(isReady, ordering: .relaxed)
    }

    /// Keeps traffic away, whatever ``set(_:)`` is told, until ``release()``: something is being set up beside the listener.
    package func hold() {
        self.held.store(true, ordering: .releasing)
    }

    /// Ends what ``hold()`` began.
    package func release() {
        self.held.store(false, ordering: .releasing)
    }
}
