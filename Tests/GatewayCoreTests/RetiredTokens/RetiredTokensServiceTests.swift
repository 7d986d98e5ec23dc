import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import ServiceLifecycleTestKit
import Testing

@Suite("RetiredTokens as a service")
struct RetiredTokensServiceTests {
    @Test("Reports are written while the service runs, and the rest at shutdown", .timeLimit(.minutes(10)))
    func writes() async throws {
        let fixture = PipelineFixture { _ in
            SendResult([.rejected(.unregistered)], upstreamCode: "200")
        }
        let principal = try Principal.sample()
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await fixture.retired.run() }
                _ = await fixture.pipeline.send(.sample(from: principal, to: .token("a")))
                try await fixture.retiredStore.wait(forEntries: 1)
                fixture.retiredStore.refuse()
                _ = await fixture.pipeline.send(.sample(from: principal, to: .token("b")))
                fixture.retiredStore.refuse(false)
                trigger.triggerGracefulShutdown()
                try await group.waitForAll()
            }
        }
        #expect(try await fixture.retiredStore.entries().count == 2)
    }

    @Test("Changes that the store refuses at shutdown are counted as dropped", .timeLimit(.minutes(10)))
    func refusingStore() async throws {
        let fixture = PipelineFixture { _ in
            SendResult([.rejected(.unregistered)], upstreamCode: "200")
        }
        fixture.retiredStore.refuse()
        _ = await fixture.pipeline.send(.sample(from: try .sample(), to: .token("a")))
        try await testGracefulShutdown { trigger in
            trigger.triggerGracefulShutdown()
            try await fixture.retired.run()
        }
        let dropped = fixture.metrics.counterTotal(
            label: "fcmgw_retired_token_changes_total",
            dimensions: [("result", "dropped")]
        )
        #expect(dropped >= 1)
        fixture.retiredStore.refuse(false)
        #expect(try await fixture.retiredStore.entries().isEmpty)
    }

    @Test("Concurrent sends and flushes lose and repeat no report", .timeLimit(.minutes(10)))
    func concurrent() async throws {
        let fixture = PipelineFixture(queueCapacity: 100_000) { call in
            guard case .tokens(let tokens) = call.target else { return ScriptedUpstream.accepting(call) }
            let outcomes = tokens.map { token -> RecipientOutcome in
                token.hasPrefix("dead") ? .rejected(.unregistered) : .accepted(Acceptance(messageID: token))
            }
            return SendResult(outcomes, upstreamCode: "200")
        }
        let ample = [try RatePolicy.sample(1_000_000, per: 1, burst: 1_000_000)]
        let principal = try Principal.sample(limits: LimitPolicies(tenant: ample, device: ample))
        await withTaskGroup { group in
            for sender in 0..<8 {
                group.addTask {
                    for index in 0..<50 {
                        let alive = (0..<40).map { "alive-\($0)" }
                        let tokens = alive + ["dead-\(sender)-\(index)", "dead-common-\(index)"]
                        _ = await fixture.pipeline.send(.sample(from: principal, to: .tokens(tokens)))
                    }
                }
            }
            group.addTask {
                for _ in 0..<50 { await fixture.retired.flush() }
            }
        }
        await fixture.retired.settleAndFlush()
        let entries = try await fixture.retiredStore.entries()
        #expect(entries.count == 450)
        #expect(Set(entries.map(\.key)).count == 450)
        #expect(entries.allSatisfy { $0.state == .unregistered })
        fixture.clock.advance(by: .seconds(3_900))
        await fixture.retired.settleAndFlush()
        let feed = try await fixture.retired.feed(of: principal.profile, after: nil, limit: 1_000)
        #expect(Set(feed.tokens.map(\.text)).count == 450)
    }
}
