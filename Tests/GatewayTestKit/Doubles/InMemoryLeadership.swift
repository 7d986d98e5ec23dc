import GatewayCore
import Synchronization

/// A lead that is held until it is resigned.
package final class InMemoryLeadership: Leadership {
    private let isLeading = Atomic(true)

    package init() {}

    package func isHeld() async -> Bool { self.isLeading.load(ordering: .relaxed) }

    package func resign() async { self.isLeading.store(false, ordering: .relaxed) }
}
