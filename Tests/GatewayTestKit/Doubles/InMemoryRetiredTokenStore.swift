package import GatewayCore

/// A list of retired tokens that lives as long as the test, in a store that can refuse. Replicas share it.
package final class InMemoryRetiredTokenStore: RetiredTokenStore {
    /// One stored entry.
    package struct Entry: Sendable {
        package var owner: RetiredTokenOwner
        package var key: UInt64
        package var token: RetiredToken
        package var reportedAt: Timestamp
        package var replacement: UInt16
        package var due: Int
        package var position: Int?
    }

    private struct State {
        var entries: [Entry] = []
        var tallies: [TenantID: [Int: RetiredTokenCounts.Tally]] = [:]
        var removals: [(tenant: TenantID, key: UInt64, time: Timestamp)] = []
        var lastPosition = 0
        var refuses = false
        var batches: [Int] = []
        var epoch = "first"

        mutating func remove(_ key: UInt64, of tenant: TenantID, at now: Timestamp) -> Bool {
            guard let index = self.entries.firstIndex(where: { $0.owner.tenant == tenant && $0.key == key }) else {
                return false
            }
            self.entries.remove(at: index)
            self.removals.append((tenant, key, now))
            return true
        }
    }

    private let state = Observed(State())
    private let clock: any WallClock

    /// The clock is the store's own.
    package init(clock: any WallClock) {
        self.clock = clock
    }

    /// Makes it another store with the same content.
    package func restore(epoch: String) { self.state.change { $0.epoch = epoch } }

    package var entries: [Entry] { self.state.current.entries }

    /// How many changes each transaction made.
    package var batches: [Int] { self.state.current.batches }

    package func refuse(_ refuses: Bool = true) { self.state.change { $0.refuses = refuses } }

    package func wait(forEntries count: Int) async throws { try await self.state.wait { $0.entries.count == count } }

    package func load() async throws(GatewayError) -> (entries: [RetiredTokenEntry], readAt: Timestamp) {
        let entries = self.state.current.entries
            .map { entry in
                RetiredTokenEntry(
                    tenant: entry.owner.tenant,
                    key: entry.key,
                    state: entry.token.state,
                    reportedAt: entry.reportedAt,
                    replacement: entry.replacement
                )
            }
        return (entries, self.clock.now())
    }

    package func apply(_ changes: [RetiredTokenChange]) async throws(GatewayError) {
        try self.change { state in
            state.batches.append(changes.count)
            for change in changes { self.apply(change, to: &state) }
        }
    }

    package func remove(_ key: UInt64, of owner: RetiredTokenOwner) async throws(GatewayError) -> Bool {
        try self.change { $0.remove(key, of: owner.tenant, at: self.clock.now()) }
    }

    package func settle(newsSince moment: Timestamp) async throws(GatewayError) -> RetiredTokenNews {
        try self.change { state in
            let bucket = self.bucket
            let counts = state.tallies.mapValues { RetiredTokenCounts($0) }
            let spiking = Set(counts.filter { $0.value.endsSpike(bucket) }.map(\.key))
            for index in state.entries.indices {
                let entry = state.entries[index]
                let (tenant, isDead) = (entry.owner.tenant, entry.token.state == .unregistered)
                guard entry.position == nil, entry.token.state != .suspected else { continue }
                let isDue = entry.due <= bucket
                if isDead, spiking.contains(tenant) || isDue && counts[tenant]?.isSuspect(dueIn: entry.due) == true {
                    state.entries[index].token.state = .suspected
                } else if isDue {
                    state.lastPosition += 1
                    state.entries[index].position = state.lastPosition
                }
            }
            let removed = Dictionary(grouping: state.removals.filter { $0.time >= moment }, by: \.tenant)
            return RetiredTokenNews(
                spiking: spiking,
                removed: removed.mapValues { $0.map(\.key) },
                readAt: self.clock.now()
            )
        }
    }

    package func feed(
        of owner: RetiredTokenOwner,
        after cursor: RetiredTokenCursor?,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed {
        let state = self.state.current
        guard cursor == nil || cursor?.epoch == state.epoch else { throw GatewayError(.invalid, "cursor is stale") }
        let position = Int(cursor?.position ?? 0)
        let fed = state.entries.filter { $0.owner.tenant == owner.tenant && $0.position ?? 0 > position }
            .sorted { $0.position ?? 0 < $1.position ?? 0 }
        let shown = fed.prefix(limit)
        return RetiredTokenFeed(
            tokens: shown.map(\.token),
            cursor: RetiredTokenCursor(epoch: state.epoch, position: Int64(shown.last?.position ?? position)),
            hasMore: fed.count > limit
        )
    }

    package func trim(reportedBefore cutoff: Timestamp, keeping maxEntries: Int) async throws(GatewayError) {
        try self.change { state in
            let sorted = state.entries.sorted { $0.reportedAt < $1.reportedAt }
            let kept = sorted.filter { $0.reportedAt >= cutoff }.suffix(maxEntries)
            for entry in sorted.prefix(sorted.count - kept.count) {
                _ = state.remove(entry.key, of: entry.owner.tenant, at: self.clock.now())
            }
        }
    }

    private var bucket: Int { self.clock.now().seconds / Int(RetiredTokenCounts.bucketDuration / .seconds(1)) }

    private func change<Result: Sendable>(_ body: (inout State) -> Result) throws(GatewayError) -> Result {
        let result = self.state.change { $0.refuses ? nil : body(&$0) }
        guard let result else { throw GatewayError(.storeUnavailable, "The list refuses, as it was told to") }
        return result
    }

    private func apply(_ change: RetiredTokenChange, to state: inout State) {
        switch change {
        case .report(let owner, let key, let token, let replacement):
            let isDead = token.state == .unregistered
            var entry = Entry(
                owner: owner,
                key: key,
                token: token,
                reportedAt: token.since,
                replacement: replacement,
                due: self.bucket + (isDead ? RetiredTokenCounts.bucketsUntilDue : 0)
            )
            if let index = state.entries.firstIndex(where: { $0.owner.tenant == owner.tenant && $0.key == key }) {
                let before = state.entries.remove(at: index)
                let isSame = before.token.state == token.state && before.replacement == replacement
                if isSame { (entry.due, entry.position) = (before.due, before.position) }
                if isSame || isDead && before.token.state == .suspected { entry.token.since = before.token.since }
            }
            state.entries.append(entry)
        case .remove(let owner, let key):
            _ = state.remove(key, of: owner.tenant, at: self.clock.now())
        case .count(let owner, let tally):
            state.tallies[owner.tenant, default: [:]][self.bucket, default: RetiredTokenCounts.Tally()] += tally
        }
    }
}
