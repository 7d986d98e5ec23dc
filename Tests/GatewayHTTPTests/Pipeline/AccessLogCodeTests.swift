import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

@Suite("Codes in the access log", .timeLimit(.minutes(10)))
struct AccessLogCodeTests {
    private static let codes: [OutcomeCode] = [
        .unregistered, .invalidToken, .senderMismatch, .tooManyTopics, .tenantRateExceeded, .upstreamUnavailable,
        .upstreamCredentials, .upstreamProtocol, .upstreamInternal,
    ]

    @Test("A topic refusal is logged by its own code on every surface", arguments: Self.codes)
    func topics(code: OutcomeCode) async throws {
        let project = "/v1/projects/demo/registrations/t/topicSubscriptions"
        let tenant = "/v1/tenants/demo"
        let requests: [(HTTPRequest.Method, String, String)] = [
            (.post, "\(project)?topic_name=news", ""), (.delete, "\(project)/news", ""), (.get, project, ""),
            (.post, "/iid/v1/t/rel/topics/news", ""), (.get, "/iid/info/t", ""),
            (.post, "/iid/v1:batchAdd", #"{"to":"/topics/news","registration_tokens":["t"]}"#),
            (.post, "\(tenant)/topics/news/subscriptions", #"{"tokens":["t"]}"#),
            (.get, "\(tenant)/subscriptions?token=t", ""),
        ]
        try await TestGateway.run { gateway, key in
            for (method, path, body) in requests {
                if method == .get {
                    gateway.topics.answer(RegistrationResult(.failure(Refusal(code)), upstreamCode: "x"))
                } else {
                    gateway.topics.answer(SubscriptionResult([.rejected(code)], upstreamCode: "x"))
                }
                let answer = await gateway.data(method, path, key: key, body: body)
                #expect(gateway.lastLoggedCode == code.rawValue, "\(method) \(path): \(answer.status)")
            }
        }
    }

    @Test("A list is logged by the code of its first refused entry, or without a code")
    func lists() async throws {
        try await TestGateway.run { gateway, key in
            for (path, body) in [
                ("/v1/tenants/demo/topics/news/subscriptions", #"{"tokens":["a","b","c"]}"#),
                ("/iid/v1:batchAdd", #"{"to":"/topics/news","registration_tokens":["a","b","c"]}"#),
            ] {
                gateway.topics.answer(
                    SubscriptionResult([.done, .rejected(.unregistered), .rejected(.invalidToken)], upstreamCode: "x")
                )
                #expect(await gateway.data(.post, path, key: key, body: body).status == 200)
                #expect(gateway.lastLoggedCode == "unregistered", "\(path)")
                #expect(await gateway.data(.post, path, key: key, body: body).status == 200)
                #expect(gateway.lastLoggedCode == nil, "\(path)")
            }
            // The first entry failed without being sent.
            let body = #"{"registration_ids":["","b"]}"#
            #expect(await gateway.data(.post, "/fcm/send", key: key, body: body).status == 200)
            #expect(gateway.lastLoggedCode == "invalid_target")
        }
    }

    @Test(
        "A refusal about device groups is logged by its own code",
        arguments: [
            (GroupFailure.Kind.groupExists, "group_conflict"), (.groupNotFound, "not_found"),
            (.noValidTokens, "no_valid_tokens"), (.upstreamCredentials, "upstream_credentials"),
            (.upstreamInternal, "upstream_internal"), (.upstreamUnavailable, "upstream_unavailable"),
            (.upstreamProtocol, "upstream_protocol"),
        ]
    )
    func groups(kind: GroupFailure.Kind, code: String) async throws {
        let upstream = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key in
            upstream.answer(.failing(kind))
            _ = await gateway.data(.get, "/fcm/notification?notification_key_name=g", key: key)
            #expect(gateway.lastLoggedCode == code)
        }
    }

    @Test("A facade's own refusal is logged by the code of REST")
    func ownRefusals() async throws {
        try await TestGateway.run { gateway, key in
            let reader = try await gateway.makeKey(scopes: [.readAudit])
            let project = "/v1/projects/demo"
            let topics = "\(project)/registrations/t/topicSubscriptions"
            let cases: [(HTTPRequest.Method, String, key: String?, body: String, headers: [String: String], String)] = [
                (.post, "/fcm/send", key, "{", [:], "malformed_json"),
                (.post, "/fcm/send", key, "{}", [:], "invalid_target"),
                (.post, "/fcm/send", key, "{}", ["Content-Encoding": "gzip"], "unsupported_media_type"),
                (.post, "/fcm/send", key, "{}", ["Idempotency-Key": "ä"], "bad_request"),
                (.post, "/fcm/send", reader, #"{"to":"t"}"#, [:], "forbidden"),
                (.post, "/fcm/send", nil, "{}", [:], "unauthenticated"),
                (.post, "/fcm/notification", key, "{", [:], "malformed_json"),
                (.post, "/fcm/notification", key, "{}", [:], "invalid_field"),
                (.post, "/fcm/notification", key, "{}", ["project_id": "1"], "forbidden"),
                (.post, "/fcm/notification", reader, "{}", [:], "forbidden"),
                (.get, "/fcm/notification", nil, "", [:], "unauthenticated"),
                (.put, "/fcm/notification", key, "", [:], "method_not_allowed"),
                (.post, "/iid/v1:batchAdd", key, "{", [:], "malformed_json"),
                (.post, "/iid/v1:batchAdd", reader, "{", [:], "forbidden"),
                (.post, "/iid/v1:batchAdd", nil, "{", [:], "unauthenticated"),
                (.get, "/iid/v1:batchAdd", key, "", [:], "method_not_allowed"),
                (.post, topics, key, "{", [:], "malformed_json"),
                (.post, topics, key, "{}", [:], "invalid_target"),
                (.get, "\(topics)?page_size=x", key, "", [:], "invalid_field"),
                (.get, topics, reader, "", [:], "forbidden"),
                (.put, topics, key, "", [:], "method_not_allowed"),
                (.post, "\(project)/messages:send", key, #"{"message":{"x":1}}"#, [:], "unknown_field"),
                (.post, "\(project)/messages:send", key, "{}", ["Idempotency-Key": "ä"], "bad_request"),
                (.post, "/v1/projects/foreign/messages:send", key, "{}", [:], "forbidden"),
            ]
            for (method, path, key, body, headers, code) in cases {
                let answer = await gateway.data(method, path, key: key, body: body, headers: headers)
                #expect(gateway.lastLoggedCode == code, "\(method) \(path) \(body): \(answer.status)")
            }
        }
    }

    @Test(
        "A replay is logged by the code of the repeated answer, a key conflict by its own code",
        arguments: [
            ("/v1/tenants/demo/messages", #"{"token":"t"}"#), ("/fcm/send", #"{"to":"t"}"#),
            ("/v1/projects/demo/messages:send", #"{"message":{"token":"t"}}"#),
        ]
    )
    func replays(path: String, body: String) async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(.outcomes(.rejected(.unregistered)))
            for isReplayed in [false, true] {
                let headers = ["Idempotency-Key": "k"]
                let answer = await gateway.data(.post, path, key: key, body: body, headers: headers)
                #expect((answer.header("Idempotent-Replayed") == "true") == isReplayed)
                #expect(gateway.lastLoggedCode == "unregistered")
            }
            let third = body.replacing(#""t""#, with: #""third""#)
            _ = await gateway.data(.post, path, key: key, body: third, headers: ["Idempotency-Key": "k"])
            #expect(gateway.lastLoggedCode == "idempotency_conflict")
            let other = body.replacing(#""t""#, with: #""another""#)
            _ = await gateway.data(.post, path, key: key, body: other, headers: ["Idempotency-Key": "other"])
            #expect(gateway.lastLoggedCode == nil)
        }
    }
}
