import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayUpstream

struct UpstreamHealthTests {
    @Test("Repeated 503 responses open the breaker in the middle of a list, and the list fails as unavailable")
    func trouble() async throws {
        try await V1Fixture.run(fanOut: 4) { fixture in
            _ = try await fixture.send()
            fixture.emulator.addFault(
                Fault(
                    path: "/v1/projects/\(V1Fixture.projectID)/messages:send",
                    times: 1_000,
                    action: .status(503, body: nil, headers: [])
                )
            )
            let result = try await fixture.send(to: .tokens((0..<300).map { "device-\($0)" }))
            #expect(result.refusal?.code == .upstreamUnavailable)
            // Five failures open the breaker; three more calls may be in flight. A 503 is not retried here.
            #expect((5...8).contains(fixture.messages.count - 1))
            fixture.emulator.deleteFaults()
            // The server has recovered, but the breaker is still open.
            let later = try await fixture.send()
            #expect(later.upstreamCode == "breaker_open")
            #expect((1...30).contains(later.retryAfter ?? 0))
        }
    }

    @Test("A device's exceeded quota doesn't pause its project")
    func quota() async throws {
        try await V1Fixture.run { fixture async throws in
            for _ in 1...6 {
                #expect(try await fixture.send(to: .token("ERROR_QUOTA_EXCEEDED")).codes == [.deviceRateExceeded])
            }
            #expect(fixture.messages.count == 6)
            #expect(try await fixture.send().upstreamCode == "200")
        }
    }

    @Test("Five failed topic calls open the breaker for topics but not for messages", arguments: TopicAPI.allCases)
    func topics(api: TopicAPI) async throws {
        try await V1Fixture.run(fanOut: 1, topicAPI: api) { fixture in
            _ = try await fixture.change(["first"])
            let path = api == .v1 ? nil : "/iid/v1:batchAdd"
            let token = api == .v1 ? "troubled" : nil
            fixture.emulator.addFault(Fault(path: path, token: token, times: 1_000, action: .page(503)))
            let before = fixture.topicRequests.count
            for _ in 1...20 {
                #expect(try await fixture.change(["troubled"]).codes == [.upstreamUnavailable])
            }
            #expect(fixture.topicRequests.count - before == 5)
            let refused = try await fixture.change(["troubled"])
            #expect(refused.upstreamCode == "breaker_open")
            guard case .rejected(let rejection)? = refused.outcomes.first else {
                Issue.record("\(refused)")
                return
            }
            #expect((1...30).contains(rejection.retryAfter ?? 0))
            #expect(try await fixture.send().upstreamCode == "200")
        }
    }

    @Test("An exhausted subscription quota refuses the next topic change but no messages")
    func topicQuota() async throws {
        try await V1Fixture.run { fixture in
            fixture.emulator.addFault(Fault(token: "device", action: .status(429, body: "{}", headers: [])))
            _ = try await fixture.change(["device"])
            let before = fixture.topicRequests.count
            let refused = try await fixture.change(["other"])
            #expect(refused.upstreamCode == "project_quota")
            #expect(refused.codes == [.tenantRateExceeded])
            #expect(fixture.topicRequests.count == before)
            #expect(try await fixture.send().upstreamCode == "200")
        }
    }

    @Test("Five failed device group calls open the breaker")
    func groups() async throws {
        try await GroupFixture.legacy { fixture in
            fixture.emulator.addFault(Fault(path: "/fcm/notification", times: 1_000, action: .page(503)))
            func lookUp() async -> GroupResult {
                await fixture.perform(.lookUp(name: "g"))
            }
            for _ in 1...20 { #expect(await lookUp().answer.failure?.kind == .upstreamUnavailable) }
            #expect(fixture.requests.count == 5)
            let refused = await lookUp()
            #expect(refused.upstreamCode == "breaker_open")
            #expect((1...30).contains(refused.answer.failure?.retryAfter ?? 0))
        }
    }

    @Test("Topic, group and credential calls that were not sent are retried twice")
    func budget() async throws {
        let metrics = TestMetrics()
        try await ClosedPort.with { port in
            try await FCMClient.run(metrics: metrics) { client in
                let credential = LegacyCredential(serverKey: Secret("key"), endpoint: "http://127.0.0.1:\(port)")
                var tenant = try Tenant.sample()
                tenant.senderID = GroupFixture.senderID
                let profile = try UpstreamCall.sample(of: tenant, credential: credential).profile
                let retries = try metrics.expectCounter("fcmgw_retries_total", [("reason", "not_sent")])
                _ = await client.change(try .sample(["device"], of: profile))
                #expect(retries.totalValue == 2)
                let deadline = Uptime.now + .seconds(600)
                _ = await client.perform(.lookUp(name: "g"), of: profile, deadline: deadline, origin: .untraced)
                #expect(retries.totalValue == 4)
                _ = await client.prove(.legacy, of: profile, origin: .untraced)
                #expect(retries.totalValue == 6)
            }
        }
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}
