/// The policies in force for a tenant, and those that were before.
///
/// Each bucket notes the version of the policies that it was charged under. What is used up under former ones is carried
/// over when the bucket is next looked at, change by change, as of the moment of each.
package final class PolicyHistory: Sendable {
    /// Policies that are in force no longer.
    struct Former: Sendable, Hashable {
        /// The policies.
        var policies: LimitPolicies
        /// Until when they were, in nanoseconds since 1970.
        var until: Int64
    }

    /// How many former policies are remembered; a bucket that has not been charged since counts as charged under the
    /// first of them.
    static let maxFormer = 16

    /// The policies in force.
    package let policies: LimitPolicies
    /// Their number; it wraps.
    let version: UInt16
    /// The last policies before them, the oldest first.
    let former: [Former]

    /// Policies without a past.
    package convenience init(_ policies: LimitPolicies) {
        self.init(policies, version: 0, former: [])
    }

    init(_ policies: LimitPolicies, version: UInt16, former: [Former]) {
        self.policies = policies
        self.version = version
        self.former = former
    }

    /// The history once other policies are in force; the same where they are no others.
    package func followed(by policies: LimitPolicies, at time: Timestamp) -> PolicyHistory {
        guard policies != self.policies else { return self }
        let former = self.former + [Former(policies: self.policies, until: time.microseconds * 1_000)]
        return PolicyHistory(policies, version: self.version &+ 1, former: former.suffix(Self.maxFormer))
    }

    /// Whether a bucket's version is one that came after these policies, as a request meets that began before a change.
    func isBehind(_ version: UInt16) -> Bool {
        Int16(bitPattern: version &- self.version) > 0
    }

    /// The arrival times under the policies in force of a bucket that was charged under an earlier version.
    @inline(never)  // Once for each bucket and change.
    func carried(_ arrivals: SIMD4<Int64>, from version: UInt16, in scope: LimitScope) -> SIMD4<Int64> {
        let changes = min(Int(self.version &- version), self.former.count)
        var arrivals = arrivals
        for index in self.former.indices.suffix(changes) {
            let next = index + 1 < self.former.count ? self.former[index + 1].policies : self.policies
            let former = self.former[index]
            arrivals = Self.carried(arrivals, from: former.policies[scope], to: next[scope], at: former.until)
        }
        return arrivals
    }

    /// Each new policy takes over from the former one that is the same; else from the one of the next slower rate, under
    /// which more is used up than would be under the new one; else from the slowest.
    private static func carried(
        _ arrivals: SIMD4<Int64>,
        from former: [RatePolicy],
        to policies: [RatePolicy],
        at time: Int64
    ) -> SIMD4<Int64> {
        guard former != policies else { return arrivals }
        var carried = SIMD4<Int64>.zero
        for (index, policy) in policies.enumerated() {
            if let same = former.firstIndex(of: policy) {
                carried[index] = arrivals[same]
                continue
            }
            let slower = former.indices.filter { former[$0].interval >= policy.interval }
                .min { former[$0].interval < former[$1].interval }
            guard let source = slower ?? former.indices.max(by: { former[$0].interval < former[$1].interval }) else {
                continue
            }
            carried[index] = GCRA(former[source]).carried(arrivals[source], to: GCRA(policy), at: time)
        }
        return carried
    }
}
