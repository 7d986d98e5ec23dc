import Synchronization

/// The buckets of one limit scope, spread over shards so that event loops rarely meet at a lock.
///
/// A bucket that is full again says nothing and is dropped, at the latest when its shard has doubled since the last
/// sweep. A shard that is still too large then drops its fullest buckets: memory stays bounded, and those forget least.
final class LimitTable: Sendable {
    /// The arrival times of two policies: most scopes have no more, and a device is worth every byte.
    private struct Arrivals {
        var first: Int64 = 0
        var second: Int64 = 0

        subscript(index: Int) -> Int64 {
            get { index == 0 ? self.first : self.second }
            set { if index == 0 { self.first = newValue } else { self.second = newValue } }
        }

        var latest: Int64 { max(self.first, self.second) }
    }

    private struct Shard {
        /// Buckets by key; the second table is for the third and fourth policy of a scope that has them.
        var tables: [[LimitKey: Arrivals]] = [[:], [:]]
        var sweepAt: [Int] = [LimitTable.firstSweep, LimitTable.firstSweep]

        /// What each table that the policies need knows of a key.
        func arrivals(of key: LimitKey, policyCount: Int) -> Known {
            Known(
                first: self.tables[0][key],
                second: policyCount > 2 ? self.tables[1][key] : nil,
                indices: 0..<(policyCount + 1) / 2
            )
        }
    }

    /// A key's arrival times, `nil` where a table has none.
    private struct Known {
        var first: Arrivals?
        var second: Arrivals?
        /// The tables that matter.
        var indices: Range<Int>

        subscript(table: Int) -> Arrivals? { table == 0 ? self.first : self.second }
    }

    /// What a charge achieved.
    struct Charge {
        /// How many events fit and were charged.
        var granted: Int
        /// Nanoseconds until one more fits under every policy.
        var wait: Int64
    }

    private static let shardCount = 64
    private static let firstSweep = 256

    private let shards: [ShardBox]
    private let maxEntriesPerShard: Int

    /// A `Mutex` can't be copied into an array, so each sits in an object of its own.
    private final class ShardBox: Sendable {
        let shard = Mutex(Shard())
    }

    /// - Parameter maxEntries: the bound on live buckets over all shards.
    init(maxEntries: Int) {
        self.maxEntriesPerShard = max(Self.firstSweep, maxEntries / Self.shardCount)
        self.shards = (0..<Self.shardCount).map { _ in ShardBox() }
    }

    /// Charges up to so many events, as many as every policy admits.
    func charge(_ key: LimitKey, _ count: Int, policies: [RatePolicy], now: Int64) -> Charge {
        self.withShard(of: key) { shard in
            // Each table is asked once and told once: a look-up costs more than the arithmetic.
            let known = shard.arrivals(of: key, policyCount: policies.count)
            var granted = count
            for (index, policy) in policies.enumerated() {
                granted = min(granted, GCRA(policy).available(known[index / 2]?[index % 2] ?? 0, at: now))
            }
            var wait: Int64 = 0
            for table in known.indices {
                if known[table] == nil {
                    guard granted > 0 else { continue }
                    self.makeRoom(in: &shard, table: table, now: now)
                }
                // Written after a refusal too: a time from before the clock was set back must not stand until then.
                var arrivals = known[table] ?? Arrivals()
                for index in table * 2..<min(table * 2 + 2, policies.count) {
                    let gcra = GCRA(policies[index])
                    arrivals[index % 2] = gcra.charged(arrivals[index % 2], granted, at: now)
                    wait = max(wait, gcra.waitForOne(arrivals[index % 2], at: now))
                }
                shard.tables[table][key] = arrivals
            }
            return Charge(granted: granted, wait: wait)
        }
    }

    /// Gives back events that were charged a moment ago and did not happen.
    func refund(_ key: LimitKey, _ count: Int, policies: [RatePolicy]) {
        guard count > 0 else { return }
        self.withShard(of: key) { shard in
            for (index, policy) in policies.enumerated() {
                guard let arrival = shard.tables[index / 2][key]?[index % 2] else { continue }
                shard.tables[index / 2][key]?[index % 2] = GCRA(policy).refunded(arrival, count)
            }
        }
    }

    /// Nanoseconds until one event fits under every policy; 0 if one fits now.
    func wait(_ key: LimitKey, policies: [RatePolicy], now: Int64) -> Int64 {
        self.charge(key, 0, policies: policies, now: now).wait
    }

    /// What is left under each policy.
    func status(_ key: LimitKey, policies: [RatePolicy], now: Int64) -> [QuotaStatus] {
        self.withShard(of: key) { shard in
            policies.enumerated()
                .map { index, policy in
                    let gcra = GCRA(policy)
                    let arrival = shard.tables[index / 2][key]?[index % 2] ?? 0
                    let remaining = gcra.available(arrival, at: now)
                    let wait =
                        remaining > 0 ? gcra.waitUntilFull(arrival, at: now) : gcra.waitForOne(arrival, at: now)
                    return QuotaStatus(policy: policy, remaining: remaining, resetSeconds: LimitTable.seconds(wait))
                }
        }
    }

    /// How many buckets are held.
    var count: Int {
        self.shards.reduce(0) { sum, box in
            sum + box.shard.withLock { $0.tables.reduce(0) { $0 + $1.count } }
        }
    }

    /// How many tables of buckets there are for one scope.
    static let tableCount = 2

    /// One bucket, as it is kept while the process does not run.
    struct Bucket {
        var key: LimitKey
        /// The arrival times of two policies.
        var arrivals: (Int64, Int64)
    }

    /// Hands out the buckets of a table that are not full, each shard as it is at one moment.
    func forEachBucket(ofTable table: Int, now: Int64, _ body: (Bucket) -> Void) {
        for box in self.shards {
            // A copy, so that the lock is not held meanwhile.
            for (key, arrivals) in box.shard.withLock({ $0.tables[table] }) where arrivals.latest > now {
                body(Bucket(key: key, arrivals: (arrivals.first, arrivals.second)))
            }
        }
    }

    /// Takes back a bucket that was handed out earlier, beside what has been charged since.
    ///
    /// - Returns: whether there was room for it.
    func restore(_ bucket: Bucket, toTable table: Int) -> Bool {
        self.withShard(of: bucket.key) { shard in
            let known = shard.tables[table][bucket.key]
            guard known != nil || shard.tables[table].count < self.maxEntriesPerShard else { return false }
            shard.tables[table][bucket.key] = Arrivals(
                first: max(bucket.arrivals.0, known?.first ?? 0),
                second: max(bucket.arrivals.1, known?.second ?? 0)
            )
            return true
        }
    }

    /// Makes room for so many buckets over all shards, so that none is moved while they come.
    func reserve(_ count: Int, inTable table: Int) {
        // Uniform keys spread evenly; a little more saves the shards that get a few more.
        let share = min(self.maxEntriesPerShard, count / Self.shardCount + count / Self.shardCount / 8)
        for box in self.shards {
            box.shard.withLock { $0.tables[table].reserveCapacity(share) }
        }
    }

    /// Nanoseconds as whole seconds, rounded up.
    static func seconds(_ nanoseconds: Int64) -> Int {
        Int((nanoseconds + 999_999_999) / 1_000_000_000)
    }

    private func withShard<Result>(of key: LimitKey, _ body: (inout Shard) -> Result) -> Result {
        self.shards[key.shard(of: Self.shardCount)].shard.withLock { shard in body(&shard) }
    }

    private func makeRoom(in shard: inout Shard, table: Int, now: Int64) {
        guard shard.tables[table].count >= shard.sweepAt[table] else { return }
        shard.tables[table] = shard.tables[table].filter { $0.value.latest > now }
        if shard.tables[table].count >= self.maxEntriesPerShard {
            var latest = shard.tables[table].values.map(\.latest)
            latest.sort()
            let median = latest[latest.count / 2]
            shard.tables[table] = shard.tables[table].filter { $0.value.latest > median }
        }
        shard.sweepAt[table] = min(
            self.maxEntriesPerShard,
            max(Self.firstSweep, shard.tables[table].count * 2)
        )
    }
}
