import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayCore

@Suite("Leases of device groups", .timeLimit(.minutes(10)))
struct GroupLeasesTests {
    /// Answers as a test tells it, else yes.
    private final class ScriptedStore: GroupLeaseStore {
        struct State: Sendable {
            var outcomes: [GroupLeaseOutcome] = []
            var renews = true
            var fails = false
            var renewals = 0
            var releases = 0
            /// What happens before an answer.
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
    private let time = Observed(ContinuousClock.now)

    private func leases(_ duration: Duration = .seconds(30)) -> GroupLeases {
        let time = self.time
        let terms = LeaseTerms(duration: duration, attemptTimeout: { .seconds(10) }, uptime: { time.current })
        return GroupLeases(store: self.store, terms: terms)
    }

    @Test("A lease lasts from the moment at which it was asked for, however long the answer takes")
    func slowAnswer() async throws {
        let (leases, time, start, acme) = (self.leases(), self.time, self.time.current, try TenantID.sample())
        #expect(leases.end(of: "family", of: acme) == nil)
        self.store.state.change { $0.beforeAnswer = { time.change { $0 += .seconds(40) } } }
        #expect(try await leases.acquire("family", of: acme, until: .now) == .granted)
        // It has ended by now, so that no call may begin.
        #expect(leases.end(of: "family", of: acme) == start + .seconds(30))
        #expect(leases.end(of: "other", of: acme) == nil)
    }

    @Test("Whoever waits is given up at its deadline, and holds nothing")
    func held() async throws {
        let (leases, acme) = (self.leases(), try TenantID.sample())
        self.store.state.change { $0.outcomes = [.held, .held] }
        #expect(try await leases.acquire("family", of: acme, until: .now) == nil)
        #expect(leases.end(of: "family", of: acme) == nil)
        #expect(self.store.state.current.outcomes.count == 1)
    }

    @Test("What another replica left is told to whoever takes it over after a wait")
    func takenOver() async throws {
        let (leases, acme) = (self.leases(), try TenantID.sample())
        self.store.state.change { $0.outcomes = [.held, .takenOver] }
        let outcome = try await leases.acquire("family", of: acme, until: .now + .seconds(600))
        #expect(outcome == .takenOver)
        #expect(leases.end(of: "family", of: acme) == self.time.current + .seconds(30))
    }

    @Test("A lease that is abandoned is not given back, and so ends as a dead replica's")
    func abandoned() async throws {
        let (leases, acme) = (self.leases(), try TenantID.sample())
        _ = try await leases.acquire("family", of: acme, until: .now)
        leases.abandon("family", of: acme)
        await leases.release("family", of: acme)
        #expect(leases.end(of: "family", of: acme) == nil)
        #expect(self.store.state.current.releases == 0)
    }

    @Test("A lease is renewed once it is due; one that was lost ends calls at once, and for good")
    func renewal() async throws {
        // A thirtieth of a second between two looks, of a time that stands still.
        let (leases, acme) = (self.leases(.milliseconds(200)), try TenantID.sample())
        _ = try await leases.acquire("family", of: acme, until: .now)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await leases.renewRegularly("family", of: acme) }
            self.time.change { $0 += .milliseconds(100) }
            try await self.store.state.wait { $0.renewals == 1 }
            self.store.state.change { $0.renews = false }
            self.time.change { $0 += .milliseconds(100) }
            // Ends by itself, since there is nothing left to renew.
            try await group.waitForAll()
        }
        #expect(self.store.state.current.renewals >= 2)
        #expect(leases.end(of: "family", of: acme) == self.time.current)
    }

    @Test("A store that does not answer leaves a lease to its end, and the caller without one")
    func failing() async throws {
        let (leases, start, acme) = (self.leases(), self.time.current, try TenantID.sample())
        _ = try await leases.acquire("family", of: acme, until: .now)
        self.store.state.change { $0.fails = true }
        #expect(leases.end(of: "family", of: acme) == start + .seconds(30))
        await #expect(throws: GatewayError.self) { try await leases.acquire("other", of: acme, until: .now) }
        #expect(leases.end(of: "other", of: acme) == nil)
        await leases.release("family", of: acme)
        #expect(leases.end(of: "family", of: acme) == nil)
        #expect(self.store.state.current.releases == 1)
    }

    @Test(
        "A lease that was another's is counted, and so is one that is another's now, under which no call may begin",
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
        let tenant = try TenantID.sample()
        #expect(try await leases.acquire("group", of: tenant, until: .now) == outcome)
        time.change { $0 += .milliseconds(5) }
        // Returns when the lease turns out to be lost.
        await leases.renewRegularly("group", of: tenant)
        func counted(_ name: String) throws -> Int64 {
            try factory.expectCounter("fcmgw_lease_\(name)_total", [("kind", "group")]).totalValue
        }
        #expect(try counted("takeovers") == takeovers)
        #expect(try counted("losses") == 1)
        #expect(leases.end(of: "group", of: tenant) == time.current)
    }
}
