import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

@Suite(.timeLimit(.minutes(10)))
struct InstanceIDSubscriptionsTests {
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
        "A batch request of the SDKs is answered in the Instance ID format",
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

    @Test("A batch is accepted with any media type and with unknown members")
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

    @Test("Device information includes topics only with details=true")
    func info() async throws {
        try await TestGateway.run { gateway, key in
            let info = RegistrationInfo(
                application: "com.example",
                applicationVersion: "36",
                authorizedEntity: "123456789012",
                platform: "ANDROID",
                subscriptions: [TopicSubscription(topic: "news", since: "2025-03-14")]
            )
            let result = RegistrationResult(.success(info), upstreamCode: "200")
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

    @Test("A single device is subscribed and unsubscribed by its own path")
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

    @Test("v1 subscribes and unsubscribes a device")
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
            #expect(await gateway.data(.post, Self.collection + "?topicName=news&alt=json", key: key).status == 200)
            let remove = await gateway.data(.delete, Self.collection + "/100%25?allow_missing=true", key: key)
            #expect(remove.status == 200)
            #expect(remove.body == "{}")
            #expect(gateway.topics.changes.map(\.change) == [.subscribe, .subscribe, .unsubscribe])
            #expect(gateway.topics.changes.map(\.topic.text) == ["100%", "news", "100%"])
            #expect(gateway.topics.changes.allSatisfy { $0.tokens == ["a:b"] })
        }
    }

    @Test("v1 lists subscriptions in pages")
    func v1List() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let info = RegistrationInfo(subscriptions: [
                TopicSubscription(topic: "b", since: "2026-01-15T01:30:15.01Z"), TopicSubscription(topic: "a"),
            ])
            let result = RegistrationResult(.success(info), upstreamCode: "200")
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

    @Test("v1 refuses a topic outside the key's prefixes and invalid topics, bodies and tokens")
    func v1Refusals() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let sports = try await gateway.makeKey(scopes: [.manageTopics], topicPrefixes: ["sport"])
            let cases: [(HTTPRequest.Method, String, String?, String, Int)] = [
                (.post, Self.collection + "?topic_name=news", sports, "{}", 403),
                (.post, Self.collection, key, "{}", 400),
                (.post, Self.collection + "?topic_name=a%20b", key, "{}", 400),
                (.post, Self.collection + "?topic_name=..", key, "{}", 400),
                (.post, Self.collection + "?topic_name=news", key, "[]", 400),
                (.post, Self.collection + "?topic_name=news", key, "x", 400),
                (.delete, Self.collection + "/a%2Fb", key, "", 400),
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

    // MARK: All

    /// A code that refuses a topic request, and each surface's answer; `nil` if the test does not ask the surface.
    struct Refused: Sendable, CustomTestStringConvertible {
        var code: OutcomeCode
        var rest: Int?
        /// Status and body.
        var batch: String?
        /// Status and error.
        var info: String?
        var v1: String?

        var testDescription: String { self.code.rawValue }

        init(_ code: OutcomeCode, rest: Int? = nil, batch: String? = nil, info: String? = nil, v1: String? = nil) {
            (self.code, self.rest, self.batch, self.info, self.v1) = (code, rest, batch, info, v1)
        }
    }

    private static let internalError = #"500 {"error":"INTERNAL"}"#
    private static let exhausted = #"200 {"results":[{"error":"RESOURCE_EXHAUSTED"},{"error":"RESOURCE_EXHAUSTED"}]}"#

    private static let refusals: [Refused] = [
        Refused(
            .upstreamUnavailable,
            rest: 503,
            batch: #"503 {"error":"UNAVAILABLE"}"#,
            info: "503 UNAVAILABLE",
            v1: "503 UNAVAILABLE"
        ),
        // FCM refused the gateway's key, not the caller's.
        Refused(.upstreamCredentials, rest: 502, batch: Self.internalError, info: "500 INTERNAL", v1: "500 INTERNAL"),
        Refused(.upstreamProtocol, rest: 502, batch: Self.internalError, v1: "500 INTERNAL"),
        Refused(.upstreamInternal, rest: 502, batch: Self.internalError),
        Refused(.tenantRateExceeded, rest: 429, batch: Self.exhausted, v1: "429 RESOURCE_EXHAUSTED"),
        Refused(.unregistered, info: "404 NOT_FOUND", v1: "404 NOT_FOUND"),
        Refused(.invalidToken, info: "400 INVALID_ARGUMENT", v1: "400 INVALID_ARGUMENT"),
        Refused(.senderMismatch, v1: "403 PERMISSION_DENIED"),
        Refused(.tooManyTopics, v1: "400 INVALID_ARGUMENT"),
    ]

    @Test("If all recipients fail for one cause, each surface answers in its own format", arguments: Self.refusals)
    func refused(row: Refused) async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let both = SubscriptionResult([.rejected(row.code), .rejected(row.code)], upstreamCode: "x")
            if let status = row.rest {
                gateway.topics.answer(both)
                let path = "/v1/tenants/demo/topics/news/subscriptions"
                let answer = await gateway.data(.post, path, key: key, body: #"{"tokens":["a","b"]}"#)
                #expect(answer.status == status)
                let problem = try answer.problem()
                #expect(problem["code"]?.text == row.code.rawValue)
                #expect(problem["id"] == nil)
                #expect(problem["detail"]?.text?.contains("delivered") == false)
            }
            if let batch = row.batch {
                gateway.topics.answer(both)
                let body = #"{"to":"/topics/news","registration_tokens":["a","b"]}"#
                let answer = await self.batch(gateway, key: key, body: body)
                #expect("\(answer.status) \(answer.body)" == batch)
                #expect(answer.header("Retry-After") == (answer.status == 503 ? "5" : nil))
            }
            if let info = row.info {
                gateway.topics.answer(RegistrationResult(.failure(Refusal(row.code)), upstreamCode: "x"))
                let answer = await gateway.data(.get, "/iid/info/t", key: key)
                #expect(answer.value.keys == ["error"])
                #expect("\(answer.status) \(answer.value["error"]?.text ?? "")" == info)
            }
            if let v1 = row.v1 {
                gateway.topics.answer(SubscriptionResult([.rejected(row.code)], upstreamCode: "x"))
                let answer = await gateway.data(.post, Self.collection + "?topic_name=news", key: key, body: "{}")
                #expect(answer.value["error"]?["code"]?.int == answer.status)
                #expect("\(answer.status) \(answer.value["error"]?["status"]?.text ?? "")" == v1)
            }
        }
    }
}
