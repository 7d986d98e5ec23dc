import EventLoopHTTP
import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import MetricsTestKit
import Testing

@testable import GatewayHTTP

@Suite("SubscriptionsController", .timeLimit(.minutes(10)))
struct SubscriptionsControllerTests {
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

    @Test("One device or many, the answer is a list")
    func one() async throws {
        try await TestGateway.run { gateway, key in
            gateway.topics.answer(SubscriptionResult([.rejected(.unregistered)], upstreamCode: "x"))
            let answer = await gateway.data(.post, Self.path, key: key, body: #"{"tokens":["a"]}"#)
            #expect(answer.status == 200)
            #expect(answer.value["results"]?[0]?["code"] == "unregistered")
        }
    }

    @Test(
        "One cause for all is that problem",
        arguments: [
            (OutcomeCode.upstreamUnavailable, 503), (.upstreamCredentials, 502), (.upstreamProtocol, 502),
            (.upstreamInternal, 502), (.tenantRateExceeded, 429),
        ]
    )
    func problem(code: OutcomeCode, status: Int) async throws {
        try await TestGateway.run { gateway, key in
            gateway.topics.answer(SubscriptionResult([.rejected(code), .rejected(code)], upstreamCode: "x"))
            let answer = await gateway.data(.post, Self.path, key: key, body: #"{"tokens":["a","b"]}"#)
            #expect(answer.status == status)
            let problem = try answer.problem()
            #expect(problem["code"]?.text == code.rawValue)
            #expect(problem["id"] == nil)
            #expect(problem["detail"]?.text?.contains("delivered") == false)
        }
    }

    @Test("A topic in the path is escaped once", arguments: [("a%25b", "a%b"), ("a%41", "aA"), ("a.~_-9", "a.~_-9")])
    func topic(segment: String, name: String) async throws {
        try await TestGateway.run { gateway, key in
            let path = "/v1/tenants/demo/topics/\(segment)/subscriptions"
            #expect(await gateway.data(.post, path, key: key, body: #"{"tokens":["a"]}"#).status == 200)
            #expect(gateway.topics.changes.map(\.topic.text) == [name])
        }
    }

    @Test(
        "What is no topic is refused",
        arguments: [
            "a%20b", "a%2Fb", "a%", "%ZZ", "%2e%2e", "..", ".", "%2Ftopics%2Fnews", "%C3%BC",
            String(repeating: "x", count: 901),
        ]
    )
    func badTopic(segment: String) async throws {
        try await TestGateway.run { gateway, key in
            let path = "/v1/tenants/demo/topics/\(segment)/subscriptions"
            let answer = await gateway.data(.post, path, key: key, body: #"{"tokens":["a"]}"#)
            let code = try answer.code()
            #expect(answer.status == 422)
            #expect(code == "invalid_target")
            #expect(gateway.topics.changes.isEmpty)
        }
    }

    @Test(
        "Bad bodies name what is wrong with them",
        arguments: [
            (#"{}"#, ["/tokens: invalid_field"]), (#"{"tokens":[]}"#, ["/tokens: invalid_field"]),
            (#"{"tokens":"a"}"#, ["/tokens: invalid_field"]), (#"{"tokens":null}"#, ["/tokens: invalid_field"]),
            (#"{"tokens":["a",1]}"#, ["/tokens/1: invalid_field"]), (#"{"tokens":[""]}"#, ["/tokens/0: invalid_field"]),
            (#"{"tokens":["a","/topics/x",".."]}"#, ["/tokens/1: invalid_token", "/tokens/2: invalid_token"]),
            (#"{"tokens":["a"],"topic":"x"}"#, ["/topic: unknown_field"]),
        ]
    )
    func badBody(body: String, faults: [String]) async throws {
        try await TestGateway.run { gateway, key in
            let answer = await gateway.data(.post, Self.path, key: key, body: body)
            let found = try answer.faults()
            #expect(answer.status == 422)
            #expect(found == faults)
            #expect(gateway.topics.changes.isEmpty)
        }
    }

    @Test("A list has at most a thousand entries, repeated ones included")
    func count() async throws {
        try await TestGateway.run { gateway, key in
            func body(_ count: Int) -> String {
                #"{"tokens":["# + (0..<count).map { "\"t\($0 % 900)\"" }.joined(separator: ",") + "]}"
            }
            let answer = await gateway.data(.post, Self.path, key: key, body: body(1_000))
            // A list of all results has more members than the gateway's own reader takes.
            let json = try JSON(parsing: answer.body)
            #expect(json["results"]?.elements.count == 1_000)
            #expect(gateway.topics.changes.first?.tokens.count == 900)
            #expect(await gateway.data(.post, Self.path, key: key, body: body(1_001)).status == 422)
        }
    }

    @Test("Requests are refused like those of other routes")
    func refusals() async throws {
        try await TestGateway.run { gateway, key in
            let sender = try await gateway.makeKey(scopes: [.sendMessages])
            let sports = try await gateway.makeKey(scopes: [.manageTopics], topicPrefixes: ["sport"])
            let foreign = "/v1/tenants/other/topics/news/subscriptions"
            let body = #"{"tokens":["a"]}"#
            let cases: [(String, String?, String, [String: String], Int)] = [
                (Self.path, nil, body, [:], 401), (Self.path, sender, body, [:], 403),
                (Self.path, sports, body, [:], 403),
                (foreign, key, body, [:], 404), ("/v1/tenants/nobody/topics/news/subscriptions", key, body, [:], 404),
                (Self.path, key, "no json", [:], 400), (Self.path, key, #"{"tokens":["a"],"tokens":["b"]}"#, [:], 400),
                (Self.path, key, body, ["Content-Type": "text/plain"], 415),
                (Self.path, key, body, ["Idempotency-Key": "k"], 400),
                (Self.path, key, body, ["X-Request-Timeout-Ms": "0"], 400),
            ]
            for (path, key, body, headers, status) in cases {
                let answer = await gateway.data(.post, path, key: key, body: body, headers: headers)
                #expect(answer.status == status, "\(path) \(body) \(headers)")
                _ = try answer.problem()
            }
            #expect(gateway.topics.changes.isEmpty)
            let get = await gateway.data(.get, Self.path, key: key)
            #expect(get.status == 405)
            #expect(get.header("Allow") == "POST")
        }
    }

    @Test("A caller's deadline goes along")
    func deadline() async throws {
        try await TestGateway.run { gateway, key in
            let before = ContinuousClock.now
            _ = await gateway.data(
                .post,
                Self.path,
                key: key,
                body: #"{"tokens":["a"]}"#,
                headers: ["X-Request-Timeout-Ms": "500"]
            )
            _ = await gateway.data(.post, Self.path, key: key, body: #"{"tokens":["a"]}"#)
            let after = ContinuousClock.now
            let deadlines = gateway.topics.changes.map(\.deadline)
            #expect(deadlines[0] >= before + .milliseconds(500) && deadlines[0] <= after + .milliseconds(500))
            #expect(deadlines[1] >= before + .seconds(20))
        }
    }

    @Test("A list of tokens has as much room as a send, anything else does not")
    func bodyLimit() async throws {
        try await TestGateway.run { gateway, _ in
            func limit(_ path: String) -> Int {
                gateway.dataListener.bodyLimit(
                    of: HTTPRequestHead(
                        HTTPRequest(method: .post, scheme: "http", authority: "gateway.test", path: path)
                    )
                )
            }
            for path in [
                Self.path, Self.path + "?x=/y", Self.path + "/remove", "/iid/v1:batchAdd", "/iid/v1:batchRemove",
            ] {
                #expect(limit(path) == 1_048_576, "\(path)")
            }
            for path in [
                "/v1/tenants/demo/audit?x=/subscriptions", "/v1/tenants/demo/messages/explains", "/iid/info/x",
                "/v1/projects/p/registrations/t/topicSubscriptions", "/subscriptions",
            ] {
                #expect(limit(path) == 65_536, "\(path)")
            }
        }
    }

    @Test("A device's topics are listed page by page, in the order of their names")
    func list() async throws {
        try await TestGateway.run { gateway, key in
            let info = RegistrationInfo(subscriptions: [
                TopicSubscription(topic: "c"), TopicSubscription(topic: "a", since: "2025-03-14"),
                TopicSubscription(topic: "b"),
            ])
            let result = RegistrationResult(.found(info), upstreamCode: "200")
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

    @Test("Without the scope no body and no query is read, on any surface, and each attempt is recorded")
    func missingScope() async throws {
        try await TestGateway.run { gateway, _ in
            let sender = try await gateway.makeKey(scopes: [.sendMessages])
            let v1 = "/v1/projects/demo/registrations/t/topicSubscriptions"
            let requests: [(HTTPRequest.Method, String, String, Int)] = [
                (.post, Self.path, "no json", 403), (.post, "\(Self.path)/remove", #"{"tokens":["a"]}"#, 403),
                (.get, "/v1/tenants/demo/subscriptions?no=token", "", 403), (.post, "/iid/v1:batchAdd", "no json", 401),
                (.delete, "/iid/v1/t/rel/topics/news", "", 401), (.get, "/iid/info/t", "", 401),
                (.post, v1, "no json", 403), (.delete, "\(v1)/news", "", 403), (.get, v1, "", 403),
            ]
            for (method, path, body, status) in requests {
                let answer = await gateway.data(method, path, key: sender, body: body)
                #expect(answer.status == status, "\(method) \(path)")
            }
            #expect(gateway.topics.changes.isEmpty && gateway.topics.lookUps.isEmpty)
            try await gateway.settleAudit()
            let records = gateway.auditStore.current.records.map(\.record).filter { $0.action.hasPrefix("topic.") }
            let add = "topic.subscribe"
            let remove = "topic.unsubscribe"
            let list = "topic.list"
            #expect(records.map(\.action) == [add, remove, list, add, remove, list, add, remove, list])
            #expect(records.allSatisfy { $0.outcome == .rejected && $0.code == "forbidden" && $0.targets.isEmpty })
            for change in ["subscribe", "unsubscribe"] {
                let labels = [("tenant", "demo"), ("change", change), ("outcome", "forbidden")]
                let counter = try gateway.metrics.expectCounter("fcmgw_subscription_changes_total", labels)
                #expect(counter.totalValue == 3)
            }
        }
    }

    @Test("Bad look-ups are problems")
    func badList() async throws {
        try await TestGateway.run { gateway, key in
            let sender = try await gateway.makeKey(scopes: [.sendMessages])
            let cases: [(String, String?, Int, String)] = [
                ("/v1/tenants/demo/subscriptions", key, 422, "invalid_field"),
                ("/v1/tenants/demo/subscriptions?token=", key, 422, "invalid_field"),
                ("/v1/tenants/demo/subscriptions?token=..", key, 422, "invalid_token"),
                ("/v1/tenants/demo/subscriptions?token=a&token=b", key, 422, "invalid_field"),
                ("/v1/tenants/demo/subscriptions?token=a&x=1", key, 422, "unknown_field"),
                ("/v1/tenants/demo/subscriptions?token=a&limit=501", key, 422, "invalid_field"),
                ("/v1/tenants/demo/subscriptions?token=a&cursor=!", key, 422, "invalid_field"),
                ("/v1/tenants/demo/subscriptions?token=a", nil, 401, "unauthenticated"),
                ("/v1/tenants/demo/subscriptions?token=a", sender, 403, "forbidden"),
                ("/v1/tenants/other/subscriptions?token=a", key, 404, "not_found"),
            ]
            for (path, key, status, code) in cases {
                let answer = await gateway.data(.get, path, key: key)
                #expect(answer.status == status, "\(path)")
                #expect(try answer.code() == code, "\(path)")
            }
            #expect(gateway.topics.lookUps.isEmpty)
            gateway.topics.answer(
                RegistrationResult(.rejected(Rejection(code: .unregistered)), upstreamCode: "404")
            )
            let dead = await gateway.data(.get, "/v1/tenants/demo/subscriptions?token=a", key: key)
            #expect(dead.status == 410)
            #expect(try dead.code() == "unregistered")
        }
    }

    @Test("Who did what is in the audit, found by token and by topic, and no token is logged")
    func audit() async throws {
        try await TestGateway.run { gateway, key in
            _ = await gateway.data(.post, Self.path, key: key, body: #"{"tokens":["secret-device"]}"#)
            try await gateway.settleAudit()
            for target in ["secret-device", "news"] {
                let page = await gateway.data(.get, "/v1/tenants/demo/audit?target=\(target)", key: key)
                let record = try #require(page.value["records"]?[0])
                #expect(record["action"] == "topic.subscribe")
                #expect(record["target_kind"] == "subscription")
                #expect(record["outcome"] == "accepted")
                #expect(record["targets"]?.elements.count == 2)
                #expect(!page.body.contains("secret-device"))
            }
            #expect(!gateway.logText.contains("secret-device"))
        }
    }
}
