import GatewayCore
import Synchronization

/// Buckets that had no room for one message in Redis's last answer, so that it is not asked again while they must
/// refuse.
///
/// An entry lasts until its bucket has room for one message, and at most for a second of monotonic time. Example: for a
/// bucket that refuses for a minute, each replica asks once a second. No caller can make Redis answer for a used-up
/// quota more often. A changed policy changes the buckets' names, so no entry survives it.
final class RefusalCache: Sendable {
    /// A bucket's name: its scope and its key under the policies in force.
    struct BucketName: Hashable {
        var scope: LimitScope
        var key: LimitKey

        init(_ scope: LimitScope, _ key: LimitKey, _ policies: LimitPolicies) {
            (self.scope, self.key) = (scope, policies.bucketKey(key, scope))
        }
    }

    struct Entry: Sendable {
        /// The tenant's bucket at the time of the refusal, and the server's time.
        var tenant: LimitBucket
        var serverTime: Timestamp
        var notedAt: Uptime
        /// The nanoseconds from then until the refusing bucket has room for one message.
        var wait: Int64

        fileprivate var end: Uptime {
            self.notedAt.advanced(by: min(.nanoseconds(self.wait), RefusalCache.longest))
        }

        /// This process's estimate of the server's time at a moment.
        func serverTime(at now: Uptime) -> Timestamp {
            self.serverTime.advanced(by: now - self.notedAt)
        }
    }

    static let longest = Duration.seconds(1)
    /// About 2 MB. Beyond it, only refusals of tenants' own buckets are added.
    static let maxEntries = 10_000

    private let entries = Mutex<[BucketName: Entry]>([:])
    private let count = Atomic(0)

    /// True if no look-up can find anything. Costs one load.
    var isEmpty: Bool { self.count.load(ordering: .relaxed) == 0 }

    func entry(_ name: BucketName, at now: Uptime) -> Entry? {
        if self.isEmpty { return nil }
        return self.entries.withLock { entries in
            guard let entry = entries[name], now < entry.end else { return nil }
            return entry
        }
    }

    func note(_ reckoning: LimitReckoning, at now: Uptime) {
        guard !reckoning.refusedBuckets.isEmpty else { return }
        self.update { entries in
            for bucket in reckoning.refusedBuckets {
                guard entries.count < Self.maxEntries || bucket.name.scope == .tenant || entries[bucket.name] != nil
                else { continue }
                entries[bucket.name] = Entry(
                    tenant: reckoning.tenant,
                    serverTime: reckoning.now,
                    notedAt: now,
                    wait: bucket.wait
                )
            }
        }
    }

    func removeExpired(at now: Uptime) {
        if self.isEmpty { return }
        self.update { entries in entries = entries.filter { now < $0.value.end } }
    }

    func removeAll() { self.update { $0 = [:] } }

    private func update(_ body: (inout [BucketName: Entry]) -> Void) {
        self.entries.withLock { entries in
            body(&entries)
            self.count.store(entries.count, ordering: .relaxed)
        }
    }
}
