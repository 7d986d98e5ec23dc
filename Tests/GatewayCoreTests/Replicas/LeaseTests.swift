import Testing

@testable import GatewayCore

struct LeaseTests {
    private static let start = Uptime.now

    private static func lease(askedAfter duration: Duration = .zero) -> Lease {
        var lease = Lease(duration: .seconds(30))
        lease.grant(askedAt: Self.start + duration)
        return lease
    }

    @Test("A lease that was never granted or was lost covers no call and is not due for renewal")
    func none() {
        var lease = Lease(duration: .seconds(30))
        #expect(!lease.covers(.zero, at: Self.start))
        #expect(!lease.isDue(at: Self.start))
        lease = Self.lease()
        lease.lose()
        #expect(!lease.covers(.zero, at: Self.start))
        #expect(!lease.isDue(at: Self.start + .seconds(29)))
    }

    @Test(
        "A lease covers a call whose timeout ends before the lease",
        arguments: [(0, 10, true), (19, 10, true), (20, 10, false), (21, 10, false), (29, 0, true), (30, 0, false)]
    )
    func covers(after seconds: Int, timeout: Int, isCovered: Bool) {
        #expect(Self.lease().covers(.seconds(timeout), at: Self.start + .seconds(seconds)) == isCovered)
    }

    @Test("A lease is due for renewal after a third of its duration", arguments: [(9, false), (10, true), (31, true)])
    func due(after seconds: Int, isDue: Bool) {
        #expect(Self.lease().isDue(at: Self.start + .seconds(seconds)) == isDue)
    }

    @Test("A lease starts when it was requested, and a late grant of an earlier request does not shorten it")
    func order() {
        var lease = Self.lease(askedAfter: .seconds(10))
        lease.grant(askedAt: Self.start)
        #expect(lease.covers(.seconds(39), at: Self.start))
        #expect(!lease.covers(.seconds(40), at: Self.start))
    }
}
