import Synchronization

/// Metrics of one name that differ in their labels' values, each made once.
package final class MetricFamily<Key: Hashable & Sendable, Metric: Sendable>: Sendable {
    private let make: @Sendable (Key) -> Metric
    private let members = Mutex<[Key: Metric]>([:])

    /// A family whose members are made on first use; the set of keys must be bounded.
    package init(make: @escaping @Sendable (Key) -> Metric) {
        self.make = make
    }

    /// The member of a key.
    package subscript(key: Key) -> Metric {
        self.members.withLock { members in
            if let member = members[key] { return member }
            let member = self.make(key)
            members[key] = member
            return member
        }
    }
}
