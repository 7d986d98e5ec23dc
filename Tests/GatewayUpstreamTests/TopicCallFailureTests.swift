import EventLoopHTTP
import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import NIOPosix
import Testing

@testable import GatewayUpstream

@Suite("Failures of topic calls", .timeLimit(.minutes(10)))
struct TopicCallFailureTests {
    @Test("A refused access token is replaced once for all calls", arguments: TopicAPI.allCases)
    func refresh(api: TopicAPI) async throws {
        try await V1Fixture.run(fanOut: 10, topicAPI: api) { fixture in
            _ = try await fixture.change(["first"])
            fixture.emulator.revokeAccessTokens()
            let tokens = (0..<50).map { "device-\($0)" }
            #expect(try await fixture.change(tokens).codes == Array(repeating: nil, count: 50))
            #expect(fixture.tokenRequests.count == 2)
        }
    }

    @Test("A second refusal of the credential stops the remaining calls", arguments: TopicAPI.allCases)
    func refusedTwice(api: TopicAPI) async throws {
        try await V1Fixture.run(fanOut: 4, topicAPI: api) { fixture in
            _ = try await fixture.change(["first"])
            let before = fixture.topicRequests.count
            for token in ["device-0", "device-1", "device-2", "device-3"] {
                fixture.emulator.addFault(
                    Fault(token: token, times: 1_000, action: .status(401, body: "", headers: []))
                )
            }
            let result = try await fixture.change((0..<1_000).map { "device-\($0)" })
            #expect(result.codes.contains(.upstreamCredentials))
            #expect(result.codes.allSatisfy { $0 == nil || $0 == .upstreamCredentials })
            #expect(fixture.topicRequests.count - before < 1_000)
        }
    }

    @Test("An exhausted quota rejects the remaining devices with FCM's Retry-After")
    func quota() async throws {
        try await V1Fixture.run(fanOut: 1) { fixture in
            fixture.emulator.addFault(
                Fault(
                    token: "b",
                    action: .status(429, body: "{}", headers: [HeaderField(name: "Retry-After", value: "7")])
                )
            )
            let result = try await fixture.change(["a", "b", "c", "d"])
            let rejection = Rejection(code: .tenantRateExceeded, retryAfter: 7, limitedBy: .fcm)
            #expect(
                result
                    == SubscriptionResult(
                        [.done, .rejected(rejection), .rejected(rejection), .rejected(rejection)],
                        upstreamCode: "429"
                    )
            )
            #expect(fixture.topicRequests.count == 2)
        }
    }

    @Test("If the v1 topic API is missing, the Instance ID API is used, also for later calls")
    func missing() async throws {
        try await V1Fixture.run(fanOut: 1) { fixture in
            fixture.emulator.addFault(Fault(token: "a", action: .page(404)))
            #expect(try await fixture.change(["a", "b", "ERROR_UNREGISTERED"]).codes == [nil, nil, .unregistered])
            #expect(fixture.topicRequests.map(\.path).last == "/iid/v1:batchAdd")
            #expect(fixture.topicRequests.count == 2)
            #expect(fixture.emulator.topics(of: "b") == ["news"])
            _ = try await fixture.change(["c"])
            #expect(try await fixture.look(up: "c").found != nil)
            #expect(fixture.topicRequests.map(\.path).suffix(2) == ["/iid/v1:batchAdd", "/iid/info/c?details=true"])
        }
    }

    @Test("A look-up falls back to the Instance ID API")
    func missingList() async throws {
        try await V1Fixture.run { fixture in
            try fixture.emulator.subscribe(["a"], to: "news")
            fixture.emulator.addFault(Fault(token: "a", action: .page(404)))
            #expect(try await fixture.look(up: "a").found?.subscriptions.map(\.topic) == ["news"])
        }
    }

    @Test("A 404 for one device falls back to the Instance ID API for that device only")
    func oneMissing() async throws {
        try await V1Fixture.run(fanOut: 1) { fixture in
            fixture.emulator.addFault(Fault(token: "b", action: .page(404)))
            #expect(try await fixture.change(["a", "b", "c"]).codes == [nil, nil, nil])
            let bodies = fixture.topicRequests.filter { $0.path.hasPrefix("/iid/") }.map(\.body)
            #expect(bodies == [#"{"to":"/topics/news","registration_tokens":["b"]}"#])
            // The v1 API exists, so the next change uses it again.
            _ = try await fixture.change(["d"])
            #expect(fixture.topicRequests.last?.path.contains("/registrations/d/") == true)
        }
    }

    @Test("If both APIs are missing, the change fails, and the next change uses v1 again")
    func bothMissing() async throws {
        try await V1Fixture.run(fanOut: 1) { fixture async throws in
            fixture.emulator.addFault(Fault(token: "a", times: 2, action: .page(404)))
            #expect(try await fixture.change(["a", "b"]).codes == [.upstreamProtocol, .upstreamProtocol])
            #expect(try await fixture.change(["b"]).codes == [nil])
            #expect(fixture.topicRequests.last?.path.contains("topicSubscriptions") == true)
        }
    }

    @Test("An unreadable batch response fails every device", arguments: [FaultAction.garbage, .truncate, .page(200)])
    func garbage(action: FaultAction) async throws {
        try await V1Fixture.run(topicAPI: .instanceID) { fixture in
            _ = try await fixture.change(["first"])
            fixture.emulator.addFault(Fault(path: "/iid/v1:batchAdd", action: action))
            let codes = try await fixture.change(["a", "b"]).codes
            #expect(codes.count == 2)
            #expect(codes.allSatisfy { $0 == .upstreamProtocol || $0 == .upstreamUnavailable })
        }
    }

    @Test("Devices without an answer before the deadline are rejected as unavailable", arguments: TopicAPI.allCases)
    func deadline(api: TopicAPI) async throws {
        try await V1Fixture.run(fanOut: 2, topicAPI: api) { fixture in
            _ = try await fixture.change(["first"])
            for token in ["a", "b"] { fixture.emulator.addFault(Fault(token: token, action: .hang)) }
            let result = try await fixture.change(["a", "b", "c"], timeLeft: .milliseconds(300))
            #expect(result.codes == [.upstreamUnavailable, .upstreamUnavailable, .upstreamUnavailable])
            #expect(fixture.emulator.topics(of: "c") == [])
            fixture.emulator.deleteFaults()
        }
    }

    @Test("A lost connection fails only its own device")
    func reset() async throws {
        try await V1Fixture.run { fixture in
            _ = try await fixture.change(["first"])
            fixture.emulator.addFault(Fault(token: "b", action: .reset))
            #expect(try await fixture.change(["a", "b", "c"]).codes == [nil, .upstreamUnavailable, nil])
        }
    }

    @Test("A change of 1,000 devices makes 1,000 calls, at most eight at a time")
    func thousand() async throws {
        try await V1Fixture.run(fanOut: 8) { fixture in
            let tokens = (0..<1_000).map { "device-\($0)" }
            // Runs on one event loop, as a request does: each loop has its own connections.
            let executor = EventLoopTaskExecutor(eventLoop: MultiThreadedEventLoopGroup.singleton.next())
            let result = try await withTaskExecutorPreference(executor) { try await fixture.change(tokens) }
            #expect(result.codes == Array(repeating: nil, count: 1_000))
            #expect(fixture.topicRequests.count == 1_000)
            // With HTTP/1.1, each call in flight has its own connection.
            #expect((1...8).contains(Set(fixture.topicRequests.compactMap(\.connection)).count))
            #expect(fixture.tokenRequests.count == 1)
            _ = try await fixture.send(to: .topic(try #require(TopicName("news"))))
            #expect(Set(fixture.emulator.deliveries(topic: "news").map(\.token)) == Set(tokens))
        }
    }
}
