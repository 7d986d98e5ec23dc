import CoreMetrics
import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayUpstream

/// What is kept for tenants goes with them.
@Suite("Forgotten tenants", .timeLimit(.minutes(10)))
struct ForgottenTenantTests {
    private func isAccepted(_ result: UpstreamResult) -> Bool {
        if case .recipients(let outcomes) = result.answer, case .accepted = outcomes.first { true } else { false }
    }

    @Test("A deleted tenant's account is forgotten, and calls that are under way end as they would")
    func account() async throws {
        try await V1Fixture.run { fixture in
            weak var account: V1Account?
            let call = try fixture.call()
            let profile = call.profile
            #expect(self.isAccepted(await fixture.sender.send(call)))
            account = fixture.accounts.account(of: profile, fixture.credential)
            #expect(fixture.accounts.count == 1)
            fixture.accounts.keep([profile.id: profile])
            #expect(fixture.accounts.count == 1)
            #expect(account != nil)
            fixture.accounts.keep([:])
            #expect(fixture.accounts.count == 0)
            #expect(account == nil)
            // The call had begun when its tenant was deleted.
            #expect(self.isAccepted(await fixture.sender.send(call)))
            #expect(fixture.accounts.count == 0)
        }
    }

    @Test("A replaced service account is forgotten, even where a call still goes by it")
    func replaced() async throws {
        try await V1Fixture.run { fixture in
            let call = try fixture.call()
            #expect(self.isAccepted(await fixture.sender.send(call)))
            let successor = try ServiceAccountCredential(
                json: Array(fixture.file.json.utf8),
                endpoint: fixture.endpoint,
                allowing: TokenHosts([], admitsLoopback: true)
            )
            let next = try fixture.call(credential: successor)
            fixture.accounts.keep([next.profile.id: next.profile])
            #expect(fixture.accounts.count == 0)
            #expect(self.isAccepted(await fixture.sender.send(next)))
            #expect(fixture.accounts.count == 1)
            #expect(self.isAccepted(await fixture.sender.send(call)))
            #expect(fixture.accounts.count == 1)
            #expect(fixture.accounts.account(of: next.profile, successor)?.credential === successor)
        }
    }

    @Test("A deleted tenant's health is forgotten, and its breaker shows nothing any more")
    func health() throws {
        let metrics = TestMetrics()
        let healths = UpstreamHealths(metrics: GatewayMetrics(factory: metrics))
        let profile = try TenantProfile.sample("acme")
        let health = healths.health(of: profile)
        for _ in 0..<5 { health.report(server: .trouble, credential: .silent, at: .now) }
        let gauge = try metrics.expectMeter("fcmgw_breaker_state", [("api", "legacy"), ("project", "acme")])
        #expect(gauge.lastValue == 2)
        healths.keep([profile.id: profile])
        #expect(healths.count == 1)
        #expect(gauge.lastValue == 2)
        healths.keep([:])
        #expect(healths.count == 0)
        #expect(gauge.lastValue == 0)
        // Of a call that was under way.
        health.report(server: .trouble, credential: .silent, at: .now)
        #expect(gauge.lastValue == 0)
        _ = healths.health(of: profile)
        #expect(healths.count == 0)
    }

    @Test("Pools of servers that nobody needs are let go, and calls that are under way end as they would")
    func pools() async throws {
        try await RawUpstream.run(.send(WireAnswer.accepted)) { upstream in
            let pools = OriginPools.sample()
            try await LegacySender.run(pools: pools) { sender in
                #expect(self.isAccepted(await sender.send(try .sample(endpoint: upstream.endpoint))))
                let pool = try #require(pools.pool(for: upstream.endpoint))
                pools.keep([upstream.endpoint])
                #expect(pools.pool(for: upstream.endpoint) === pool)
                pools.keep(["https://fcm.googleapis.com"])
                #expect(pools.count == 0)
                try await upstream.seen.wait { $0.closed == 1 }
                #expect(self.isAccepted(await sender.send(try .sample(endpoint: upstream.endpoint))))
            }
        }
    }
}
