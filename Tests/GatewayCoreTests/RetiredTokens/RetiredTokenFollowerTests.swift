import GatewayTestKit
import Testing

@testable import GatewayCore

struct RetiredTokenFollowerTests {
    typealias Place = RetiredTokenBookmark.Place

    private static let start = ContinuousClock.now

    private static func bookmark(_ transaction: Int64, _ number: Int64, epoch: String = "e") -> RetiredTokenBookmark {
        RetiredTokenBookmark(
            epoch: epoch,
            place: Place(transaction: transaction, number: number),
            horizon: transaction
        )
    }

    private static func contents(_ bookmark: RetiredTokenBookmark, _ counts: [RetiredTokenCount] = [])
        -> RetiredTokenContents
    {
        RetiredTokenContents(entries: [], detectors: [:], counts: counts, bookmark: bookmark)
    }

    private static func news(to bookmark: RetiredTokenBookmark) -> RetiredTokenNews {
        RetiredTokenNews(changes: [], detectors: [:], counts: [], bookmark: bookmark)
    }

    private static func count(_ replica: String, _ accepted: Int, _ unregistered: Int) throws -> RetiredTokenCount {
        let counter = RetiredTokenCount.Counter(tenant: try .sample(), replica: replica)
        return RetiredTokenCount(counter, accepted: accepted, unregistered: unregistered)
    }

    @Test("Everything is read first, then what came since, then everything again where that may be gone")
    func steps() {
        var follower = RetiredTokenFollower(at: Self.start)
        #expect(follower.step(at: Self.start) == .everything)
        follower.read(Self.contents(Self.bookmark(5, 9)), askedAt: Self.start)
        #expect(follower.step(at: Self.start) == .changes(since: Self.bookmark(5, 9)))
        let later = Self.start + .seconds(1_799)
        #expect(follower.step(at: later) == .changes(since: Self.bookmark(5, 9)))
        follower.read(Self.news(to: Self.bookmark(7, 20)), holdingFrom: nil, askedAt: later)
        #expect(follower.step(at: later + .seconds(1_799)) == .changes(since: Self.bookmark(7, 20)))
        #expect(follower.step(at: later + .seconds(1_800)) == .everything)
    }

    @Test("What can't be taken in yet is read again, for ten polls")
    func holds() {
        var follower = RetiredTokenFollower(at: Self.start)
        follower.read(Self.contents(Self.bookmark(1, 1)), askedAt: Self.start)
        let held = Place(transaction: 2, number: 5)
        for _ in 1..<10 {
            follower.read(Self.news(to: Self.bookmark(3, 8)), holdingFrom: held, askedAt: Self.start)
            #expect(follower.bookmark?.place == Place(transaction: 2, number: 4))
        }
        follower.read(Self.news(to: Self.bookmark(3, 8)), holdingFrom: held, askedAt: Self.start)
        #expect(follower.bookmark?.place == Place(transaction: 3, number: 8))
        let next = Place(transaction: 4, number: 9)
        follower.read(Self.news(to: Self.bookmark(4, 9)), holdingFrom: next, askedAt: Self.start)
        #expect(follower.bookmark?.place == Place(transaction: 4, number: 8))
    }

    @Test("A change that is held beyond the horizon does not take the bookmark there")
    func heldBeyond() {
        var follower = RetiredTokenFollower(at: Self.start)
        follower.read(Self.contents(Self.bookmark(1, 1)), askedAt: Self.start)
        let held = Place(transaction: 9, number: 9)
        follower.read(Self.news(to: Self.bookmark(3, 8)), holdingFrom: held, askedAt: Self.start)
        #expect(follower.bookmark?.place == Place(transaction: 3, number: 8))
    }

    @Test("Of what replicas counted only what is new is heard, also of one that began anew")
    func counts() throws {
        var follower = RetiredTokenFollower(at: Self.start)
        follower.read(Self.contents(Self.bookmark(1, 1), [try Self.count("a", 10, 1)]), askedAt: Self.start)
        let steps = [
            ("a", 10, 1, [0, 0]), ("a", 15, 3, [5, 2]), ("b", 7, 0, [7, 0]), ("a", 2, 1, [2, 1]), ("a", 3, 1, [1, 0]),
        ]
        for (replica, accepted, unregistered, expected) in steps {
            let increase = follower.increase(of: try Self.count(replica, accepted, unregistered))
            #expect([increase.accepted, increase.unregistered] == expected)
        }
    }
}
