import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct ExplainControllerTests {
    private static let path = "/v1/tenants/demo/messages/explain"

    @Test("A legacy upstream: the request, what each field becomes, bytes and quotas; nothing is sent or spent")
    func legacy() async throws {
        let policy = try RatePolicy.sample(1, per: 60, burst: 1)
        try await TestGateway.run(limits: LimitPolicies(device: [policy])) { gateway, key in
            let body =
                #"{"token":"device","ttl":60,"notification":{"badge":3,"title_loc_args":["a"]},"data":{"k":"v"}}"#
            for _ in 0..<2 {
                let answer = await gateway.data(.post, Self.path, key: key, body: body)
                #expect(answer.status == 200)
                let json = answer.value
                #expect(json["upstream"] == "legacy")
                #expect(json["request_count"] == 1)
                #expect(
                    json["requests"] == [
                        [
                            "method": "POST", "url": "https://fcm.googleapis.com/fcm/send",
                            "headers": ["Authorization": "key=***", "Content-Type": "application/json"],
                            "body": [
                                "to": "device", "time_to_live": 60, "data": ["k": "v"],
                                "notification": ["badge": "3", "title_loc_args": #"["a"]"#],
                            ],
                        ]
                    ]
                )
                #expect(json["payload"] == ["bytes": 27, "limit": 4_096])
                #expect(
                    json["fields"] == [
                        ["pointer": "/token", "becomes": ["/to"]],
                        ["pointer": "/notification/badge", "becomes": ["/notification/badge"]],
                        ["pointer": "/notification/title_loc_args", "becomes": ["/notification/title_loc_args"]],
                        ["pointer": "/data", "becomes": ["/data"]], ["pointer": "/ttl", "becomes": ["/time_to_live"]],
                    ]
                )
                #expect(
                    json["limits"]?["targets"] == [
                        [["scope": "device", "rate": 1, "per_s": 60, "burst": 1, "remaining": 1, "reset_s": 0]]
                    ]
                )
                #expect(json["limits"]?["tenant"]?.elements.map { $0["remaining"] } == [9_000])
                #expect(json["refused"] == nil)
            }
            #expect(gateway.upstream.calls.isEmpty)
            #expect(await gateway.send(#"{"token":"device"}"#, key: key).status == 200)
            let after = try await gateway.data(.post, Self.path, key: key, body: #"{"token":"device"}"#).json
            #expect(after["limits"]?["targets"]?[0]?[0]?["remaining"] == 0)
            #expect(after["limits"]?["targets"]?[0]?[0]?["reset_s"] == 60)
            try await gateway.settleAudit()
            let sends = gateway.auditStore.current.records.map(\.record).filter { $0.action.hasPrefix("message.") }
            #expect(sends.count == 1)
        }
    }

    @Test("A v1 upstream: a request for each recipient, and warnings for what it does not carry")
    func v1() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let collapseKey = String(repeating: "k", count: 65)
            let tokens = (0..<12).map { "\"t\($0)\"" }.joined(separator: ",")
            let body = """
                {"tokens":[\(tokens)],"priority":"high","mutable_content":true,"collapse_key":"\(collapseKey)",
                 "data":{"k":"v"},"dry_run":true}
                """
            let json = try await gateway.data(.post, Self.path, key: key, body: body).json
            #expect(json["upstream"] == "v1")
            #expect(json["request_count"] == 12)
            let requests = json["requests"]?.elements ?? []
            #expect(requests.count == 10)
            #expect(requests.map { $0["body"]?["message"]?["token"]?.text } == (0..<10).map { "t\($0)" })
            #expect(requests[0]["url"] == "https://fcm.googleapis.com/v1/projects/demo-1a2b/messages:send")
            #expect(requests[0]["headers"]?["Authorization"] == "Bearer ***")
            #expect(
                json["fields"] == [
                    ["pointer": "/tokens", "becomes": ["/message/token"]],
                    ["pointer": "/data", "becomes": ["/message/data"]],
                    [
                        "pointer": "/priority",
                        "becomes": ["/message/android/priority", "/message/webpush/headers/Urgency"],
                    ],
                    ["pointer": "/collapse_key", "becomes": ["/message/android/collapse_key"]],
                    ["pointer": "/mutable_content", "becomes": []],
                    ["pointer": "/dry_run", "becomes": ["/validate_only"]],
                ]
            )
            #expect(
                json["warnings"]?.elements.map { $0["pointer"]?.text } == ["", "/mutable_content", "/collapse_key"]
            )
            // A dry run spends the tenant's quota alone.
            #expect(json["limits"]?["targets"] == [])
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test("What would be refused is told with its reason")
    func refused() async throws {
        try await TestGateway.run { gateway, _ in
            let key = try await gateway.makeKey(scopes: [.sendMessages], topicPrefixes: ["sport"])
            let text = String(repeating: "x", count: 2_048)
            let big =
                try await gateway.data(
                    .post,
                    Self.path,
                    key: key,
                    body: #"{"topic":"sport","data":{"k":"\#(text)"}}"#
                )
                .json
            #expect(big["payload"] == ["bytes": 2_049, "limit": 2_048])
            #expect(big["refused"]?["code"] == "message_too_big")
            #expect(big["requests"] == [])
            #expect(big["request_count"] == 0)
            let topic = try await gateway.data(.post, Self.path, key: key, body: #"{"topic":"news"}"#).json
            #expect(topic["refused"]?["code"] == "forbidden")
            gateway.upstream.object(
                with: UpstreamObjection(code: .invalidTarget, field: "fid", detail: "It has no form for this")
            )
            let objected = try await gateway.data(.post, Self.path, key: key, body: #"{"fid":"f"}"#).json
            #expect(
                objected["refused"] == [
                    "code": "invalid_target", "detail": "It has no form for this", "pointer": "/fid",
                ]
            )
        }
    }

    @Test("Bad requests are the problems that they would be for a send")
    func problems() async throws {
        try await TestGateway.run { gateway, key in
            let reader = try await gateway.makeKey(scopes: [.readAudit])
            let cases: [(String, String?, String, Int)] = [
                (Self.path, nil, #"{"token":"a"}"#, 401), (Self.path, reader, #"{"token":"a"}"#, 403),
                ("/v1/tenants/other/messages/explain", key, #"{"token":"a"}"#, 404),
                (Self.path, key, #"{"device_group":"g"}"#, 404), (Self.path, key, "no json", 400),
                (Self.path, key, #"{"token":"a","colour":"red"}"#, 422),
            ]
            for (path, key, body, status) in cases {
                let answer = await gateway.data(.post, path, key: key, body: body)
                #expect(answer.status == status, "\(body)")
                _ = try answer.problem()
            }
            #expect(await gateway.data(.get, Self.path, key: key).header("Allow") == "POST")
        }
    }

    @Test("No credential is shown, nor logged")
    func credentials() async throws {
        try await TestGateway.run { gateway, key in
            let put = await gateway.admin(
                .put,
                "/admin/v1/tenants/demo/credentials/legacy",
                body: #"{"server_key":"the-server-key","endpoint":"https://fcm.example.com"}"#
            )
            #expect(put.status < 300)
            let answer = await gateway.data(.post, Self.path, key: key, body: #"{"token":"secret-device"}"#)
            let json = answer.value
            #expect(json["requests"]?[0]?["url"] == "https://fcm.example.com/fcm/send")
            #expect(json["warnings"] == [])
            #expect(!answer.body.contains("the-server-key"))
            #expect(!gateway.logText.contains("the-server-key"))
            #expect(!gateway.logText.contains("secret-device"))
            #expect(!gateway.logText.contains(key))
        }
    }

    @Test("A legacy body is explained as the legacy facade would take it")
    func legacyBody() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let path = Self.path + "?form=legacy"
            let body = #"{"registration_ids":["a","","b"],"data":{"k":"v"},"time_to_live":60}"#
            let json = try await gateway.data(.post, path, key: key, body: body).json
            #expect(json["request_count"] == 2)
            #expect(
                json["requests"]?.elements.map { $0["body"]?["message"]?["token"]?.text } == ["a", "b"]
            )
            #expect(json["requests"]?[0]?["body"]?["message"]?["android"]?["ttl"] == "60s")
            #expect(gateway.upstream.calls.isEmpty)

            let cases: [(String, String, Int, String)] = [
                (path, #"{"to":""}"#, 422, "invalid_target"),
                (path, #"{"registration_ids":[""]}"#, 422, "invalid_target"),
                (path, #"{"to":"a","time_to_live":-1}"#, 422, "invalid_field"),
                (path, #"{"to":"a","data":{"from":"x"}}"#, 422, "invalid_data_key"),
                (path, #"{"to":"a","data":{"k":"\#(String(repeating: "x", count: 4_096))"}}"#, 422, "message_too_big"),
                (path, #"{"to":"a""#, 400, "malformed_json"),
                (Self.path, #"{"to":"a"}"#, 422, "unknown_field"),
                (Self.path + "?form=soap", #"{"token":"a"}"#, 422, "invalid_field"),
                (Self.path + "?shape=legacy", #"{"to":"a"}"#, 422, "unknown_field"),
            ]
            for (path, body, status, code) in cases {
                let answer = await gateway.data(.post, path, key: key, body: body)
                #expect(answer.status == status, "\(body)")
                let found = try answer.code()
                #expect(found == code, "\(body)")
            }
        }
    }
}
