import CoreMetrics
import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayUpstream

/// The client releases a tenant's state when the tenant is deleted or its credential is replaced.
@Suite("Forgotten tenants", .timeLimit(.minutes(10)))
struct ForgottenTenantTests {
    @Test("A deleted tenant's account is released, and a call of that tenant still succeeds without storing it again")
    func account() async throws {
        try await V1Fixture.run { fixture in
            weak var account: FCMAccount?
            let call = try fixture.call()
            let profile = call.profile
            #expect(await fixture.client.send(call).isAccepted)
            account = try fixture.client.accounts.account(of: profile, .v1)
            #expect(fixture.client.accounts.count == 1)
            fixture.client.accounts.keep([profile.id: profile])
            #expect(fixture.client.accounts.count == 1)
            #expect(account != nil)
            fixture.client.accounts.keep([:])
            #expect(fixture.client.accounts.count == 0)
            #expect(account == nil)
            // The call began before its tenant was deleted.
            #expect(await fixture.client.send(call).isAccepted)
            #expect(fixture.client.accounts.count == 0)
        }
    }

    @Test("A replaced service account is released, and a call with the old credential doesn't store it again")
    func replaced() async throws {
        try await V1Fixture.run { fixture in
            let call = try fixture.call()
            #expect(await fixture.client.send(call).isAccepted)
            let successor = try V1Credential(
                serviceAccount: Array(fixture.file.json.utf8),
                endpoint: fixture.endpoint,
                allowing: TokenHosts([], admitsLoopback: true)
            )
            let next = try fixture.call(credential: successor)
            fixture.client.accounts.keep([next.profile.id: next.profile])
            #expect(fixture.client.accounts.count == 0)
            #expect(await fixture.client.send(next).isAccepted)
            #expect(fixture.client.accounts.count == 1)
            #expect(await fixture.client.send(call).isAccepted)
            #expect(fixture.client.accounts.count == 1)
            let account = try #require(try fixture.client.accounts.account(of: next.profile, .v1))
            #expect(account.serves(next.profile) && !account.serves(call.profile))
        }
    }

    @Test("A different server key gets a new account even at the same version; an unchanged key keeps its account")
    func replacedServerKey() async throws {
        try await FCMClient.run { client in
            func profile(_ key: String) throws -> TenantProfile {
                let credential = LegacyCredential(serverKey: Secret(key), endpoint: "http://127.0.0.1:1")
                return TenantProfile(tenant: try .sample(), legacyCredential: credential, v1Credential: nil)
            }
            let (old, again, next) = (try profile("first"), try profile("first"), try profile("second"))
            let account = try #require(try client.accounts.account(of: old, .legacy))
            client.accounts.keep([again.id: again])
            #expect(try client.accounts.account(of: again, .legacy) === account)
            client.accounts.keep([next.id: next])
            let successor = try #require(try client.accounts.account(of: next, .legacy))
            #expect(successor !== account)
            #expect(try client.accounts.account(of: next, .legacy) === successor)
            #expect(successor.serves(next) && !account.serves(next) && !successor.serves(old))
        }
    }

    @Test("Deleting a tenant releases its health and resets its breaker gauge to zero")
    func health() async throws {
        let metrics = TestMetrics()
        try await FCMClient.run(metrics: metrics) { client in
            let profile = try UpstreamCall.sample(endpoint: "http://127.0.0.1:1").profile
            let health = try #require(try client.accounts.account(of: profile, .legacy)).health(of: .legacy)
            for _ in 0..<5 { health.report(server: .trouble, credential: .silent, at: .now) }
            let gauge = try metrics.expectMeter("fcmgw_breaker_state", [("api", "legacy"), ("project", "acme")])
            #expect(gauge.lastValue == 2)
            client.keep([profile.id: profile])
            #expect(client.accounts.count == 1)
            #expect(gauge.lastValue == 2)
            client.keep([:])
            #expect(client.accounts.count == 0)
            #expect(gauge.lastValue == 0)
            // A call in flight reports late.
            health.report(server: .trouble, credential: .silent, at: .now)
            #expect(gauge.lastValue == 0)
            _ = try client.accounts.account(of: profile, .legacy)
            #expect(client.accounts.count == 0)
        }
    }

    @Test("Concurrent callers share one connection pool")
    func simultaneousPools() async throws {
        let pools = OriginPools.sample()
        let seen = try await withThrowingTaskGroup(of: ObjectIdentifier.self) { group in
            for _ in 0..<32 {
                group.addTask { ObjectIdentifier(try pools.pool(for: "http://127.0.0.1:1")) }
            }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(seen.count == 1)
    }

    @Test("Pools of origins that no tenant uses are closed, and a later call to such an origin succeeds")
    func pools() async throws {
        try await RawServer.run(.send(WireAnswer.accepted)) { upstream in
            let pools = OriginPools.sample()
            try await FCMClient.run(pools: pools) { sender in
                #expect(try await sender.send(.sample(endpoint: upstream.endpoint)).isAccepted)
                let pool = try pools.pool(for: upstream.endpoint)
                // Token requests have their own pool, so their failures don't break the connections of sends.
                let tokens = try pools.pool(forTokensOf: upstream.endpoint)
                #expect(tokens !== pool)
                pools.keep([upstream.endpoint], tokenOrigins: [upstream.endpoint])
                #expect(try pools.pool(for: upstream.endpoint) === pool)
                #expect(try pools.pool(forTokensOf: upstream.endpoint) === tokens)
                pools.keep([upstream.endpoint], tokenOrigins: [])
                #expect(pools.count == 1)
                pools.keep(["https://fcm.googleapis.com"], tokenOrigins: [])
                #expect(pools.count == 0)
                try await upstream.seen.wait { $0.closed == 1 }
                #expect(try await sender.send(.sample(endpoint: upstream.endpoint)).isAccepted)
            }
        }
    }
}
