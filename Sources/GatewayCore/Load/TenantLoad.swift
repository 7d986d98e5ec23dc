import Synchronization

/// What one tenant has in flight: requests, and of those that are made into many calls, these.
///
/// It outlives the pictures of the directory, so that requests that began under an earlier one still count.
package final class TenantLoad: Sendable {
    private static let lastNumber = Atomic(0)

    /// A small number that no other tenant of the process has, from 1.
    package let number: Int
    private let count = Atomic(0)

    /// A tenant without requests.
    package init() {
        self.number = Self.lastNumber.add(1, ordering: .relaxed).newValue
    }

    /// Calls in flight.
    package var inFlight: Int {
        self.count.load(ordering: .relaxed)
    }

    /// Counts a request of so many calls unless the limit is reached.
    func enter(calls: Int, limit: Int) -> Bool {
        guard self.count.add(calls, ordering: .relaxed).oldValue < limit else {
            self.leave(calls: calls)
            return false
        }
        return true
    }

    func leave(calls: Int) {
        self.count.subtract(calls, ordering: .relaxed)
    }
}
