import FCMModel
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayCore

@Suite("Leases of device groups", .timeLimit(.minutes(10)))
struct GroupLeasesTests {
    /// Returns the outcomes that a test sets, and grants every other request.
    private final class ScriptedStore: GroupLeaseStore {
        struct State: Sendable {
            var outcomes: [GroupLeaseOutcome] = []
            var renews = true
            var fails = false
            var renewals = 0
            var releases = 0
            var beforeAnswer: @Sendable () -> Void = {}
        }

        let state = Observed(State())

        private func answer<Answer: Sendable>(
            _ body: (inout State) -> Answer
        ) throws(GatewayError) -> Answer {
            let (answer, state) = self.state.change { (body(&$0), $0) }
            state.beforeAnswer()
            guard !state.fails else { throw GatewayError(.storeUnavailable, "The store fails, as it was told to") }
            return answer
        }

        func acquire(_ name: String, of tenant: TenantID) async throws(GatewayError) -> GroupLeaseOutcome {
            try self.answer { $0.outcomes.isEmpty ? .granted : $0.outcomes.removeFirst() }
        }

        func renew(_ name: String, of tenant: TenantID) async throws(GatewayError) -> Bool {
            try self.answer { state in
                state.renewals += 1
                return state.renews
            }
        }

        func release(_ name: String, of tenant: TenantID) async throws(GatewayError) {
            try self.answer { $0.releases += 1 }
        }
    }

    private let store = ScriptedStore()
    private let time = Observed(Uptime.now)
    private let groupStore = TestGroupStore()
    private let upstream = ScriptedGroupUpstream()
    private let audit = AuditLog.sample(store: InMemoryAuditStore())

    private func leases(_ duration: Duration = .seconds(30)) -> GroupLeases {
        let time = self.time
        let terms = LeaseTerms(duration: duration, attemptTimeout: { .seconds(10) }, uptime: { time.current })
        return GroupLeases(store: self.store, terms: terms)
    }

    private func groups() -> DeviceGroups {
        DeviceGroups(
            store: self.groupStore,
            upstream: self.upstream,
            limiter: MemoryRateLimiter.withoutJitter(),
            audit: self.audit,
            clock: ManualClock(),
            leases: self.leases()
        )
    }

    @Test("A lease starts when it is requested, not when the store answers")
    func slowAnswer() async throws {
        let (time, start) = (self.time, self.time.current)
        self.store.state.change { $0.beforeAnswer = { time.change { $0 += .seconds(40) } } }
        let lease = try await self.leases().acquire("family", of: .sample(), until: .now)
        #expect(lease?.isTakenOver == false)
        // It has already ended, so no call may start.
        #expect(lease?.end == start + .seconds(30))
    }

    @Test("A wait for a lease ends at its deadline")
    func held() async throws {
        self.store.state.change { $0.outcomes = [.held, .held] }
        #expect(try await self.leases().acquire("family", of: .sample(), until: .now) == nil)
        #expect(self.store.state.current.outcomes.count == 1)
    }

    @Test("A lease taken over from another replica is released only after the takeover is settled")
    func takenOver() async throws {
        self.store.state.change { $0.outcomes = [.held, .takenOver] }
        let acquired = try await self.leases().acquire("family", of: .sample(), until: .now + .seconds(600))
        let lease = try #require(acquired)
        #expect(lease.isTakenOver)
        #expect(lease.end == self.time.current + .seconds(30))
        await #expect(throws: Refusal.self) {
            try await lease.renewing { () throws(Refusal) -> Void in throw .groupConflict }
        }
        #expect(self.store.state.current.releases == 0)
        try await lease.renewing { () throws(Refusal) in lease.settleTakeover() }
        #expect(self.store.state.current.releases == 1)
    }

    @Test("A lease is released after a refusal")
    func released() async throws {
        let lease = try #require(try await self.leases().acquire("family", of: .sample(), until: .now))
        let refusal = await #expect(throws: Refusal.self) {
            try await lease.renewing { () throws(Refusal) -> Void in throw .groupConflict }
        }
        #expect(refusal == .groupConflict)
        #expect(self.store.state.current.releases == 1)
    }

    @Test("A due lease is renewed, and a refused renewal ends the lease at once")
    func renewal() async throws {
        // The renewal checks the lease every 33 ms of real time; the lease's own clock moves only by hand.
        let acquired = try await self.leases(.milliseconds(200)).acquire("family", of: .sample(), until: .now)
        let lease = try #require(acquired)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await lease.renewRegularly() }
            self.time.change { $0 += .milliseconds(100) }
            try await self.store.state.wait { $0.renewals == 1 }
            self.store.state.change { $0.renews = false }
            self.time.change { $0 += .milliseconds(100) }
            // The renewal returns because the lease is lost.
            try await group.waitForAll()
        }
        #expect(self.store.state.current.renewals >= 2)
        #expect(lease.end == self.time.current)
    }

    @Test("If the store fails, a request for a lease throws and a held lease lasts until its end")
    func failing() async throws {
        let (leases, start) = (self.leases(), self.time.current)
        let lease = try #require(try await leases.acquire("family", of: .sample(), until: .now))
        self.store.state.change { $0.fails = true }
        await #expect(throws: GatewayError.self) { try await leases.acquire("other", of: .sample(), until: .now) }
        await lease.release()
        #expect(lease.end == start + .seconds(30))
        #expect(self.store.state.current.releases == 1)
    }

    @Test("After a takeover the group's key is looked up at FCM again, and the lease is kept until the key is stored")
    func takeover() async throws {
        let (groups, caller) = (self.groups(), try Caller.sample())
        try await self.audit.whileRunning {
            _ = try await groups.put("g", tokens: ["a"], by: caller)
            _ = try await groups.add(["b"], to: "g", by: caller)
            #expect(self.upstream.requests.count == 3)
            #expect(self.store.state.current.releases == 2)
            self.store.state.change { $0.outcomes = [.takenOver, .takenOver] }
            self.groupStore.refuse()
            await #expect(throws: Refusal.self) { try await groups.add(["c"], to: "g", by: caller) }
            #expect(self.store.state.current.releases == 2)
            self.groupStore.refuse(false)
            self.upstream.answer(GroupResult(.success("key-2"), upstreamCode: "200"))
            _ = try await groups.add(["c"], to: "g", by: caller)
            #expect(self.store.state.current.releases == 3)
        }
        let requests = self.upstream.requests.suffix(2)
        let name = try #require(try await self.groupStore.groups().first).upstreamName
        #expect(requests.first == .lookUp(name: name))
        #expect(requests.last == .change(GroupChange(.add, name: name, key: "key-2", tokens: ["c"])))
    }

    @Test("After a takeover, a forwarded change that FCM refuses clears the key and keeps the members")
    func forwardedTakeover() async throws {
        let (groups, caller) = (self.groups(), try Caller.sample())
        let change = GroupRequest.change(GroupChange(.add, name: "g", key: "key-1", tokens: ["b"]))
        try await self.audit.whileRunning {
            _ = try await groups.put("g", tokens: ["a"], by: caller)
            #expect(try await self.groupStore.groups().first?.key == "key-1")
            self.store.state.change { $0.outcomes = [.takenOver] }
            self.upstream.answer(.failing(.noValidTokens))
            _ = try await groups.forward(change, by: caller)
        }
        // The caller's key is forwarded although the gateway has not verified it.
        #expect(self.upstream.requests.last == change)
        let group = try #require(try await self.groupStore.groups().first)
        #expect(group.key == nil)
        #expect(group.members == [DeviceGroup.Member("a", .member)])
        // The takeover is settled, so the lease was released.
        #expect(self.store.state.current.releases == 2)
    }

    @Test(
        "Takeovers and losses of leases are counted, and a lost lease ends at once",
        arguments: [(GroupLeaseOutcome.granted, Int64(0)), (GroupLeaseOutcome.takenOver, Int64(1))]
    )
    func counts(outcome: GroupLeaseOutcome, takeovers: Int64) async throws {
        let (time, factory) = (self.time, TestMetrics())
        self.store.state.change { ($0.outcomes, $0.renews) = ([outcome], false) }
        let leases = GroupLeases(
            store: self.store,
            terms: LeaseTerms(
                duration: .milliseconds(6),
                attemptTimeout: { .zero },
                uptime: { time.current }
            ),
            metrics: GatewayMetrics(factory: factory)
        )
        let lease = try #require(try await leases.acquire("group", of: .sample(), until: .now))
        #expect(lease.isTakenOver == (outcome == .takenOver))
        time.change { $0 += .milliseconds(5) }
        // Returns when the lease is lost.
        await lease.renewRegularly()
        func counted(_ name: String) throws -> Int64 {
            try factory.expectCounter("fcmgw_lease_\(name)_total", [("kind", "group")]).totalValue
        }
        #expect(try counted("takeovers") == takeovers)
        #expect(try counted("losses") == 1)
        #expect(lease.end == time.current)
    }
}
