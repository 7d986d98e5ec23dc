import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("Snapshots of limits")
struct LimitSnapshotTests {
    private let clock = ManualClock()
    private let policies: LimitPolicies

    init() throws {
        self.policies = LimitPolicies(
            tenant: [try .sample(1_000, per: 1, burst: 1_000)],
            // More than two policies need the second table as well.
            device: [
                try .sample(1, per: 10, burst: 2), try .sample(1, per: 60, burst: 5),
                try .sample(1, per: 600, burst: 7),
            ],
            deviceCollapsible: [try .sample(1, per: 100, burst: 1)],
            topic: [try .sample(1, per: 5, burst: 2)]
        )
    }

    private func request(_ recipients: LimitRequest.Recipients, isCollapsible: Bool = false) -> LimitRequest {
        LimitRequest(policies: self.policies, recipients: recipients, isCollapsible: isCollapsible)
    }

    private var saved: [LimitKey: PolicyHistory] { [.sample("tenant"): PolicyHistory(self.policies)] }

    /// A limiter of which two devices and a topic are used up.
    private func used() async -> MemoryRateLimiter {
        let limiter = MemoryRateLimiter()
        let now = self.clock.now()
        _ = await limiter.admit(self.request(.devices([.sample("a"), .sample("a"), .sample("b")])), now: now)
        _ = await limiter.admit(self.request(.devices([.sample("c")]), isCollapsible: true), now: now)
        for _ in 1...2 { _ = await limiter.admit(self.request(.topics([.sample("t")])), now: now) }
        return limiter
    }

    @Test("What was used up still is, for every scope and policy", arguments: [0, 3, 30, 300])
    func roundTrip(seconds: Int) async throws {
        let before = await self.used()
        let (bytes, saved) = before.save(policies: self.saved, now: self.clock.now())
        #expect(saved.buckets == before.bucketCount)
        self.clock.advance(by: .seconds(seconds))
        let after = MemoryRateLimiter()
        let restored = try after.restore(bytes, now: self.clock.now())
        #expect(restored.buckets == after.bucketCount)
        #expect(restored.leftOut == 0)
        for request in [
            self.request(.devices(["a", "b", "c", "d"].map { .sample($0) }), isCollapsible: true),
            self.request(.topics([.sample("t"), .sample("u")])),
        ] {
            let (old, new) = await (
                before.status(of: request, now: self.clock.now()), after.status(of: request, now: self.clock.now())
            )
            #expect(old == new)
        }
    }

    @Test("What was used up under former limits is carried over to those after the start", arguments: [false, true])
    func changedLimits(whileStopped: Bool) async throws {
        let former = LimitPolicies(device: [try .sample(60, per: 60, burst: 60)])
        let limits = LimitPolicies(device: [try .sample(1, per: 180, burst: 20)])
        var history = PolicyHistory(former)
        func request(_ count: Int) -> LimitRequest { LimitRequest(history: history, count: count) }
        let before = MemoryRateLimiter()
        #expect(await before.admit(request(60), now: self.clock.now()).admission == .all)
        if !whileStopped { history = history.followed(by: limits, at: self.clock.now()) }
        let (bytes, _) = before.save(policies: [.sample("tenant"): history], now: self.clock.now())
        let after = MemoryRateLimiter()
        let saved = try after.restore(bytes, now: self.clock.now())
        history = try #require(saved.policies[.sample("tenant")]).followed(by: limits, at: self.clock.now())
        #expect(await after.status(of: request(1), now: self.clock.now()).recipients.first?.first?.quota.remaining == 0)
        self.clock.advance(by: .seconds(360))
        #expect(await after.admit(request(2), now: self.clock.now()).admission == .all)
        #expect(await after.admit(request(1), now: self.clock.now()).admission != .all)
    }

    @Test("Quotas that are whole are not saved, and those that became whole are not taken back")
    func whole() async throws {
        let limiter = await self.used()
        let (bytes, saved) = limiter.save(policies: self.saved, now: self.clock.now())
        #expect(saved.buckets > 5)
        self.clock.advance(by: .seconds(30 * 86_400))
        #expect(limiter.save(policies: self.saved, now: self.clock.now()).saved.buckets == 0)
        let after = MemoryRateLimiter()
        #expect(try after.restore(bytes, now: self.clock.now()).buckets == 0)
        #expect(after.bucketCount == 0)
    }

    @Test("What was charged meanwhile is not given back")
    func chargedMeanwhile() async throws {
        let (bytes, _) = await self.used().save(policies: self.saved, now: self.clock.now())
        self.clock.advance(by: .seconds(5))
        let after = MemoryRateLimiter()
        let request = self.request(.devices([.sample("b")]))
        _ = await after.admit(request, now: self.clock.now())
        _ = await after.admit(request, now: self.clock.now())
        _ = try after.restore(bytes, now: self.clock.now())
        #expect(await after.admit(request, now: self.clock.now()).admission != .all)
    }

    @Test("No changed, cut or lengthened byte is believed")
    func damaged() async throws {
        let (bytes, _) = await self.used().save(policies: self.saved, now: self.clock.now())
        func expectDamage(_ bytes: [UInt8]) {
            let limiter = MemoryRateLimiter()
            #expect(throws: MemoryRateLimiter.Damage.self) { try limiter.restore(bytes, now: self.clock.now()) }
            #expect(limiter.bucketCount == 0)
        }
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 0x10
            expectDamage(changed)
            expectDamage(Array(bytes[..<index]))
        }
        expectDamage(bytes + [0])
        expectDamage(Array("SQLite format 3\0".utf8))
    }

    @Test("Counts that do not fit are refused even under a right digest")
    func forged() throws {
        var bytes = Array("fcm-gateway limits 2\n".utf8)
        bytes += Array(repeating: 0xFF, count: 8) + Array(repeating: 0, count: 64)
        bytes += MemoryRateLimiter.digest(of: bytes[...])
        #expect(throws: MemoryRateLimiter.Damage.changed) {
            try MemoryRateLimiter().restore(bytes, now: self.clock.now())
        }
    }

    @Test("A name of the format that nobody knows is foreign, whatever follows")
    func foreign() throws {
        for text in ["", "fcm-gateway limits 1\n", "fcm-gateway limits 2"] {
            #expect(throws: MemoryRateLimiter.Damage.foreign) {
                try MemoryRateLimiter().restore(Array(text.utf8), now: self.clock.now())
            }
        }
    }

    @Test("Beyond the bound buckets are left out and counted; a small table takes what it has room for")
    func bound() async throws {
        let limiter = MemoryRateLimiter()
        let keys = (0..<2_000).map { LimitKey.sample("device \($0)") }
        _ = await limiter.admit(self.request(.devices(keys)), now: self.clock.now())
        let (bytes, saved) = limiter.save(policies: self.saved, now: self.clock.now(), upTo: 500)
        #expect(saved.buckets == 500)
        #expect(saved.leftOut == limiter.bucketCount - 500)
        #expect(try MemoryRateLimiter().restore(bytes, now: self.clock.now()).buckets == 500)
    }

    @Test("A clock that was set back while the process was away costs one burst at most")
    func clockSetBack() async throws {
        let (bytes, _) = await self.used().save(policies: self.saved, now: self.clock.now())
        self.clock.advance(by: .seconds(-3_600))
        let after = MemoryRateLimiter()
        _ = try after.restore(bytes, now: self.clock.now())
        let request = self.request(.topics([.sample("t")]))
        #expect(await after.admit(request, now: self.clock.now()).admission != .all)
        self.clock.advance(by: .seconds(10))
        #expect(await after.admit(request, now: self.clock.now()).admission == .all)
    }
}
