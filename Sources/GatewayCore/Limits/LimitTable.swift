import Synchronization

/// The buckets of one limit scope, spread over shards so that event loops rarely meet at a lock.
///
/// A full bucket carries no information and is dropped, at the latest when its shard has grown by half since the last
/// sweep. A shard that is still too large then drops its fullest buckets. Memory stays bounded, and the least is
/// forgotten.
final class LimitTable: Sendable {
    private struct Shard {
        /// Buckets by key. The second table holds the third and fourth policy of scopes that have so many.
        var tables = [Slots(), Slots()]

        func entry(_ key: LimitKey, _ policies: [RatePolicy]) -> Entry {
            var arrivals = SIMD4<Int64>.zero
            let first = self.tables[0].index(of: key)
            if let first {
                let slot = self.tables[0][first]
                (arrivals[0], arrivals[1]) = (slot.first, slot.second)
            }
            let second = self.tables[1].index(of: key)
            if let second {
                let slot = self.tables[1][second]
                (arrivals[2], arrivals[3]) = (slot.first, slot.second)
            }
            return Entry(bucket: LimitBucket(arrivals: arrivals, policies: policies), first: first, second: second)
        }

        mutating func store(_ entry: Entry, _ key: LimitKey, bound: Int, now: Int64) {
            let arrivals = entry.bucket.arrivals
            for (table, index) in [entry.first, entry.second].enumerated() {
                let slot = Slots.Slot(key: key, first: arrivals[table * 2], second: arrivals[table * 2 + 1])
                if let index {
                    self.tables[table][index] = slot
                } else if slot.latest > now {
                    self.tables[table].insert(slot, bound: bound, now: now)
                }
            }
        }
    }

    /// A key's bucket and its places in the two tables.
    private struct Entry {
        var bucket: LimitBucket
        var first: Int?
        var second: Int?
    }

    private static let shardCount = 64
    private static let minEntriesPerShard = 256

    private let scope: LimitScope
    private let shards: [ShardBox]
    private let maxEntriesPerShard: Int

    /// A `Mutex` can't be copied into an array, so each has an object of its own.
    private final class ShardBox: Sendable {
        let shard = Mutex(Shard())
    }

    init(_ scope: LimitScope, maxEntries: Int) {
        self.scope = scope
        self.maxEntriesPerShard = max(Self.minEntriesPerShard, maxEntries / Self.shardCount)
        self.shards = (0..<Self.shardCount).map { _ in ShardBox() }
    }

    /// Charges up to so many events, as many as every policy admits. Returns their number and the bucket after it.
    func charge(
        _ key: LimitKey,
        _ count: Int,
        under policies: LimitPolicies,
        now: Int64
    ) -> (granted: Int, bucket: LimitBucket) {
        self.withShard(of: key, policies) { shard, key in
            var entry = shard.entry(key, policies[self.scope])
            let granted = entry.bucket.available(upTo: count, at: now)
            // Also written after a refusal, so that a time from before the clock was set back does not stay.
            entry.bucket.charge(granted, at: now)
            shard.store(entry, key, bound: self.maxEntriesPerShard, now: now)
            return (granted: granted, bucket: entry.bucket)
        }
    }

    /// Refunds events that were charged a moment ago and did not happen.
    func refund(_ key: LimitKey, _ count: Int, under policies: LimitPolicies, now: Int64) {
        guard count > 0 else { return }
        self.withShard(of: key, policies) { shard, key in
            var entry = shard.entry(key, policies[self.scope])
            // A bucket that has been dropped meanwhile is full.
            guard entry.first != nil || entry.second != nil else { return }
            entry.bucket.refund(count)
            shard.store(entry, key, bound: self.maxEntriesPerShard, now: now)
        }
    }

    func bucket(_ key: LimitKey, under policies: LimitPolicies) -> LimitBucket {
        self.withShard(of: key, policies) { shard, key in shard.entry(key, policies[self.scope]).bucket }
    }

    var count: Int {
        self.shards.reduce(0) { $0 + $1.shard.withLock { $0.tables.reduce(0) { $0 + $1.count } } }
    }

    static func seconds(_ nanoseconds: Int64) -> Int {
        Int((nanoseconds + 999_999_999) / 1_000_000_000)
    }

    private func withShard<Result>(
        of key: LimitKey,
        _ policies: LimitPolicies,
        _ body: (inout Shard, LimitKey) -> Result
    ) -> Result {
        let key = policies.bucketKey(key, self.scope)
        return self.shards[key.shard(of: Self.shardCount)].shard.withLock { shard in body(&shard, key) }
    }
}

extension LimitTable {
    /// Buckets by key in one array, each with two arrival times, because most scopes have at most two policies.
    ///
    /// Open addressing with linear probing. A key is a uniform hash, so its place is the hash scaled to the array's
    /// size. The array is at most three quarters full, so a bucket is found in a cache line or two. Buckets never move.
    /// Dropped ones are left out when the array is rebuilt.
    struct Slots {
        struct Slot {
            let key: LimitKey
            var first: Int64
            var second: Int64

            fileprivate static let empty = Slot(key: .none, first: 0, second: 0)

            /// The time at which both policies are full again.
            var latest: Int64 { max(self.first, self.second) }
            fileprivate var isEmpty: Bool { self.key.low == 0 }
        }

        private static let minRoom = 6

        private var slots: [Slot] = []
        private(set) var count = 0

        /// The number of buckets that fit before the array is rebuilt.
        private var room: Int { self.slots.count / 4 * 3 }

        func index(of key: LimitKey) -> Int? {
            guard self.count > 0 else { return nil }
            let index = self.place(of: key)
            return self.slots[index].isEmpty ? nil : index
        }

        subscript(index: Int) -> Slot {
            get { self.slots[index] }
            set { self.slots[index] = newValue }
        }

        private var all: some Sequence<Slot> { self.slots.lazy.filter { !$0.isEmpty } }

        /// Adds a bucket for a key that has none.
        ///
        /// If there is no room, full buckets are dropped first, and then the fuller half of the others if the bound
        /// needs it.
        mutating func insert(_ slot: Slot, bound: Int, now: Int64) {
            if self.count >= min(self.room, bound) {
                var oldest = now
                var kept = self.all.reduce(0) { $0 + ($1.latest > oldest ? 1 : 0) }
                if kept >= bound {
                    let latest = self.all.map(\.latest).filter { $0 > now }.sorted()
                    oldest = latest[latest.count / 2]
                    kept = latest.count / 2
                }
                self.rebuild(room: min(bound, max(Self.minRoom, kept + kept / 2)), keeping: { $0.latest > oldest })
            }
            self.put(slot)
        }

        private mutating func rebuild(room: Int, keeping isKept: (Slot) -> Bool) {
            let former = self
            self.slots = Array(repeating: .empty, count: (room + 2) / 3 * 4)
            self.count = 0
            for slot in former.all where isKept(slot) { self.put(slot) }
        }

        private mutating func put(_ slot: Slot) {
            self.slots[self.place(of: slot.key)] = slot
            self.count += 1
        }

        /// Returns the place of a key's bucket, or the free one that it would get.
        private func place(of key: LimitKey) -> Int {
            var index = Int(truncatingIfNeeded: key.low.multipliedFullWidth(by: UInt64(self.slots.count)).high)
            while !self.slots[index].isEmpty, self.slots[index].key != key {
                index += 1
                if index == self.slots.count { index = 0 }
            }
            return index
        }
    }
}
