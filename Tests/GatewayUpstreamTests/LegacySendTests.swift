import EventLoopHTTP
import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import NIOPosix
import Testing

@testable import GatewayUpstream

struct LegacySendTests {
    @Test("A call is one POST with the server key, the media type, the host and the message")
    func request() async throws {
        try await FCMClient.run(against: .send(WireAnswer.accepted)) { sender, upstream in
            var message = Message()
            message.data = [DataEntry(key: "score", value: "3x1")]
            message.priority = .high
            let result = await sender.send(
                try .sample(to: .token("device"), message: message, endpoint: upstream.endpoint)
            )
            #expect(result == .accepted("0:1"))
            let body = #"{"to":"device","priority":"high","data":{"score":"3x1"}}"#
            let request = try #require(upstream.seen.current.requests.first)
            let parts = request.split(separator: "\r\n\r\n", maxSplits: 1)
            var lines = parts[0].split(separator: "\r\n").map(String.init)
            #expect(lines.removeFirst() == "POST /fcm/send HTTP/1.1")
            #expect(
                Set(lines.map { $0.lowercased() }) == [
                    "host: 127.0.0.1:\(upstream.port)", "authorization: key=aaaa:server-key",
                    "content-type: application/json", "content-length: \(body.utf8.count)",
                ]
            )
            #expect(lines.contains { $0.hasSuffix(": key=AAAA:server-key") })
            #expect(parts[1] == body)
            #expect(upstream.seen.current.requests.count == 1)
        }
    }

    @Test("Sequential calls share a connection")
    func keepAlive() async throws {
        try await FCMClient.run(against: .send(WireAnswer.accepted)) { sender, upstream in
            // Pinned to one event loop, as a request's task is: each loop has its own connections.
            let executor = EventLoopTaskExecutor(eventLoop: MultiThreadedEventLoopGroup.singleton.any())
            try await withTaskExecutorPreference(executor) {
                for _ in 0..<5 {
                    let result = await sender.send(try .sample(endpoint: upstream.endpoint))
                    #expect(result.upstreamCode == "200")
                }
            }
            #expect(upstream.seen.current.requests.count == 5)
            #expect(upstream.seen.current.accepted == 1)
        }
    }

    @Test("A credential without an endpoint uses the configured one")
    func configuredEndpoint() async throws {
        try await RawServer.run(.send(WireAnswer.accepted)) { upstream in
            try await FCMClient.run(defaultEndpoint: upstream.endpoint) { sender async throws in
                #expect(try await sender.send(.sample(endpoint: nil)).upstreamCode == "200")
                #expect(upstream.seen.current.requests.count == 1)
            }
        }
    }

    @Test("A stored endpoint with plain http is refused")
    func plainEndpoint() async throws {
        try await FCMClient.run { sender in
            let result = await sender.send(try .sample(endpoint: "http://fcm.example"))
            #expect(result == .failed(.upstreamCredentials, "plain_http"))
        }
    }

    @Test("An invalid endpoint is unavailable", arguments: ["", "fcm.example", "ftp://fcm.example", "http://"])
    func noEndpoint(endpoint: String) async throws {
        try await FCMClient.run(defaultEndpoint: endpoint) { sender async throws in
            let expected = SendResult.failed(.upstreamUnavailable, "no_endpoint")
            #expect(try await sender.send(.sample(endpoint: nil)) == expected)
            #expect(try await sender.send(.sample(endpoint: endpoint)) == expected)
        }
    }

    @Test("A target that the legacy protocol can't express is refused, and a call with it sends nothing")
    func refusals() async throws {
        try await FCMClient.run(against: .send(WireAnswer.accepted)) { sender, upstream in
            let profile = try TenantProfile.sample()
            let three = #"'a' in topics || 'b' in topics || 'c' in topics || 'd' in topics"#
            let refused: [(Target, OutcomeCode, String)] = [
                (.installation("f"), .invalidTarget, "fid"),
                (.installations(["f"]), .invalidTarget, "fids"),
                (.condition(try TopicCondition(parsing: three)), .invalidField, "condition"),
                (.condition(try TopicCondition(parsing: "!('a' in topics)")), .invalidField, "condition"),
            ]
            for (target, code, field) in refused {
                let refusal = sender.refusal(of: target, for: profile)
                #expect(refusal?.code == code)
                #expect(refusal?.fields.map(\.path) == ["/\(field)"])
                #expect(refusal?.detail?.isEmpty == false)
                let result = await sender.send(try .sample(to: target, endpoint: upstream.endpoint))
                #expect(result == .failed(.invalidTarget, "inexpressible"))
            }
            let two = "'a' in topics && ('b' in topics || 'c' in topics)"
            let allowed: [Target] = [
                .token("t"), .tokens(["t"]), .topic(try #require(TopicName("a"))), .notificationKey("k"),
                .condition(try TopicCondition(parsing: two)),
            ]
            for target in allowed {
                #expect(sender.refusal(of: target, for: profile) == nil)
            }
            #expect(upstream.seen.current.accepted == 0)
        }
    }

    @Test("Attempts are measured by outcome, and calls in flight are counted")
    func metrics() async throws {
        let metrics = TestMetrics()
        try await RawServer.run(.send(WireAnswer.accepted)) { upstream in
            try await FCMClient.run(against: .close, metrics: metrics) { sender, closing in
                _ = await sender.send(try .sample(endpoint: upstream.endpoint))
                _ = await sender.send(try .sample(endpoint: closing.endpoint))
            }
        }
        for outcome in ["answered", "connectionClosed"] {
            let timer = try metrics.expectTimer(
                "fcmgw_upstream_attempt_duration_seconds",
                [("api", "legacy"), ("outcome", outcome)]
            )
            #expect(timer.values.count == 1)
        }
        #expect(try metrics.expectMeter("fcmgw_upstream_inflight", [("api", "legacy")]).values == [1, 0, 1, 0])
    }
}
