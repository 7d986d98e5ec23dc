/// Metrics of one name that differ in their labels' values, each made once.
///
/// Outside this module a look-up is not compiled for its key and costs ten times more: what every request needs there is
/// looked up beforehand.
package struct MetricFamily<Key: Hashable & Sendable, Metric: Sendable>: Sendable {
    private let make: @Sendable (Key) -> Metric
    private var members: [Key: Metric] = [:]
    /// The member asked for last: most requests are alike, and comparing a key costs less than hashing it.
    private var latest: (key: Key, member: Metric)?

    /// A family whose members are made on first use; the set of keys must be bounded.
    package init(make: @escaping @Sendable (Key) -> Metric) {
        self.make = make
    }

    /// The member of a key.
    package mutating func member(of key: Key) -> Metric {
        if let member = self.known(key) { return member }
        let member = self.make(key)
        self.members[key] = member
        self.latest = (key, member)
        return member
    }

    /// The member of a tenant's key, or of another one when the key is new and tenants have no more room.
    ///
    /// - Parameters:
    ///   - key: what is measured.
    ///   - labels: says whether there is room.
    ///   - shared: the same with the label that tenants share.
    /// - Returns: the member.
    mutating func member(of key: Key, in labels: TenantLabels, else shared: @autoclosure () -> Key) -> Metric {
        if let member = self.known(key) { return member }
        let shared = shared()
        return self.member(of: key == shared || labels.takeRoom() ? key : shared)
    }

    /// The member of a key that was asked for before; `nil` for a new one.
    package mutating func known(_ key: Key) -> Metric? {
        if let latest = self.latest, latest.key == key { return latest.member }
        guard let member = self.members[key] else { return nil }
        self.latest = (key, member)
        return member
    }
}
