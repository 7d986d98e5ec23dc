import GatewayCore
import Synchronization

/// A bucket's name: its scope and its key under the policies in force.
struct BucketName: Hashable {
    var scope: LimitScope
    var key: LimitKey

    init(_ scope: LimitScope, _ key: LimitKey, _ policies: LimitPolicies) {
        (self.scope, self.key) = (scope, policies.bucketKey(key, scope))
    }
}

/// Buckets that had no room for one message when Redis was asked, so that it is not asked again while they must refuse.
///
/// An entry holds until its bucket has room for one message, and at most for a second of monotonic time: a bucket that
/// refuses for a minute is asked about once a second by each replica. Whatever a caller sends, Redis answers for a used up
/// quota no more often than that. A change of policy gives buckets other names, so that no entry survives it.
final class RefusalCache: Sendable {
    struct Entry: Sendable {
        /// The tenant's bucket when the refusal came, and the server's time then.
        var tenant: LimitBucket
        var serverTime: Timestamp
        var notedAt: ContinuousClock.Instant
        /// Nanoseconds from then until the refusing bucket has room for one message.
        var wait: Int64

        fileprivate var end: ContinuousClock.Instant {
            self.notedAt.advanced(by: min(.nanoseconds(self.wait), RefusalCache.longest))
        }

        /// The server's time at a moment, as far as this process can tell.
        func serverTime(at now: ContinuousClock.Instant) -> Timestamp {
            self.serverTime.advanced(by: now - self.notedAt)
        }
    }

    static let longest = Duration.seconds(1)
    /// About 2 MB; beyond it new refusals are not remembered, but for those of tenants' own buckets.
    static let maxEntries = 10_000

    private let entries = Mutex<[BucketName: Entry]>([:])
    private let count = Atomic(0)

    /// True if no lookup can find anything; costs one load.
    var isEmpty: Bool { self.count.load(ordering: .relaxed) == 0 }

    func entry(_ name: BucketName, at now: ContinuousClock.Instant) -> Entry? {
        if self.isEmpty { return nil }
        return self.entries.withLock { entries in
            guard let entry = entries[name], now < entry.end else { return nil }
            return entry
        }
    }

    func note(_ reckoning: LimitReckoning, at now: ContinuousClock.Instant) {
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

    func removeExpired(at now: ContinuousClock.Instant) {
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
