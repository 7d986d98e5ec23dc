import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayUpstream

@Suite("Sends by HTTP v1", .timeLimit(.minutes(10)))
struct V1SendTests {
    @Test("A message is sent with an access token, and the result has FCM's message id")
    func send() async throws {
        try await V1Fixture.run { fixture in
            var message = Message()
            message.data = [DataEntry(key: "score", value: "3x1")]
            let result = try await fixture.send(message: message)
            let delivery = try #require(fixture.emulator.deliveries(token: "device").first)
            #expect(result == .accepted(delivery.messageID))
            let entry = try #require(fixture.messages.first)
            #expect(entry.path == "/v1/projects/demo-project/messages:send")
            #expect(entry.body == #"{"message":{"token":"device","data":{"score":"3x1"}}}"#)
            let authorization = entry.headers.first { $0.name.lowercased() == "authorization" }
            #expect(authorization?.value.hasPrefix("Bearer ya29.") == true)
            #expect(fixture.tokenRequests.count == 1)
        }
    }

    @Test("A topic or a condition is sent in one call")
    func topics() async throws {
        try await V1Fixture.run { fixture in
            let condition = try TopicCondition(parsing: "'a' in topics && !('b' in topics)")
            let topic = try #require(TopicName("news"))
            for target in [Target.topic(topic), .condition(condition)] {
                #expect(try await fixture.send(to: target).upstreamCode == "200")
                #expect(fixture.client.refusal(of: target, for: try fixture.call().profile) == nil)
            }
            #expect(fixture.messages.count == 2)
        }
    }

    @Test("A dry run is sent with validate_only and delivers nothing")
    func dryRun() async throws {
        try await V1Fixture.run { fixture async throws in
            var message = Message()
            message.dryRun = true
            #expect(try await fixture.send(message: message, projectID: V1Fixture.projectID).upstreamCode == "200")
            #expect(fixture.messages.first?.body == #"{"validate_only":true,"message":{"token":"device"}}"#)
            #expect(fixture.emulator.deliveries().isEmpty)
        }
    }

    @Test("An unregistered token is rejected, and an unknown project is a credential error")
    func refusals() async throws {
        try await V1Fixture.run { fixture in
            let dead = try await fixture.send(to: .token("ERROR_UNREGISTERED"))
            #expect(
                dead == SendResult([.rejected(.unregistered)], upstreamCode: "UNREGISTERED")
            )
            #expect(try await fixture.send(projectID: "nobodys") == .failed(.upstreamCredentials, "404"))
            // A wrong project doesn't replace the access token.
            #expect(fixture.tokenRequests.count == 1)
        }
    }

    @Test("A missing credential or an invalid endpoint sends nothing")
    func missing() async throws {
        try await V1Fixture.run { fixture in
            let bare = try UpstreamCall.sample(of: fixture.tenant(), credential: nil)
            #expect(await fixture.client.send(bare) == .failed(.upstreamCredentials, "no_credential"))
            let lost = try fixture.call(credential: .sample(endpoint: "fcm"))
            #expect(await fixture.client.send(lost) == .failed(.upstreamUnavailable, "no_endpoint"))
            #expect(fixture.emulator.journal().isEmpty)
        }
    }

    @Test("A credential's endpoint replaces the configured one")
    func ownEndpoint() async throws {
        try await V1Fixture.run { fixture in
            try await RawServer.run(.send(WireAnswer.text("200 OK", #"{"name":"projects/p/messages/7"}"#))) {
                upstream in
                let credential = try fixture.serviceAccount(Array(fixture.file.json.utf8), endpoint: upstream.endpoint)
                let result = try await fixture.send(credential: credential)
                #expect(result.answer == .recipients([.accepted(Acceptance(messageID: "7"))]))
                #expect(fixture.messages.isEmpty)
                // The same key shares its access token across endpoints.
                _ = try await fixture.send()
                #expect(fixture.tokenRequests.count == 1)
            }
        }
    }

    @Test("Attempts and exchanges are measured")
    func metrics() async throws {
        let metrics = TestMetrics()
        try await V1Fixture.run(metrics: metrics) { fixture in
            _ = try await fixture.send()
            fixture.emulator.addFault(Fault(token: "gone", action: .reset))
            _ = try await fixture.send(to: .token("gone"))
        }
        for outcome in ["answered", "connectionClosed"] {
            let timer = try metrics.expectTimer(
                "fcmgw_upstream_attempt_duration_seconds",
                [("api", "v1"), ("outcome", outcome)]
            )
            #expect(timer.values.count == 1)
        }
        #expect(try metrics.expectMeter("fcmgw_upstream_inflight", [("api", "v1")]).values == [1, 0, 1, 0])
        #expect(try metrics.expectCounter("fcmgw_oauth_refresh_total", [("result", "done")]).totalValue == 1)
    }
}
