/// How far a replica has read what all replicas of a store changed.
///
/// Changes are in the order of their transactions' numbers, and in a transaction of their own. A transaction may be
/// committed long after others with higher numbers, so a bookmark stands before the first that may still be under way:
/// what is read behind it is used at once and read again.
package struct RetiredTokenBookmark: Sendable, Hashable {
    /// Where a change stands among all.
    package struct Place: Sendable, Hashable, Comparable {
        /// The number of its transaction; 0 where the store has no such numbers.
        package var transaction: Int64
        package var number: Int64

        package init(transaction: Int64, number: Int64) {
            (self.transaction, self.number) = (transaction, number)
        }

        package static func < (lhs: Place, rhs: Place) -> Bool {
            (lhs.transaction, lhs.number) < (rhs.transaction, rhs.number)
        }

        /// The place before this one, where nothing need stand.
        var predecessor: Place { Place(transaction: self.transaction, number: self.number - 1) }
    }

    package var epoch: String
    /// The change that was read last.
    package var place: Place
    /// All transactions up to this one had ended when it was set.
    package var horizon: Int64
    /// The end of the page that was read last; `nil` where there was nothing behind it.
    package var pageEnd: Place?

    package init(epoch: String, place: Place, horizon: Int64, pageEnd: Place? = nil) {
        (self.epoch, self.place, self.horizon, self.pageEnd) = (epoch, place, horizon, pageEnd)
    }
}

/// What replicas of a store changed of its lists of retired tokens, or a page of it.
package struct RetiredTokenNews: Sendable, Hashable {
    /// A token that was changed.
    package struct Change: Sendable, Hashable {
        package var place: RetiredTokenBookmark.Place
        package var tenant: TenantID
        package var key: UInt64
        /// What the store has of it by now; `nil` where it is not on the list any more.
        package var entry: RetiredTokenEntry?

        package init(place: RetiredTokenBookmark.Place, tenant: TenantID, key: UInt64, entry: RetiredTokenEntry?) {
            (self.place, self.tenant, self.key, self.entry) = (place, tenant, key, entry)
        }
    }

    /// In their order; some may have been seen before.
    package var changes: [Change]
    /// Those that were saved since, or before.
    package var detectors: [TenantID: SpikeDetector]
    /// What other replicas have counted in all, of those that counted since.
    package var counts: [RetiredTokenCount]
    /// What is to be read next comes after it.
    package var bookmark: RetiredTokenBookmark

    package init(
        changes: [Change],
        detectors: [TenantID: SpikeDetector],
        counts: [RetiredTokenCount],
        bookmark: RetiredTokenBookmark
    ) {
        (self.changes, self.detectors) = (changes, detectors)
        (self.counts, self.bookmark) = (counts, bookmark)
    }
}

/// How many recipients of a tenant one replica heard FCM judge, since it began to count.
package struct RetiredTokenCount: Sendable, Hashable {
    /// What counts: one replica, one tenant's recipients.
    package struct Counter: Sendable, Hashable {
        package var tenant: TenantID
        package var replica: String

        package init(tenant: TenantID, replica: String) {
            (self.tenant, self.replica) = (tenant, replica)
        }
    }

    package var counter: Counter
    package var accepted: Int
    package var unregistered: Int

    package init(_ counter: Counter, accepted: Int, unregistered: Int) {
        (self.counter, self.accepted, self.unregistered) = (counter, accepted, unregistered)
    }
}

/// Decides what a replica reads next of the lists that all replicas change, and what of it is new. Pure.
struct RetiredTokenFollower: Sendable {
    /// What a poll is to read.
    enum Step: Sendable, Hashable {
        case everything
        case changes(since: RetiredTokenBookmark)
    }

    /// Stores have changes for twice as long; a replica that did not ask for this long reads everything.
    private static let maxSilence = Duration.seconds(1_800)
    /// For how many polls a change is waited for that can't be taken in yet.
    private static let maxHolds = 10

    /// `nil` before everything was read once.
    private(set) var bookmark: RetiredTokenBookmark?
    /// When the latest question was asked that the store answered.
    private(set) var readAt: ContinuousClock.Instant
    private var holds = 0
    private var counts: [RetiredTokenCount.Counter: (accepted: Int, unregistered: Int)] = [:]

    init(at now: ContinuousClock.Instant) {
        self.readAt = now
    }

    func step(at now: ContinuousClock.Instant) -> Step {
        guard let bookmark = self.bookmark, now - self.readAt < Self.maxSilence else { return .everything }
        return .changes(since: bookmark)
    }

    /// Notes that everything was read; what the others have counted by then is in their saved detectors.
    mutating func read(_ contents: RetiredTokenContents, askedAt moment: ContinuousClock.Instant) {
        (self.bookmark, self.readAt, self.holds) = (contents.bookmark, moment, 0)
        self.counts = [:]
        for count in contents.counts { _ = self.increase(of: count) }
    }

    /// Notes that changes were taken in, but for those from a place on, which are read again, though not for ever.
    mutating func read(
        _ news: RetiredTokenNews,
        holdingFrom held: RetiredTokenBookmark.Place?,
        askedAt moment: ContinuousClock.Instant
    ) {
        self.readAt = moment
        var bookmark = news.bookmark
        self.holds = held == nil ? 0 : self.holds + 1
        if let held, self.holds < Self.maxHolds {
            bookmark.place = min(bookmark.place, held.predecessor)
        } else {
            self.holds = 0
        }
        self.bookmark = bookmark
    }

    /// What a replica has counted since it was heard of last; one that has less than before began anew.
    mutating func increase(of count: RetiredTokenCount) -> (accepted: Int, unregistered: Int) {
        let now = (accepted: count.accepted, unregistered: count.unregistered)
        let before = self.counts.updateValue(now, forKey: count.counter) ?? (accepted: 0, unregistered: 0)
        guard now.accepted >= before.accepted, now.unregistered >= before.unregistered else { return now }
        return (now.accepted - before.accepted, now.unregistered - before.unregistered)
    }
}
