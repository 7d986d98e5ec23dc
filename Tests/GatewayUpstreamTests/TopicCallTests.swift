import FCMEmulator
import FCMModel
import Foundation
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayUpstream

@Suite("Topic calls", .timeLimit(.minutes(10)))
struct TopicCallTests {
    @Test("The v1 API subscribes by POST and unsubscribes by DELETE, with an access token")
    func v1() async throws {
        try await V1Fixture.run { fixture in
            let result = try await fixture.change(["a:b/c"], topic: "100%")
            #expect(result == SubscriptionResult([.done], upstreamCode: "200"))
            #expect(fixture.emulator.topics(of: "a:b/c") == ["100%"])
            _ = try await fixture.change(.unsubscribe, ["a:b/c"], topic: "100%")
            #expect(fixture.emulator.topics(of: "a:b/c") == [])
            let parent = "/v1/projects/demo-project/registrations/a%3Ab%2Fc/topicSubscriptions"
            #expect(fixture.topicRequests.map(\.method) == ["POST", "DELETE"])
            #expect(
                fixture.topicRequests.map(\.path)
                    == [parent + "?topic_name=100%25", parent + "/100%25?allow_missing=true"]
            )
            #expect(fixture.topicRequests.map(\.body) == ["{}", ""])
            #expect(fixture.topicRequests.allSatisfy { $0.field("authorization")?.hasPrefix("Bearer ya29.") == true })
            #expect(fixture.topicRequests.allSatisfy { $0.field("access_token_auth") == nil })
        }
    }

    @Test("The Instance ID API gets one call for all devices, with access_token_auth set")
    func instanceID() async throws {
        try await V1Fixture.run(topicAPI: .instanceID) { fixture in
            #expect(try await fixture.change(["a", "b"]) == SubscriptionResult([.done, .done], upstreamCode: "200"))
            _ = try await fixture.change(.unsubscribe, ["b"])
            #expect(fixture.emulator.topics(of: "a") == ["news"])
            #expect(fixture.emulator.topics(of: "b") == [])
            #expect(fixture.topicRequests.map(\.path) == ["/iid/v1:batchAdd", "/iid/v1:batchRemove"])
            #expect(
                fixture.topicRequests.map(\.body) == [
                    #"{"to":"/topics/news","registration_tokens":["a","b"]}"#,
                    #"{"to":"/topics/news","registration_tokens":["b"]}"#,
                ]
            )
            #expect(fixture.topicRequests.allSatisfy { $0.field("access_token_auth") == "true" })
            #expect(fixture.topicRequests.allSatisfy { $0.field("authorization")?.hasPrefix("Bearer ya29.") == true })
        }
    }

    @Test("Installation ids are sent to the v1 API, and never to the Instance ID API", arguments: TopicAPI.allCases)
    func installations(api: TopicAPI) async throws {
        try await V1Fixture.run(topicAPI: api) { fixture in
            for profile in [try fixture.profile(), try fixture.profile(.legacy)] {
                let isKnown = api == .v1 && profile.tenant.upstream == .v1
                let before = fixture.topicRequests.count
                let call = try SubscriptionCall.sample(["fid-1"], kind: .installation, of: profile)
                #expect(await fixture.client.change(call).codes == [isKnown ? nil : .invalidTarget])
                let found = await fixture.client
                    .lookUp(try .sample("fid-1", .subscriptions, kind: .installation, of: profile)).found
                #expect(found?.subscriptions.map(\.topic) == (isKnown ? ["news"] : nil))
                #expect(fixture.topicRequests.count == before + (isKnown ? 2 : 0))
                #expect(
                    fixture.topicRequests.allSatisfy { $0.path.contains("/registrations/fid-1/topicSubscriptions") }
                )
            }
        }
    }

    @Test(
        "A legacy tenant uses the Instance ID API with its server key, whichever API is configured",
        arguments: [TopicAPI.v1, .instanceID]
    )
    func legacy(api: TopicAPI) async throws {
        try await V1Fixture.run(topicAPI: api) { fixture in
            let profile = try fixture.profile(.legacy)
            #expect(try await fixture.change(["a"], of: profile) == SubscriptionResult([.done], upstreamCode: "200"))
            let info = try #require(try await fixture.look(up: "a", of: profile).found)
            #expect(info.subscriptions.map(\.topic) == ["news"])
            #expect(fixture.topicRequests.map(\.path) == ["/iid/v1:batchAdd", "/iid/info/a?details=true"])
            #expect(fixture.topicRequests.allSatisfy { $0.field("authorization") == "key=AAAA:server-key" })
            #expect(fixture.topicRequests.allSatisfy { $0.field("access_token_auth") == nil })
            #expect(fixture.tokenRequests.isEmpty)
        }
    }

    @Test("Outcomes are in the order of the devices with either API", arguments: [TopicAPI.v1, .instanceID], [1, 100])
    func partial(api: TopicAPI, fanOut: Int) async throws {
        try await V1Fixture.run(fanOut: fanOut, topicAPI: api) { fixture in
            let result = try await fixture.change([
                "a", "ERROR_UNREGISTERED-1", "b", "ERROR_SENDER_ID_MISMATCH", "ERROR_InvalidRegistration",
                "ERROR_UNAVAILABLE", "ERROR_INTERNAL", "ERROR_TOO_MANY_TOPICS", "c",
            ])
            #expect(
                result.codes == [
                    nil, .unregistered, nil, .senderMismatch, .invalidToken, .upstreamUnavailable, .upstreamInternal,
                    .tooManyTopics, nil,
                ]
            )
            #expect(["a", "b", "c"].map(fixture.emulator.topics(of:)) == [["news"], ["news"], ["news"]])
            #expect(fixture.emulator.topics(of: "ERROR_UNREGISTERED-1") == [])
        }
    }

    @Test("Repeating a subscription or an unsubscription succeeds", arguments: TopicAPI.allCases)
    func repeated(api: TopicAPI) async throws {
        try await V1Fixture.run(topicAPI: api) { fixture async throws in
            for change in [SubscriptionChange.subscribe, .subscribe, .unsubscribe, .unsubscribe] {
                #expect(try await fixture.change(change, ["a"]).codes == [nil])
            }
            #expect(fixture.emulator.topics(of: "a") == [])
        }
    }

    @Test("A device with 2,000 topics can't subscribe to another", arguments: TopicAPI.allCases)
    func tooMany(api: TopicAPI) async throws {
        try await V1Fixture.run(topicAPI: api) { fixture in
            for index in 0..<2_000 { try fixture.emulator.subscribe(["full"], to: "topic-\(index)") }
            #expect(try await fixture.change(["full", "other"]).codes == [.tooManyTopics, nil])
        }
    }

    @Test("A device's subscriptions are listed page by page")
    func pages() async throws {
        try await V1Fixture.run { fixture in
            for index in 0..<700 { try fixture.emulator.subscribe(["a"], to: "topic-\(index)") }
            let info = try #require(try await fixture.look(up: "a").found)
            #expect(info.subscriptions.map(\.topic) == fixture.emulator.topics(of: "a"))
            #expect(info.subscriptions.allSatisfy { $0.since?.hasSuffix("Z") == true })
            #expect(fixture.topicRequests.count == 3)
            #expect(info.application == nil)
            #expect(try await fixture.look(up: "b").answer == .success(RegistrationInfo()))
        }
    }

    @Test("A look-up of all details uses the Instance ID API")
    func everything() async throws {
        try await V1Fixture.run { fixture in
            _ = try await fixture.change(["a"])
            let info = try #require(try await fixture.look(up: "a", .everything).found)
            #expect(info.platform == "ANDROID")
            #expect(info.authorizedEntity == "123456789012")
            #expect(info.subscriptions.map(\.topic) == ["news"])
            #expect(info.subscriptions.first?.since?.count == 10)
            #expect(fixture.topicRequests.last?.path == "/iid/info/a?details=true")
        }
    }

    @Test(
        "A failed look-up reports an unregistered or invalid token",
        arguments: TopicAPI.allCases,
        [("ERROR_UNREGISTERED", OutcomeCode.unregistered), ("ERROR_InvalidRegistration", .invalidToken)]
    )
    func unknown(api: TopicAPI, expected: (token: String, code: OutcomeCode)) async throws {
        try await V1Fixture.run(topicAPI: api) { fixture async throws in
            #expect(try await fixture.look(up: expected.token).answer == .failure(Refusal(expected.code)))
        }
    }

    @Test("A missing credential or an invalid endpoint sends no requests", arguments: UpstreamKind.allCases)
    func missing(upstream: UpstreamKind) async throws {
        try await V1Fixture.run { fixture in
            let bare = try fixture.profile(upstream, isBare: true)
            let missing = try await fixture.change(["a", "b"], of: bare)
            #expect(missing.codes == [.upstreamCredentials, .upstreamCredentials])
            #expect(missing.upstreamCode == "no_credential")
            #expect(try await fixture.look(up: "a", of: bare).upstreamCode == "no_credential")
            let lost = try fixture.profile(upstream, endpoint: "fcm")
            #expect(try await fixture.change(["a"], of: lost).codes == [.upstreamUnavailable])
            #expect(try await fixture.look(up: "a", of: lost).upstreamCode == "no_endpoint")
            #expect(fixture.emulator.journal().isEmpty)
        }
    }

    @Test("A credential's endpoint gets its topic requests instead of the configured one")
    func ownEndpoint() async throws {
        try await V1Fixture.run { fixture in
            try await RawServer.run(.send(WireAnswer.text("200 OK", #"{"results":[{}]}"#))) { upstream in
                let profile = try fixture.profile(.legacy, endpoint: upstream.endpoint)
                #expect(try await fixture.change(["a"], of: profile).codes == [nil])
                #expect(upstream.seen.current.requests.first?.hasPrefix("POST /iid/v1:batchAdd HTTP/1.1") == true)
                #expect(fixture.topicRequests.isEmpty)
            }
        }
    }

    @Test("Messages and subscriptions of one credential share its access token")
    func sharedToken() async throws {
        try await V1Fixture.run { fixture in
            _ = try await fixture.send()
            _ = try await fixture.change(["a"])
            _ = try await fixture.look(up: "a", .everything)
            #expect(fixture.tokenRequests.count == 1)
        }
    }

    @Test("Calls are measured by API")
    func metrics() async throws {
        let metrics = TestMetrics()
        try await V1Fixture.run(metrics: metrics) { fixture in
            _ = try await fixture.change(["a", "b"])
            _ = try await fixture.look(up: "a", .everything)
        }
        func count(_ api: String) throws -> Int {
            try metrics.expectTimer("fcmgw_upstream_attempt_duration_seconds", [("api", api), ("outcome", "answered")])
                .values.count
        }
        #expect(try count("v1_topics") == 2)
        #expect(try count("iid") == 1)
    }
}
