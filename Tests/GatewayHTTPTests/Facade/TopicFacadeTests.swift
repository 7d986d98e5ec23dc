import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import MetricsTestKit
import Testing

@testable import GatewayHTTP

@Suite("TopicFacade", .timeLimit(.minutes(10)))
struct TopicFacadeTests {
    private static let json = "application/json; charset=UTF-8"
    private static let collection = "/v1/projects/demo-1a2b/registrations/a%3Ab/topicSubscriptions"

    private func batch(
        _ gateway: TestGateway,
        _ path: String = "/iid/v1:batchAdd",
        key: String?,
        body: String = #"{"to":"/topics/news","registration_tokens":["t1","t2","t1"]}"#,
        headers: [String: String] = ["access_token_auth": "true"]
    ) async -> Answer {
        await gateway.data(.post, path, key: key, body: body, headers: headers)
    }

    // MARK: Instance ID

    @Test(
        "A batch as the SDKs send it is answered as they read it",
        arguments: [("/iid/v1:batchAdd", SubscriptionChange.subscribe), ("/iid/v1:batchRemove", .unsubscribe)]
    )
    func batch(path: String, change: SubscriptionChange) async throws {
        try await TestGateway.run { gateway, key in
            gateway.topics.answer(SubscriptionResult([.done, .rejected(.unregistered)], upstreamCode: "x"))
            let answer = await self.batch(gateway, path, key: key)
            #expect(answer.status == 200)
            #expect(answer.header("Content-Type") == Self.json)
            #expect(answer.body == #"{"results":[{},{"error":"NOT_FOUND"},{}]}"#)
            #expect(answer.header("X-Request-ID")?.isUUIDv7 == true)
            #expect(answer.header("RateLimit") != nil)
            let call = try #require(gateway.topics.changes.first)
            #expect(call.change == change)
            #expect(call.topic.text == "news")
            #expect(call.tokens == ["t1", "t2"])
        }
    }

    @Test("A server key's place can hold the API key as well")
    func serverKey() async throws {
        try await TestGateway.run { gateway, key in
            let answer = await self.batch(gateway, key: nil, headers: ["Authorization": "key=\(key)"])
            #expect(answer.body == #"{"results":[{},{},{}]}"#)
        }
    }

    @Test("A body's media type does not matter, nor do members that the API does not know")
    func lenient() async throws {
        try await TestGateway.run { gateway, key in
            let body = #"{"to":"/topics/news","registration_tokens":["t"],"x":1}"#
            let answer = await self.batch(gateway, key: key, body: body, headers: ["Content-Type": "text/plain"])
            #expect(answer.body == #"{"results":[{}]}"#)
        }
    }

    @Test("Bad batches are refused with a reason")
    func badBatches() async throws {
        try await TestGateway.run { gateway, key in
            let cases = [
                (#"{"registration_tokens":["t"]}"#, "to must be /topics/ and a topic's name"),
                (#"{"to":"/topics/a b","registration_tokens":["t"]}"#, "to must be /topics/ and a topic's name"),
                (
                    #"{"to":"/topics/a","registration_tokens":[]}"#,
                    "registration_tokens must be an array of 1 to 1000 strings"
                ),
            ]
            for (body, reason) in cases {
                let answer = await self.batch(gateway, key: key, body: body)
                #expect(answer.status == 400)
                #expect(answer.body == #"{"error":"INVALID_ARGUMENT","reason":"\#(reason)"}"#)
            }
            let odd = await self.batch(gateway, key: key, body: "no json")
            #expect(odd.status == 400)
            #expect(odd.value["error"] == "INVALID_ARGUMENT")
            #expect(gateway.topics.changes.isEmpty)
        }
    }

    @Test("Keys that are not good for it all look alike")
    func keys() async throws {
        try await TestGateway.run { gateway, _ in
            let sender = try await gateway.makeKey(scopes: [.sendMessages])
            let sports = try await gateway.makeKey(scopes: [.manageTopics], topicPrefixes: ["sport"])
            let bodies = [#"{"to":"/topics/news","registration_tokens":["t"]}"#, "no json"]
            for (key, body) in [(nil, bodies[0]), ("fgw_x", bodies[0]), (sender, bodies[0]), (sender, bodies[1])] {
                let answer = await self.batch(gateway, key: key, body: body)
                #expect(answer.status == 401)
                #expect(answer.value["error"] == "UNAUTHENTICATED")
                #expect(answer.header("WWW-Authenticate") == "Bearer")
            }
            #expect(await self.batch(gateway, key: sports).status == 401)
            #expect(await self.batch(gateway, key: sports, body: "no json").status == 400)
            #expect(gateway.topics.changes.isEmpty)
        }
    }

    @Test(
        "What stopped the whole batch has its own status; a key of ours that FCM refuses is not the caller's",
        arguments: [
            (OutcomeCode.upstreamUnavailable, 503, #"{"error":"UNAVAILABLE"}"#, String?.some("5")),
            (.upstreamCredentials, 500, #"{"error":"INTERNAL"}"#, nil),
            (.upstreamProtocol, 500, #"{"error":"INTERNAL"}"#, nil),
            (.upstreamInternal, 500, #"{"error":"INTERNAL"}"#, nil),
            (.tenantRateExceeded, 200, #"{"results":[{"error":"RESOURCE_EXHAUSTED"}]}"#, nil),
        ]
    )
    func whole(code: OutcomeCode, status: Int, body: String, retryAfter: String?) async throws {
        try await TestGateway.run { gateway, key in
            gateway.topics.answer(SubscriptionResult([.rejected(code)], upstreamCode: "x"))
            let answer = await self.batch(
                gateway,
                key: key,
                body: #"{"to":"/topics/news","registration_tokens":["t"]}"#
            )
            #expect(answer.status == status)
            #expect(answer.body == body)
            #expect(answer.header("Retry-After") == retryAfter)
        }
    }

    @Test("The gateway's own limit is each device's error")
    func limits() async throws {
        let policies = LimitPolicies(tenant: [try .sample(1, per: 60, burst: 1)])
        try await TestGateway.run(limits: policies) { gateway, key in
            let first = await self.batch(gateway, key: key)
            #expect(first.body == #"{"results":[{},{"error":"RESOURCE_EXHAUSTED"},{}]}"#)
            let second = await self.batch(gateway, key: key)
            #expect(second.status == 200)
            let error = #"{"error":"RESOURCE_EXHAUSTED"}"#
            #expect(second.body == #"{"results":[\#(error),\#(error),\#(error)]}"#)
        }
    }

    @Test("What is known of a device, with its topics where they are asked for")
    func info() async throws {
        try await TestGateway.run { gateway, key in
            let info = RegistrationInfo(
                application: "com.example",
                applicationVersion: "36",
                authorizedEntity: "123456789012",
                platform: "ANDROID",
                subscriptions: [TopicSubscription(topic: "news", since: "2025-03-14")]
            )
            let result = RegistrationResult(.found(info), upstreamCode: "200")
            gateway.topics.answer(result, result, result)
            let head =
                #"{"application":"com.example","applicationVersion":"36","authorizedEntity":"123456789012","platform":"ANDROID""#
            let topics = #","rel":{"topics":{"news":{"addDate":"2025-03-14"}}}"#
            let headers = ["Authorization": "key=\(key)"]
            let plain = await gateway.data(.get, "/iid/info/a%3Ab", key: nil, headers: headers)
            #expect(plain.body == head + "}")
            #expect(plain.header("Content-Type") == Self.json)
            let full = await gateway.data(.get, "/iid/info/a:b?details=true", key: nil, headers: headers)
            #expect(full.body == head + topics + "}")
            let off = await gateway.data(.get, "/iid/info/a:b?details=false", key: nil, headers: headers)
            #expect(off.body == head + "}")
            #expect(gateway.topics.lookUps.map(\.token) == ["a:b", "a:b", "a:b"])
            #expect(gateway.topics.lookUps.allSatisfy { $0.part == .everything })
        }
    }

    @Test(
        "A device that is not known",
        arguments: [
            (OutcomeCode.unregistered, 404, "NOT_FOUND"), (.invalidToken, 400, "INVALID_ARGUMENT"),
            (.upstreamUnavailable, 503, "UNAVAILABLE"), (.upstreamCredentials, 500, "INTERNAL"),
        ]
    )
    func noInfo(code: OutcomeCode, status: Int, name: String) async throws {
        try await TestGateway.run { gateway, key in
            gateway.topics.answer(RegistrationResult(.rejected(Rejection(code: code)), upstreamCode: "x"))
            let answer = await gateway.data(.get, "/iid/info/t", key: key)
            #expect(answer.status == status)
            #expect(answer.body == #"{"error":"\#(name)"}"#)
        }
    }

    @Test("A single device by its own path")
    func relation() async throws {
        try await TestGateway.run { gateway, key in
            let path = "/iid/v1/a%3Ab/rel/topics/100%25"
            let headers = ["Authorization": "key=\(key)"]
            let add = await gateway.data(.post, path, key: nil, headers: headers)
            #expect(add.status == 200)
            #expect(add.body == "{}")
            #expect(await gateway.data(.delete, path, key: nil, headers: headers).body == "{}")
            #expect(gateway.topics.changes.map(\.change) == [.subscribe, .unsubscribe])
            #expect(gateway.topics.changes.map(\.tokens) == [["a:b"], ["a:b"]])
            #expect(gateway.topics.changes.map(\.topic.text) == ["100%", "100%"])
            gateway.topics.answer(SubscriptionResult([.rejected(.unregistered)], upstreamCode: "x"))
            let dead = await gateway.data(.post, path, key: nil, headers: headers)
            #expect(dead.status == 404)
            #expect(dead.body == #"{"error":"NOT_FOUND"}"#)
            #expect(await gateway.data(.post, "/iid/v1/t/rel/topics/a%20b", key: key).status == 400)
            #expect(await gateway.data(.post, "/iid/v1/../rel/topics/a", key: key).status == 400)
        }
    }

    // MARK: v1

    @Test("v1 subscribes, lists and unsubscribes")
    func v1() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.legacy)
            let add = await gateway.data(.post, Self.collection + "?topic_name=100%25", key: key, body: "{}")
            #expect(add.status == 200)
            #expect(add.header("Content-Type") == Self.json)
            #expect(
                add.body
                    == #"{"name":"projects/demo-1a2b/registrations/a:b/topicSubscriptions/100%","topicName":"100%"}"#
            )
            let camel = await gateway.data(.post, Self.collection + "?topicName=news&alt=json", key: key)
            #expect(camel.status == 200)
            let remove = await gateway.data(.delete, Self.collection + "/100%25?allow_missing=true", key: key)
            #expect(remove.status == 200)
            #expect(remove.body == "{}")
            #expect(gateway.topics.changes.map(\.change) == [.subscribe, .subscribe, .unsubscribe])
            #expect(gateway.topics.changes.map(\.topic.text) == ["100%", "news", "100%"])
            #expect(gateway.topics.changes.allSatisfy { $0.tokens == ["a:b"] })
        }
    }

    @Test("v1's list has pages")
    func v1List() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let info = RegistrationInfo(subscriptions: [
                TopicSubscription(topic: "b", since: "2026-01-15T01:30:15.01Z"), TopicSubscription(topic: "a"),
            ])
            let result = RegistrationResult(.found(info), upstreamCode: "200")
            gateway.topics.answer(result, result, result)
            func item(_ topic: String) -> String {
                #"{"name":"projects/demo-1a2b/registrations/a:b/topicSubscriptions/\#(topic)","topicName":"\#(topic)""#
            }
            let last = item("b") + #","createTime":"2026-01-15T01:30:15.01Z"}"#
            let all = await gateway.data(.get, Self.collection, key: key)
            #expect(all.body == #"{"topicSubscriptions":["# + item("a") + "}," + last + "]}")
            let first = await gateway.data(.get, Self.collection + "?page_size=1", key: key)
            let next = try #require(first.value["nextPageToken"]?.text)
            #expect(first.value["topicSubscriptions"]?.elements.count == 1)
            let second = await gateway.data(.get, Self.collection + "?pageSize=1&pageToken=\(next)", key: key)
            #expect(second.body == #"{"topicSubscriptions":["# + last + "]}")
            #expect(await gateway.data(.get, Self.collection + "?page_size=x", key: key).status == 400)
            #expect(await gateway.data(.get, Self.collection + "?page_size=-1", key: key).status == 400)
            #expect(await gateway.data(.get, Self.collection + "?page_token=!", key: key).status == 400)
            #expect(gateway.topics.lookUps.allSatisfy { $0.part == .subscriptions && $0.token == "a:b" })
        }
    }

    @Test(
        "v1's errors are Google's",
        arguments: [
            (OutcomeCode.unregistered, 404, "NOT_FOUND"), (.invalidToken, 400, "INVALID_ARGUMENT"),
            (.senderMismatch, 403, "PERMISSION_DENIED"), (.tooManyTopics, 400, "INVALID_ARGUMENT"),
            (.tenantRateExceeded, 429, "RESOURCE_EXHAUSTED"), (.upstreamUnavailable, 503, "UNAVAILABLE"),
            (.upstreamCredentials, 500, "INTERNAL"), (.upstreamProtocol, 500, "INTERNAL"),
        ]
    )
    func v1Errors(code: OutcomeCode, status: Int, name: String) async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            gateway.topics.answer(SubscriptionResult([.rejected(code)], upstreamCode: "x"))
            let answer = await gateway.data(.post, Self.collection + "?topic_name=news", key: key, body: "{}")
            #expect(answer.status == status)
            #expect(answer.value["error"]?["code"]?.int == status)
            #expect(answer.value["error"]?["status"]?.text == name)
        }
    }

    @Test("v1 refuses what it would refuse")
    func v1Refusals() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let sender = try await gateway.makeKey(scopes: [.sendMessages])
            let foreign = "/v1/projects/another/registrations/t/topicSubscriptions?topic_name=news"
            let cases: [(HTTPRequest.Method, String, String?, String, Int)] = [
                (.post, Self.collection + "?topic_name=news", nil, "{}", 401),
                (.post, Self.collection + "?topic_name=news", sender, "{}", 403),
                (.post, foreign, key, "{}", 403), (.post, Self.collection, key, "{}", 400),
                (.post, Self.collection + "?topic_name=a%20b", key, "{}", 400),
                (.post, Self.collection + "?topic_name=..", key, "{}", 400),
                (.post, Self.collection + "?topic_name=news", key, "[]", 400),
                (.post, Self.collection + "?topic_name=news", key, "x", 400),
                (.delete, Self.collection + "/a%2Fb", key, "", 400), (.get, Self.collection, sender, "", 403),
                (.post, "/v1/projects/demo-1a2b/registrations/../topicSubscriptions?topic_name=x", key, "{}", 400),
            ]
            for (method, path, key, body, status) in cases {
                let answer = await gateway.data(method, path, key: key, body: body)
                #expect(answer.status == status, "\(method) \(path)")
                #expect(answer.value["error"]?["code"]?.int == status, "\(method) \(path)")
            }
            #expect(gateway.topics.changes.isEmpty)
        }
    }

    // MARK: Both

    @Test("Another method is told which are served, without a look at the key")
    func methods() async throws {
        try await TestGateway.run { gateway, _ in
            let cases: [(HTTPRequest.Method, String, String)] = [
                (.get, "/iid/v1:batchAdd", "POST"), (.post, "/iid/info/t", "GET"),
                (.get, "/iid/v1/t/rel/topics/x", "DELETE, POST"), (.delete, Self.collection, "GET, POST"),
                (.post, Self.collection + "/x", "DELETE"),
            ]
            for (method, path, allowed) in cases {
                let answer = await gateway.data(method, path, key: nil)
                #expect(answer.status == 405, "\(path)")
                #expect(answer.header("Allow") == allowed, "\(path)")
            }
        }
    }

    @Test("Compressed bodies and idempotency keys are refused")
    func headers() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let gzip = await self.batch(gateway, key: key, headers: ["Content-Encoding": "gzip"])
            #expect(gzip.status == 415)
            #expect(gzip.header("Accept-Encoding") == "identity")
            #expect(await self.batch(gateway, key: key, headers: ["Idempotency-Key": "k"]).status == 400)
            let v1 = await gateway.data(
                .post,
                Self.collection + "?topic_name=x",
                key: key,
                body: "{}",
                headers: ["Idempotency-Key": "k"]
            )
            #expect(v1.status == 400)
        }
    }

    @Test(
        "Paths that are none of these are left to others",
        arguments: [
            "/iid/v1:batchAdds", "/iid/v1:batchAdd/", "/iid/info", "/iid/info/a/b", "/iid/v1/t/rel/topics",
            "/v1/projects/p/registrations/t", "/v1/projects/p/registrations/t/topicSubscriptions/a/b", "/iid//info/t",
            "/v1/tenants/demo/subscriptions", "/iid/",
        ]
    )
    func otherPaths(path: String) async throws {
        try await TestGateway.run { gateway, _ in
            let dialect = gateway.dataListener.routes.row(at: Array(path.utf8))?.0.route.dialect
            #expect(dialect == nil || dialect == .rest)
        }
    }

    @Test("Requests are measured, logged and recorded like any other, by templates")
    func observed() async throws {
        try await TestGateway.run { gateway, key in
            _ = await self.batch(gateway, key: key)
            _ = await gateway.data(.get, "/iid/info/secret-device", key: key)
            let timer = try gateway.metrics.expectTimer(
                "fcmgw_http_request_duration_seconds",
                [("route", "/iid/info/{token}"), ("method", "GET"), ("status", "200")]
            )
            #expect(timer.values.count == 1)
            #expect(gateway.logText.contains("/iid/v1:batchAdd"))
            #expect(!gateway.logText.contains("secret-device"))
            try await gateway.settleAudit()
            let records = gateway.auditStore.current.records.map(\.record).filter { $0.action.hasPrefix("topic.") }
            #expect(records.map(\.action) == ["topic.subscribe", "topic.list"])
            #expect(records.map(\.method) == ["POST", "GET"])
        }
    }
}
