import Synchronization

/// Metrics of one name that differ in their labels' values, each made once.
package final class MetricFamily<Key: Hashable & Sendable, Metric: Sendable>: Sendable {
    private struct State {
        var members: [Key: Metric] = [:]
        /// The member asked for last: most requests are alike, and comparing a key costs less than hashing it.
        var latest: (key: Key, member: Metric)?
    }

    private let make: @Sendable (Key) -> Metric
    private let state = Mutex(State())

    /// A family whose members are made on first use; the set of keys must be bounded.
    package init(make: @escaping @Sendable (Key) -> Metric) {
        self.make = make
    }

    /// The member of a key.
    package subscript(key: Key) -> Metric {
        self.state.withLock { state in
            if let latest = state.latest, latest.key == key { return latest.member }
            let member = state.members[key] ?? self.make(key)
            state.members[key] = member
            state.latest = (key, member)
            return member
        }
    }
}
