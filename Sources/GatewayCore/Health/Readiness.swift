import Synchronization

/// Whether the gateway should get traffic: from the end of its start until it drains.
package final class Readiness: Sendable {
    private let ready = Atomic(false)

    /// Not ready yet.
    package init() {}

    /// Whether traffic is welcome.
    package var isReady: Bool { self.ready.load(ordering: .relaxed) }

    /// Says whether traffic is welcome from now on.
    package func set(_ isReady: Bool) {
        self.ready.store(isReady, ordering: .relaxed)
    }
}
