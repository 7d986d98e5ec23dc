/// One tenant's counts of judged recipients, by which reports of dead tokens are believed or suspected (decision 0016).
///
/// FCM calls a token `unregistered` when its app is gone. It also does so when the tenant's credential is of another
/// project. Then the tokens are alive, and no service may be told to delete them. Such a fault shows as a spike:
///
/// - *Judged* recipients were accepted by FCM or called unregistered. A token that is known to be dead is not counted
///   again.
/// - A *bucket* is five minutes of the database's time. The store adds up the counts of all replicas by bucket.
/// - A bucket *ends a spike* if at least 20 recipients were judged in it and the eleven buckets before it, which is an
///   hour, and more than 20 % of them were unregistered.
/// - A report is *pending* in its own bucket and the twelve after it. It is *due* in the 13th, 60 to 65 minutes after it
///   was stored.
/// - A token whose report is due is *fed* if none of these 13 buckets ended a spike. Otherwise it is *suspected*. While the
///   bucket under way would end one, pending tokens are suspected at once.
///
/// Example: The gateway starts at 12:00 and sends to 15 tokens a minute. From 12:09 to 12:20 its credential is wrong.
///
/// | bucket         | judged | unregistered | in the hour    | ends a spike |
/// | -------------- | ------ | ------------ | -------------- | ------------ |
/// | 12:00          | 75     | 0            | 0 of 75        | no           |
/// | 12:05          | 75     | 15           | 15 of 150, 10% | no           |
/// | 12:10          | 75     | 75           | 90 of 225, 40% | yes          |
/// | 12:15          | 75     | 75           | 165 of 300     | yes          |
/// | 12:20 to 12:45 | 75     | 0            | 165 of 750     | yes          |
/// | 12:50          | 75     | 0            | 165 of 825     | no: 20%      |
///
/// A report of 12:09 is pending in the buckets from 12:05 to 13:05. The bucket 12:10 ended a spike, so the token is
/// suspected, in that bucket or at 13:10 if no replica ran before. A report of 12:57 is fed at 14:00.
package struct RetiredTokenCounts: Sendable {
    /// The recipients judged in some buckets.
    package struct Tally: Sendable, Hashable {
        package var judged: Int
        package var unregistered: Int

        package init(judged: Int = 0, unregistered: Int = 0) {
            self.judged = judged
            self.unregistered = unregistered
        }

        /// True for an hour that is a spike.
        package var isSpike: Bool { self.judged >= 20 && self.unregistered * 5 > self.judged }

        package static func += (sum: inout Tally, other: Tally) {
            sum.judged += other.judged
            sum.unregistered += other.unregistered
        }
    }

    package static let bucketDuration = Duration.seconds(300)
    package static let bucketsPerHour = 12
    /// From a report's bucket to the one in which it is due.
    package static let bucketsUntilDue = 13

    private let tallies: [Int: Tally]

    /// Takes the tallies by the number of their bucket since 1970.
    package init(_ tallies: [Int: Tally]) {
        self.tallies = tallies
    }

    /// True if a report that is due in a bucket was pending in one that ended a spike.
    package func isSuspect(dueIn bucket: Int) -> Bool {
        (bucket - Self.bucketsUntilDue..<bucket).contains { self.endsSpike($0) }
    }

    package func endsSpike(_ bucket: Int) -> Bool {
        var hour = Tally()
        for bucket in bucket - Self.bucketsPerHour + 1...bucket {
            if let tally = self.tallies[bucket] { hour += tally }
        }
        return hour.isSpike
    }
}
