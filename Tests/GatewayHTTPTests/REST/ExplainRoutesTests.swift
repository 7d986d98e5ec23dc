import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct ExplainRoutesTests {
    private static let path = "/v1/tenants/demo/messages/explain"

    @Test("An explanation for legacy has request, fields, size and quotas; it is charged once and sends nothing")
    func legacy() async throws {
        let policy = try RatePolicy.sample(1, per: 60, burst: 1)
        try await TestGateway.run(limits: LimitPolicies(device: [policy])) { gateway, key in
            let body =
                #"{"token":"device","ttl":60,"notification":{"badge":3,"title_loc_args":["a"]},"data":{"k":"v"}}"#
            for call in 1...2 {
                let answer = await gateway.data(.post, Self.path, key: key, body: body)
                #expect(answer.status == 200)
                let json = answer.value
                #expect(json["upstream"] == "legacy")
                #expect(json["request_count"] == 1)
                #expect(
                    json["requests"] == [
                        [
                            "method": "PUT", "url": "https://fcm.test/a%2Fb",
                            "headers": ["Authorization": "secret ***", "X-Scripted": "a; b=\"c\""],
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
                #expect(json["limits"]?["tenant"]?.elements.map { $0["remaining"] } == [.integer(9_000 - call)])
                #expect(json["refused"] == nil)
            }
            #expect(gateway.upstream.calls.isEmpty)
            #expect(await gateway.send(#"{"token":"device"}"#, key: key).status == 200)
            let after = try await gateway.data(.post, Self.path, key: key, body: #"{"token":"device"}"#).json
            #expect(after["limits"]?["targets"]?[0]?[0]?["remaining"] == 0)
            #expect(after["limits"]?["targets"]?[0]?[0]?["reset_s"] == 60)
            try await gateway.settleAudit()
            let sends = try await gateway.auditRecords().filter { $0.action.hasPrefix("message.") }
            #expect(sends.count == 1)
        }
    }

    @Test("An explanation for v1 has one request per recipient, and warnings for fields that v1 can't carry")
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
            // A dry run costs only the tenant's quota.
            #expect(json["limits"]?["targets"] == [])
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test("A message that would be refused is explained with the code of its refusal")
    func refused() async throws {
        try await TestGateway.run { gateway, _ in
            let key = try await gateway.makeKey(scopes: [.sendMessages], topicPrefixes: ["sport"])
            let text = String(repeating: "x", count: 2_048)
            let big =
                try await gateway.data(.post, Self.path, key: key, body: #"{"topic":"sport","data":{"k":"\#(text)"}}"#)
                .json
            #expect(big["payload"] == ["bytes": 2_049, "limit": 2_048])
            #expect(big["refused"]?["code"] == "message_too_big")
            #expect(big["requests"] == [])
            #expect(big["request_count"] == 0)
            let topic = try await gateway.data(.post, Self.path, key: key, body: #"{"topic":"news"}"#).json
            #expect(topic["refused"]?["code"] == "forbidden")
            gateway.upstream.refuse(with: Refusal(.invalidTarget, "It has no form for this", field: "fid"))
            let objected = try await gateway.data(.post, Self.path, key: key, body: #"{"fid":"f"}"#).json
            #expect(
                objected["refused"] == [
                    "code": "invalid_target", "detail": "It has no form for this", "pointer": "/fid",
                ]
            )
        }
    }

    @Test("Bad requests are answered with problems, as for a send")
    func problems() async throws {
        try await TestGateway.run { gateway, key in
            let cases = [(#"{"device_group":"g"}"#, 404), ("no json", 400), (#"{"token":"a","colour":"red"}"#, 422)]
            for (body, status) in cases {
                let answer = await gateway.data(.post, Self.path, key: key, body: body)
                #expect(answer.status == status, "\(body)")
                _ = try answer.problem()
            }
        }
    }

    @Test("Each call costs the tenant's quota once, even with a bad body, and no device's quota")
    func charge() async throws {
        let limits = LimitPolicies(
            tenant: [try .sample(1, per: 60, burst: 3)],
            device: [try .sample(1, per: 60, burst: 1)]
        )
        try await TestGateway.run(limits: limits) { gateway, key in
            let reader = try await gateway.makeKey(scopes: [.readAudit])
            #expect(await gateway.data(.post, Self.path, key: reader, body: "{}").status == 403)
            for (body, status) in [(#"{"token":"a"}"#, 200), ("no json", 400), (#"{"token":"a"}"#, 200)] {
                #expect(await gateway.data(.post, Self.path, key: key, body: body).status == status)
            }
            let refused = await gateway.data(.post, Self.path, key: key, body: #"{"token":"a"}"#)
            try refused.expectProblem(429, "tenant_rate_exceeded")
            #expect(refused.header("Retry-After") == "60")
        }
    }

    @Test(
        "Repeated recipients and a message without content get warnings",
        arguments: [
            (#"{"tokens":["a","b","a","a"],"data":{"k":"v"}}"#, ["/tokens"]),
            (#"{"fids":["a","a"],"notification":{"title":"t"}}"#, ["/fids"]),
            (#"{"token":"a"}"#, [""]), (#"{"token":"a","content_available":true}"#, []),
            (#"{"tokens":["a","b"],"data":{"k":"v"}}"#, []),
        ]
    )
    func unintended(body: String, pointers: [String]) async throws {
        try await TestGateway.run { gateway, key in
            let json = try await gateway.data(.post, Self.path, key: key, body: body).json
            let warnings = (json["warnings"]?.elements ?? [])
                .filter { $0["detail"]?.text?.contains("credential for FCM") == false }
            #expect(warnings.map { $0["pointer"]?.text } == pointers)
            guard pointers == ["/tokens"] else { return }
            #expect(warnings.first?["detail"]?.text?.hasPrefix("2 entries repeat") == true)
        }
    }

    @Test("A list of 1,000 tokens is explained as it would be sent", arguments: [UpstreamKind.legacy, .v1])
    func list(upstream: UpstreamKind) async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(upstream)
            let tokens = (0..<1_000).map { "\"token-\($0)-\(String(repeating: "x", count: 200))\"" }
            let body = #"{"tokens":[\#(tokens.joined(separator: ","))],"ttl":0}"#
            let answer = await gateway.data(.post, Self.path, key: key, body: body)
            // It has more members than the strict reader accepts.
            let json = try JSON(parsing: answer.body)
            #expect(json["request_count"] == (upstream == .v1 ? 1_000 : 1))
            #expect(json["requests"]?.elements.count == (upstream == .v1 ? 10 : 1))
            #expect(json["fields"]?.elements.map { $0["pointer"]?.text } == ["/tokens", "/ttl"])
        }
    }

    @Test("A request's body is shown byte for byte", arguments: [UpstreamKind.legacy, .v1])
    func bodyBytes(upstream: UpstreamKind) async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(upstream)
            let body = #"{"token":"a\"/\u00e9","notification":{"title":"\u2028 / \ud83d\ude00\t"},"data":{"k":"1.0"}}"#
            let answer = await gateway.data(.post, Self.path, key: key, body: body)
            let sent =
                switch upstream {
                case .legacy:
                    #"{"to":"a\"/é","notification":{"title":"\#u{2028} / 😀\t"},"data":{"k":"1.0"}}"#
                case .v1:
                    #"{"message":{"token":"a\"/é","data":{"k":"1.0"},"notification":{"title":"\#u{2028} / 😀\t"}}}"#
                }
            #expect(answer.body.contains(#""body":\#(sent)"#))
        }
    }

    @Test("Requests beyond a total size are not shown")
    func largeRequests() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let name = String(repeating: "n", count: 30_000)
            let body = #"{"tokens":["a","b","c"],"restricted_package_name":"\#(name)"}"#
            let json = try await gateway.data(.post, Self.path, key: key, body: body).json
            #expect(json["request_count"] == 3)
            #expect(json["requests"]?.elements.count == 2)
        }
    }

    @Test("Each field is mapped to its members of the v1 request; a shared member is listed once")
    func traces() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let aps = "/message/apns/payload/aps"
            let headers = "/message/apns/headers"
            let cases: [(String, [String: [String]])] = [
                (
                    #"{"token":"a","content_available":true,"priority":"high"}"#,
                    [
                        "/content_available": [
                            "\(headers)/apns-priority", "\(headers)/apns-push-type", "\(aps)/content-available",
                        ],
                        "/priority": ["/message/android/priority", "/message/webpush/headers/Urgency"],
                    ]
                ),
                (
                    #"""
                    {"token":"a","priority":"high","ttl":5,"notification":{"title":"t","subtitle":"s","body":"b",
                     "image":"https://i","sound":"x","icon":"https://p","color":"#000000","tag":"g",
                     "click_action":"https://c","android_channel_id":"d","title_loc_key":"k","title_loc_args":["1"],
                     "body_loc_key":"l","body_loc_args":["2"],"badge":0},"mutable_content":true,"collapse_key":"ck",
                     "restricted_package_name":"p","data":{"title":"no member of its own"},"dry_run":true}
                    """#,
                    [
                        "/notification/title": ["/message/notification/title", "\(aps)/alert/title"],
                        "/notification/subtitle": ["\(aps)/alert/subtitle"],
                        "/notification/body": ["/message/notification/body", "\(aps)/alert/body"],
                        "/notification/image": ["/message/notification/image"],
                        "/notification/sound": ["/message/android/notification/sound", "\(aps)/sound"],
                        "/notification/icon": [
                            "/message/android/notification/icon", "/message/webpush/notification/icon",
                        ],
                        "/notification/color": ["/message/android/notification/color"],
                        "/notification/tag": ["/message/android/notification/tag"],
                        "/notification/click_action": [
                            "/message/android/notification/click_action", "\(aps)/category",
                            "/message/webpush/fcm_options/link",
                        ],
                        "/notification/android_channel_id": ["/message/android/notification/channel_id"],
                        "/notification/title_loc_key": [
                            "/message/android/notification/title_loc_key", "\(aps)/alert/title-loc-key",
                        ],
                        "/notification/title_loc_args": [
                            "/message/android/notification/title_loc_args", "\(aps)/alert/title-loc-args",
                        ],
                        "/notification/body_loc_key": [
                            "/message/android/notification/body_loc_key", "\(aps)/alert/loc-key",
                        ],
                        "/notification/body_loc_args": [
                            "/message/android/notification/body_loc_args", "\(aps)/alert/loc-args",
                        ],
                        "/notification/badge": ["\(aps)/badge"], "/data": ["/message/data"],
                        "/priority": [
                            "/message/android/priority", "\(headers)/apns-priority",
                            "/message/webpush/headers/Urgency",
                        ],
                        "/ttl": ["/message/android/ttl", "\(headers)/apns-expiration", "/message/webpush/headers/TTL"],
                        "/collapse_key": ["/message/android/collapse_key", "\(headers)/apns-collapse-id"],
                        "/mutable_content": ["\(aps)/mutable-content"],
                        "/restricted_package_name": ["/message/android/restricted_package_name"],
                        "/dry_run": ["/validate_only"],
                    ]
                ),
            ]
            for (body, expected) in cases {
                let json = try await gateway.data(.post, Self.path, key: key, body: body).json
                let fields = json["fields"]?.elements.dropFirst() ?? []
                #expect(fields.count == expected.count)
                for field in fields {
                    let pointer = field["pointer"]?.text ?? ""
                    #expect(field["becomes"]?.elements.compactMap(\.text) == expected[pointer], "\(pointer)")
                }
            }
        }
    }

    @Test("Blocks for platforms are traced to their members, and fields that they replace lose theirs")
    func platforms() async throws {
        try await TestGateway.run { gateway, key in
            let body = #"""
                {"token":"t","ttl":60,"collapse_key":"c",
                 "android":{"ttl":"60s","collapseKey":null},"apns":{"headers":{"Apns-Collapse-Id":"c"}},"webpush":{}}
                """#
            let legacy = await gateway.data(.post, Self.path, key: key, body: body)
            #expect(try legacy.faults() == ["/android/collapse_key: invalid_field"])
            try await gateway.setUpstream(.v1)
            let json = try await gateway.data(.post, Self.path, key: key, body: body).json
            #expect(json["requests"]?[0]?["body"]?["message"]?["android"] == ["ttl": "60s"])
            #expect(
                json["fields"]?.elements.dropFirst().map(\.self) == [
                    [
                        "pointer": "/ttl",
                        "becomes": ["/message/apns/headers/apns-expiration", "/message/webpush/headers/TTL"],
                    ],
                    ["pointer": "/collapse_key", "becomes": []],
                    ["pointer": "/android/ttl", "becomes": ["/message/android/ttl"]],
                    [
                        "pointer": "/apns/headers/Apns-Collapse-Id",
                        "becomes": ["/message/apns/headers/Apns-Collapse-Id"],
                    ],
                ]
            )
            #expect(json["warnings"]?.elements.map { $0["pointer"]?.text } == ["", "", "/collapse_key"])
        }
    }

    @Test("A legacy tenant's block is traced to the option that it becomes")
    func legacyPlatforms() async throws {
        try await TestGateway.run { gateway, key in
            let body = #"{"token":"t","data":{"k":"v"},"android":{"ttl":"60s"},"apns":{"payload":{"aps":{"badge":2}}}}"#
            let json = try await gateway.data(.post, Self.path, key: key, body: body).json
            #expect(json["requests"]?[0]?["body"]?["time_to_live"] == 60)
            #expect(
                json["fields"]?.elements.dropFirst(2).map(\.self) == [
                    ["pointer": "/android/ttl", "becomes": ["/time_to_live"]],
                    ["pointer": "/apns/payload/aps/badge", "becomes": ["/notification/badge"]],
                ]
            )
        }
    }

    @Test("No credential is shown or logged")
    func credentials() async throws {
        try await TestGateway.run { gateway, key in
            let put = await gateway.admin(
                .put,
                "/admin/v1/tenants/demo/credentials/legacy",
                body: #"{"server_key":"the-server-key","endpoint":"https://fcm.example.com"}"#
            )
            #expect(put.status < 300)
            let body = #"{"token":"secret-device","data":{"k":"v"}}"#
            let answer = await gateway.data(.post, Self.path, key: key, body: body)
            #expect(answer.value["warnings"] == [])
            #expect(!answer.body.contains("the-server-key"))
            #expect(!gateway.logText.contains("the-server-key"))
            #expect(!gateway.logText.contains("secret-device"))
            #expect(!gateway.logText.contains(key))
        }
    }

    @Test("A legacy body is explained as a send to the legacy facade")
    func legacyBody() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            let path = Self.path + "?form=legacy"
            let body = #"{"registration_ids":["a","","b"],"data":{"k":"v"},"time_to_live":60}"#
            let json = try await gateway.data(.post, path, key: key, body: body).json
            #expect(json["request_count"] == 2)
            #expect(json["requests"]?.elements.map { $0["body"]?["message"]?["token"]?.text } == ["a", "b"])
            #expect(json["requests"]?[0]?["body"]?["message"]?["android"]?["ttl"] == "60s")
            #expect(gateway.upstream.calls.isEmpty)

            let cases: [(String, String, Int, String)] = [
                (path, #"{"to":""}"#, 422, "invalid_target"),
                (path, #"{"registration_ids":[""]}"#, 422, "invalid_target"),
                (path, #"{"to":"a","time_to_live":-1}"#, 422, "invalid_field"),
                (path, #"{"to":"a","data":{"from":"x"}}"#, 422, "invalid_data_key"),
                (path, #"{"to":"a","data":{"k":"\#(String(repeating: "x", count: 4_096))"}}"#, 422, "message_too_big"),
                (path, #"{"to":"a""#, 400, "malformed_json"),
                (path, #"{"to":"\#(String(repeating: "x", count: 4_097))"}"#, 422, "invalid_target"),
                (
                    Self.path, #"{"token":"a","collapse_key":"\#(String(repeating: "x", count: 65_537))"}"#, 422,
                    "invalid_field"
                ),
                (Self.path, #"{"to":"a"}"#, 422, "unknown_field"),
                (Self.path + "?form=soap", #"{"token":"a"}"#, 422, "invalid_field"),
                (Self.path + "?shape=legacy", #"{"to":"a"}"#, 422, "unknown_field"),
            ]
            for (path, body, status, code) in cases {
                try await gateway.data(.post, path, key: key, body: body).expectProblem(status, code, "\(body)")
            }
        }
    }
}
