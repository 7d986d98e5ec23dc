import Synchronization

/// One tenant's requests in flight.
///
/// It outlives the pictures of the directory, so that requests that began under an earlier one still count.
package final class TenantLoad: Sendable {
    private let count = Atomic(0)

    /// A tenant without requests.
    package init() {}

    /// Requests in flight.
    package var inFlight: Int {
        self.count.load(ordering: .relaxed)
    }

    /// Counts a request unless the limit is reached.
    func enter(limit: Int) -> Bool {
        guard self.count.add(1, ordering: .relaxed).newValue <= limit else {
            self.leave()
            return false
        }
        return true
    }

    func leave() {
        self.count.subtract(1, ordering: .relaxed)
    }
}
