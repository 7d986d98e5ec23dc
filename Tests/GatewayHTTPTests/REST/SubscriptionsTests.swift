import EventLoopHTTP
import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

@Suite(.timeLimit(.minutes(10)))
struct SubscriptionsTests {
    private static let path = "/v1/tenants/demo/topics/news/subscriptions"

    @Test(
        "Devices are subscribed and unsubscribed, with one result each in the request's order",
        arguments: [("", SubscriptionChange.subscribe), ("/remove", .unsubscribe)]
    )
    func change(suffix: String, change: SubscriptionChange) async throws {
        try await TestGateway.run { gateway, key in
            gateway.topics.answer(
                SubscriptionResult(
                    [
                        .done, .rejected(.unregistered),
                        .rejected(Rejection(code: .tenantRateExceeded, retryAfter: 7, limitedBy: .fcm)),
                    ],
                    upstreamCode: "x"
                )
            )
            let body = #"{"tokens":["a","b","a","c"]}"#
            let answer = await gateway.data(.post, Self.path + suffix, key: key, body: body)
            #expect(answer.status == 200)
            #expect(
                answer.value == [
                    "accepted": 2, "rejected": 2,
                    "results": [
                        ["token": "a", "status": "accepted"],
                        [
                            "token": "b", "status": "rejected", "code": "unregistered", "retryable": false,
                            "action": "delete_token",
                        ],
                        ["token": "a", "status": "accepted"],
                        [
                            "token": "c", "status": "rejected", "code": "tenant_rate_exceeded", "retryable": true,
                            "action": "wait", "retry_after": 7, "limited_by": "fcm",
                        ],
                    ],
                ]
            )
            #expect(answer.header("RateLimit")?.hasPrefix("\"tenant\";r=") == true)
            #expect(answer.header("X-Request-ID")?.isUUIDv7 == true)
            let call = try #require(gateway.topics.changes.first)
            #expect(call.change == change)
            #expect(call.topic.text == "news")
            #expect(call.tokens == ["a", "b", "c"])
        }
    }

    @Test("Devices are named by installation ids too, for tenants that send by HTTP v1")
    func installations() async throws {
        try await TestGateway.run { gateway, key in
            let body = #"{"fids":["a","b"]}"#
            let list = "/v1/tenants/demo/subscriptions?fid=a"
            let refused = await gateway.data(.post, Self.path, key: key, body: body)
            #expect(try refused.faults() == ["/fids: invalid_target"])
            #expect(try await gateway.data(.get, list, key: key).faults() == ["/fid: invalid_target"])
            #expect(gateway.topics.changes.isEmpty && gateway.topics.lookUps.isEmpty)
            try await gateway.setUpstream(.v1)
            gateway.topics.answer(SubscriptionResult([.done, .rejected(.unregistered)], upstreamCode: "x"))
            let answer = await gateway.data(.post, Self.path, key: key, body: body)
            #expect(answer.value["results"]?.elements.map { $0["fid"] } == ["a", "b"])
            #expect(gateway.topics.changes.map(\.kind) == [.installation])
            gateway.topics.answer(RegistrationResult(.success(RegistrationInfo()), upstreamCode: "200"))
            #expect(await gateway.data(.get, list, key: key).body == #"{"topics":[]}"#)
            #expect(gateway.topics.lookUps.map(\.kind) == [.installation])
        }
    }

    @Test("A topic in the path is decoded once", arguments: [("a%25b", "a%b"), ("a%41", "aA"), ("a.~_-9", "a.~_-9")])
    func topic(segment: String, name: String) async throws {
        try await TestGateway.run { gateway, key in
            let path = "/v1/tenants/demo/topics/\(segment)/subscriptions"
            #expect(await gateway.data(.post, path, key: key, body: #"{"tokens":["a"]}"#).status == 200)
            #expect(gateway.topics.changes.map(\.topic.text) == [name])
        }
    }

    @Test(
        "An invalid topic is refused",
        arguments: [
            "a%20b", "a%2Fb", "a%", "%ZZ", "%2e%2e", "..", ".", "%2Ftopics%2Fnews", "%C3%BC",
            String(repeating: "x", count: 901),
        ]
    )
    func badTopic(segment: String) async throws {
        try await TestGateway.run { gateway, key in
            let path = "/v1/tenants/demo/topics/\(segment)/subscriptions"
            let answer = await gateway.data(.post, path, key: key, body: #"{"tokens":["a"]}"#)
            try answer.expectProblem(422, "invalid_target")
            #expect(gateway.topics.changes.isEmpty)
        }
    }

    @Test("A list has at most a thousand entries, repeated ones included")
    func count() async throws {
        try await TestGateway.run { gateway, key async throws in
            func body(_ count: Int) -> String {
                #"{"tokens":["# + (0..<count).map { "\"t\($0 % 900)\"" }.joined(separator: ",") + "]}"
            }
            let answer = await gateway.data(.post, Self.path, key: key, body: body(1_000))
            // The results have more members than the strict reader accepts.
            #expect(try JSON(parsing: answer.body)["results"]?.elements.count == 1_000)
            #expect(gateway.topics.changes.first?.tokens.count == 900)
            #expect(await gateway.data(.post, Self.path, key: key, body: body(1_001)).status == 422)
        }
    }

    @Test("A device's topics are listed page by page, in the order of their names")
    func list() async throws {
        try await TestGateway.run { gateway, key in
            let info = RegistrationInfo(subscriptions: [
                TopicSubscription(topic: "c"), TopicSubscription(topic: "a", since: "2025-03-14"),
                TopicSubscription(topic: "b"),
            ])
            let result = RegistrationResult(.success(info), upstreamCode: "200")
            gateway.topics.answer(result, result, result)
            let path = "/v1/tenants/demo/subscriptions?token=a%3Ab"
            let all = await gateway.data(.get, path, key: key)
            #expect(all.body == #"{"topics":[{"topic":"a","since":"2025-03-14"},{"topic":"b"},{"topic":"c"}]}"#)
            let first = await gateway.data(.get, path + "&limit=2", key: key)
            #expect(first.value["topics"]?.elements.map { $0["topic"] } == ["a", "b"])
            let cursor = try #require(first.value["next_cursor"]?.text)
            let second = await gateway.data(.get, path + "&limit=2&cursor=\(cursor)", key: key)
            #expect(second.body == #"{"topics":[{"topic":"c"}]}"#)
            #expect(gateway.topics.lookUps.map(\.token) == ["a:b", "a:b", "a:b"])
            #expect(gateway.topics.lookUps.allSatisfy { $0.part == .subscriptions })
        }
    }

    @Test("Invalid look-ups and an unregistered token are answered with problems")
    func badList() async throws {
        try await TestGateway.run { gateway, key in
            let cases = [
                ("/v1/tenants/demo/subscriptions", "invalid_field"),
                ("/v1/tenants/demo/subscriptions?token=", "invalid_field"),
                ("/v1/tenants/demo/subscriptions?token=..", "invalid_token"),
                ("/v1/tenants/demo/subscriptions?token=a&fid=b", "invalid_field"),
            ]
            for (path, code) in cases {
                try await gateway.data(.get, path, key: key).expectProblem(422, code, "\(path)")
            }
            #expect(gateway.topics.lookUps.isEmpty)
            gateway.topics.answer(RegistrationResult(.failure(Refusal(.unregistered)), upstreamCode: "404"))
            let dead = await gateway.data(.get, "/v1/tenants/demo/subscriptions?token=a", key: key)
            try dead.expectProblem(410, "unregistered")
        }
    }
}
