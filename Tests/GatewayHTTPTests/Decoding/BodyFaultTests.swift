import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

/// Refused bodies on every route that reads one, except sends (``SendBodyTests``).
struct BodyFaultTests {
    /// Bodies of one route, each with its faults as `pointer: code`.
    struct Table: Sendable, CustomTestStringConvertible {
        var method: HTTPRequest.Method
        /// `{key}` stands for the id of the key of `demo`.
        var path: String
        var rows: [(body: String, faults: [String])]

        var testDescription: String { "\(self.method.rawValue) \(self.path)" }

        init(_ method: HTTPRequest.Method, _ path: String, _ rows: [(body: String, faults: [String])]) {
            self.method = method
            self.path = path
            self.rows = rows
        }
    }

    private static let tenant = Table(
        .put,
        "/admin/v1/tenants/acme",
        [
            (#"{"display_name":""}"#, ["/display_name: invalid_field"]),
            (#"{"display_name":5}"#, ["/display_name: invalid_field"]),
            (#"{"display_name":null}"#, ["/display_name: invalid_field"]),
            (#"{"display_name":"a\u0000"}"#, ["/display_name: invalid_field"]),
            (#"{"display_name":"\#(String(repeating: "d", count: 513))"}"#, ["/display_name: invalid_field"]),
            (#"{"project_id":"p\n"}"#, ["/project_id: invalid_field"]),
            (#"{"sender_id":"\#(String(repeating: "1", count: 513))"}"#, ["/sender_id: invalid_field"]),
            (#"{"display_name":"a","upstream":"v2"}"#, ["/upstream: invalid_field"]),
            (#"{"display_name":"a","upstream":null}"#, ["/upstream: invalid_field"]),
            (#"{"display_name":"a","project_id":7}"#, ["/project_id: invalid_field"]),
            (#"{"display_name":"a","project_id":""}"#, ["/project_id: invalid_field"]),
            (#"{"display_name":"a","sender_id":123}"#, ["/sender_id: invalid_field"]),
            (#"{"display_name":"a","sender_id":"12a"}"#, ["/sender_id: invalid_field"]),
            (#"{"display_name":"a","disabled":"yes"}"#, ["/disabled: invalid_field"]),
            (#"{"display_name":"a","disabled":null}"#, ["/disabled: invalid_field"]),
            (#"{"display_name":"a","id":"b"}"#, ["/id: unknown_field"]),
            (#"{"nope":1,"disabled":0}"#, ["/nope: unknown_field", "/disabled: invalid_field"]),
            (#"{"client_names":"orders"}"#, ["/client_names: invalid_field"]),
            (#"{"client_names":[1]}"#, ["/client_names/0: invalid_field"]),
            (#"{"client_names":[""]}"#, ["/client_names/0: invalid_field"]),
            (#"{"client_names":["a","*.b"]}"#, ["/client_names/1: invalid_field"]),
            (#"{"client_names":["a","A"]}"#, ["/client_names/1: invalid_field"]),
            (#"{"client_names":["a","b:"]}"#, ["/client_names/1: invalid_field"]),
            (#"{"client_names":null}"#, ["/client_names: invalid_field"]),
            (
                #"{"client_names":[\#((0...16).map { #""n\#($0)""# }.joined(separator: ","))]}"#,
                ["/client_names: invalid_field"]
            ),
        ]
    )

    private static let legacyCredential = Table(
        .put,
        "/admin/v1/tenants/demo/credentials/legacy",
        [
            ("{}", ["/server_key: invalid_field"]),
            (#"{"server_key":""}"#, ["/server_key: invalid_field"]),
            (#"{"server_key":5}"#, ["/server_key: invalid_field"]),
            (#"{"server_key":null}"#, ["/server_key: invalid_field"]),
            (#"{"server_key":"a b"}"#, ["/server_key: invalid_field"]),
            (#"{"server_key":"a\r\nX: y"}"#, ["/server_key: invalid_field"]),
            (#"{"server_key":"schlüssel"}"#, ["/server_key: invalid_field"]),
            (#"{"server_key":"\#(String(repeating: "k", count: 1_025))"}"#, ["/server_key: invalid_field"]),
            (#"{"server_key":"a","endpoint":""}"#, ["/endpoint: invalid_field"]),
            (#"{"server_key":"a","endpoint":null}"#, ["/endpoint: invalid_field"]),
            (#"{"server_key":"a","endpoint":"fcm.example"}"#, ["/endpoint: invalid_field"]),
            (#"{"server_key":"a","endpoint":"ftp://fcm.example"}"#, ["/endpoint: invalid_field"]),
            (#"{"server_key":"a","endpoint":"https://fcm.example/fcm/send"}"#, ["/endpoint: invalid_field"]),
            (#"{"server_key":"a","endpoint":"https://user@fcm.example"}"#, ["/endpoint: invalid_field"]),
            (#"{"server_key":"a","endpoint":"https://fcm.example:0"}"#, ["/endpoint: invalid_field"]),
            (#"{"endpoint":"https://fcm.example"}"#, ["/server_key: invalid_field"]),
            (#"{"server_key":"a","service_account":{}}"#, ["/service_account: unknown_field"]),
        ]
    )

    private static let serviceAccount = Table(
        .put,
        "/admin/v1/tenants/demo/credentials/v1",
        [
            (#"{}"#, ["/service_account: invalid_field"]),
            (#"{"service_account":"text"}"#, ["/service_account: invalid_field"]),
            (#"{"service_account":{}}"#, ["/service_account/type: invalid_field"]),
            (
                #"{"service_account":{"type":1,"project_id":null,"auth_uri":2}}"#,
                ["/service_account/type: invalid_field", "/service_account/project_id: invalid_field"]
            ),
            (
                #"{"service_account":{"type":1,"project_id":"p"},"server_key":"a","endpoint":"x"}"#,
                ["/server_key: unknown_field", "/endpoint: invalid_field"]
            ),
        ]
    )

    private static let key = Table(
        .post,
        "/admin/v1/tenants/demo/keys",
        [
            ("{}", ["/scopes: invalid_field"]),
            (#"{"name":"a"}"#, ["/scopes: invalid_field"]),
            (#"{"name":"a","scopes":[]}"#, ["/scopes: invalid_field"]),
            (#"{"name":"a","scopes":"messages:send"}"#, ["/scopes: invalid_field"]),
            (#"{"name":"a","scopes":null}"#, ["/scopes: invalid_field"]),
            (#"{"name":"a","scopes":["messages:send","everything"]}"#, ["/scopes/1: invalid_field"]),
            (#"{"name":"a","scopes":[5]}"#, ["/scopes/0: invalid_field"]),
            (#"{"name":5,"scopes":["audit:read"]}"#, ["/name: invalid_field"]),
            (#"{"name":"a\u0000b","scopes":["audit:read"]}"#, ["/name: invalid_field"]),
            (#"{"name":"a\u007f","scopes":["audit:read"]}"#, ["/name: invalid_field"]),
            (#"{"name":"\#(String(repeating: "n", count: 513))","scopes":["audit:read"]}"#, ["/name: invalid_field"]),
            (#"{"name":"","scopes":["audit:read"]}"#, ["/name: invalid_field"]),
            (#"{"scopes":["audit:read"],"topic_prefixes":"a"}"#, ["/topic_prefixes: invalid_field"]),
            (#"{"scopes":["audit:read"],"topic_prefixes":["ok","a b"]}"#, ["/topic_prefixes/1: invalid_field"]),
            (#"{"scopes":["audit:read"],"topic_prefixes":[""]}"#, ["/topic_prefixes/0: invalid_field"]),
            (
                #"{"scopes":["audit:read"],"topic_prefixes":["\#(Array(repeating: "a", count: 101).joined(separator: #"",""#))"]}"#,
                ["/topic_prefixes: invalid_field"]
            ),
            (#"{"scopes":["audit:read"],"expires_at":"soon"}"#, ["/expires_at: invalid_field"]),
            (#"{"scopes":["audit:read"],"expires_at":1772366400}"#, ["/expires_at: invalid_field"]),
            (#"{"scopes":["audit:read"],"expires_at":null}"#, ["/expires_at: invalid_field"]),
            (#"{"scopes":["audit:read"],"secret":"x"}"#, ["/secret: unknown_field"]),
        ]
    )

    private static let rotation = Table(
        .post,
        "/admin/v1/tenants/demo/keys/{key}/rotate",
        [
            ("{}", ["/overlap_s: invalid_field"]),
            (#"{"overlap_s":-1}"#, ["/overlap_s: invalid_field"]),
            (#"{"overlap_s":2592001}"#, ["/overlap_s: invalid_field"]),
            (#"{"overlap_s":"60"}"#, ["/overlap_s: invalid_field"]),
            (#"{"overlap_s":1.5}"#, ["/overlap_s: invalid_field"]),
            (#"{"overlap_s":null}"#, ["/overlap_s: invalid_field"]),
            (#"{"overlap":60}"#, ["/overlap: unknown_field"]),
        ]
    )

    private static let limits = Table(
        .put,
        "/admin/v1/tenants/demo/limits",
        [
            (#"{"devices":[]}"#, ["/devices: unknown_field"]),
            (#"{"device":null}"#, ["/device: invalid_field"]),
            (#"{"device":{}}"#, ["/device: invalid_field"]),
            (#"{"device":[]}"#, ["/device: invalid_field"]),
            (#"{"device":[1]}"#, ["/device/0: invalid_field"]),
            (#"{"device":[{}]}"#, ["/device/0: invalid_field"]),
            (#"{"device":[{"rate":1,"per_s":1}]}"#, ["/device/0: invalid_field"]),
            (#"{"tenant":[{"rate":0,"per_s":1,"burst":1}]}"#, ["/tenant/0/rate: invalid_field"]),
            (#"{"tenant":[{"rate":"1","per_s":1,"burst":1}]}"#, ["/tenant/0/rate: invalid_field"]),
            (#"{"tenant":[{"rate":1000000001,"per_s":1,"burst":1}]}"#, ["/tenant/0/rate: invalid_field"]),
            (#"{"tenant":[{"rate":1,"per_s":86401,"burst":1}]}"#, ["/tenant/0/per_s: invalid_field"]),
            (#"{"tenant":[{"rate":1,"per_s":1,"burst":-1}]}"#, ["/tenant/0/burst: invalid_field"]),
            (
                #"{"tenant":[{"rate":1.5,"per_s":0,"burst":null}]}"#,
                ["/tenant/0/rate: invalid_field", "/tenant/0/per_s: invalid_field", "/tenant/0/burst: invalid_field"]
            ),
            (#"{"topic":[{"rate":1,"per_s":1,"burst":1,"unit":"s"}]}"#, ["/topic/0/unit: unknown_field"]),
            (#"{"topic":[{"rate":1,"per_s":86400,"burst":31}]}"#, ["/topic/0: invalid_field"]),
            (
                #"{"topic":[\#(Array(repeating: #"{"rate":1,"per_s":1,"burst":1}"#, count: 5).joined(separator: ","))]}"#,
                ["/topic: invalid_field"]
            ),
            (
                #"{"device_collapsible":[{"rate":1,"per_s":1,"burst":1},{"rate":1,"per_s":1}]}"#,
                ["/device_collapsible/1: invalid_field"]
            ),
        ]
    )

    private static let groupMembers: [(body: String, faults: [String])] = [
        (#"{}"#, ["/tokens: invalid_field"]),
        (#"{"tokens":[]}"#, ["/tokens: invalid_field"]),
        (#"{"tokens":"a"}"#, ["/tokens: invalid_field"]),
        (#"{"tokens":["a",""]}"#, ["/tokens/1: invalid_field"]),
        (#"{"tokens":[null]}"#, ["/tokens/0: invalid_field"]),
        (#"{"tokens":["a"],"name":"g"}"#, ["/name: unknown_field"]),
        (#"{"tokens":["/topics/x"]}"#, ["/tokens/0: invalid_field"]),
        (#"{"tokens":["\#(String(repeating: "x", count: 4_097))"]}"#, ["/tokens/0: invalid_token"]),
        (#"{"tokens":["a","b\u0000"]}"#, ["/tokens/1: invalid_token"]),
        (#"{"tokens":["\#((0..<21).map(String.init).joined(separator: #"",""#))"]}"#, ["/tokens: group_too_large"]),
        (
            #"{"tokens":["\#(Array(repeating: "a", count: 101).joined(separator: #"",""#))"]}"#,
            ["/tokens: invalid_field"]
        ),
    ]

    private static let subscriptions: [(body: String, faults: [String])] = [
        (#"{}"#, [": invalid_field"]),
        (#"{"tokens":[]}"#, ["/tokens: invalid_field"]),
        (#"{"tokens":"a"}"#, ["/tokens: invalid_field"]),
        (#"{"tokens":null}"#, ["/tokens: invalid_field"]),
        (#"{"tokens":["a",1]}"#, ["/tokens/1: invalid_field"]),
        (#"{"tokens":[""]}"#, ["/tokens/0: invalid_field"]),
        (#"{"tokens":["a","/topics/x",".."]}"#, ["/tokens/1: invalid_token", "/tokens/2: invalid_token"]),
        (#"{"tokens":["a","b\u0000c"]}"#, ["/tokens/1: invalid_token"]),
        (#"{"tokens":["a"],"topic":"x"}"#, ["/topic: unknown_field"]),
        (#"{"tokens":["a"],"fids":["b"]}"#, [": invalid_field"]), (#"{"fids":[1]}"#, ["/fids/0: invalid_field"]),
    ]

    private static let devices: [Table] = [
        Table(.put, "/v1/tenants/demo/device-groups/g", Self.groupMembers),
        Table(.post, "/v1/tenants/demo/device-groups/g/members", Self.groupMembers),
        Table(.post, "/v1/tenants/demo/device-groups/g/members/remove", Self.groupMembers),
        Table(.post, "/v1/tenants/demo/topics/news/subscriptions", Self.subscriptions),
        Table(.post, "/v1/tenants/demo/topics/news/subscriptions/remove", Self.subscriptions),
    ]

    private static let tables: [Table] =
        [Self.tenant, Self.legacyCredential, Self.serviceAccount, Self.key, Self.rotation, Self.limits] + Self.devices

    @Test("Every fault of a body is listed with its pointer, and nothing is done or recorded", arguments: Self.tables)
    func faults(table: Table) async throws {
        let groups = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: groups) { gateway, key in
            try await gateway.settleAudit()
            let recorded = try await gateway.auditRecords().map(\.action)
            let path = table.path.replacing("{key}", with: try #require(APIKey(key)?.id))
            for (body, faults) in table.rows {
                let answer = await gateway.ask(table.method, path, key: key, body: body)
                #expect(answer.status == 422, "\(body.prefix(80))")
                #expect(try answer.faults() == faults, "\(body.prefix(80))")
            }
            #expect(groups.requests.isEmpty && gateway.topics.changes.isEmpty)
            try await gateway.settleAudit()
            #expect(try await gateway.auditRecords().map(\.action) == recorded + ["test.barrier"])
        }
    }

    @Test("A malformed body and a body without the JSON media type are refused", arguments: Self.tables)
    func malformed(table: Table) async throws {
        try await TestGateway.run { gateway, key in
            let path = table.path.replacing("{key}", with: try #require(APIKey(key)?.id))
            for (body, code) in [
                ("{", "malformed_json"), ("[]", "malformed_json"), (#"{"a":1,"a":2}"#, "duplicate_key"),
                ("", "unsupported_media_type"),
            ] {
                let answer = await gateway.ask(table.method, path, key: key, body: body)
                try answer.expectProblem(body.isEmpty ? 415 : 400, code, "\(body)")
            }
            let headers = ["Content-Type": "text/plain"]
            #expect(await gateway.ask(table.method, path, key: key, body: "{}", headers: headers).status == 415)
        }
    }
}

/// Refused names, keys and tokens of the facades: texts that go to the store or into a header.
///
/// ``BodyFaultTests``, ``ListTests`` and ``SendBodyTests`` cover REST and the admin API.
struct StoredTextTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var path: String
        var body: String
        var status: Int
        /// A text that the answer contains.
        var words: String

        var testDescription: String { "\(self.path) \(self.body.prefix(80))" }

        init(_ path: String, _ body: String, _ status: Int, _ words: String) {
            (self.path, self.body, self.status, self.words) = (path, body, status, words)
        }
    }

    private static func long(_ length: Int) -> String { String(repeating: "x", count: length) }

    private static let groups: [Row] =
        [
            #"{"operation":"add","notification_key":"a\u0000b","registration_ids":["r"]}"#,
            #"{"operation":"remove","notification_key":"\#(Self.long(2_049))","registration_ids":["r"]}"#,
            #"{"operation":"create","notification_key_name":"a\u0000b","registration_ids":["r"]}"#,
            #"{"operation":"create","notification_key_name":"\#(Self.long(1_025))","registration_ids":["r"]}"#,
            #"{"operation":"create","notification_key_name":"g","registration_ids":["r\u007f"]}"#,
        ]
        .map { Row("/fcm/notification", $0, 400, "control characters") }

    private static let sends: [Row] = [
        Row("/fcm/send", #"{"to":"a\u0000b"}"#, 200, "InvalidRegistration"),
        Row("/fcm/send", #"{"to":"\#(Self.long(4_097))"}"#, 200, "InvalidRegistration"),
        Row("/fcm/send", #"{"notification_key":"a\nb"}"#, 200, "InvalidRegistration"),
        Row("/fcm/send", #"{"registration_ids":["a\u0000b"]}"#, 200, "InvalidRegistration"),
        Row(
            "/v1/projects/demo/messages:send",
            #"{"message":{"token":"a\u0000b"}}"#,
            400,
            "not a valid FCM registration token"
        ),
        Row(
            "/v1/projects/demo/registrations/a%00b/topicSubscriptions?topic_name=news",
            "{}",
            400,
            "INVALID_ARGUMENT"
        ),
        Row("/iid/v1/a%00b/rel/topics/news", "", 400, "INVALID_ARGUMENT"),
        Row("/iid/v1:batchAdd", #"{"to":"/topics/news","registration_tokens":["a\u0000b"]}"#, 200, "INVALID_ARGUMENT"),
    ]

    @Test(
        "A facade refuses control characters and overlong texts without a call to FCM",
        arguments: Self.groups + Self.sends
    )
    func refused(row: Row) async throws {
        let groups = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: groups) { gateway, key in
            try await gateway.setSender()
            let headers = ["Authorization": row.path.hasPrefix("/v1/") ? "Bearer \(key)" : "key=\(key)"]
            let answer = await gateway.data(.post, row.path, key: nil, body: row.body, headers: headers)
            #expect(answer.status == row.status, "\(answer.body)")
            #expect(answer.body.contains(row.words), "\(answer.body)")
            #expect(groups.requests.isEmpty && gateway.upstream.calls.isEmpty && gateway.topics.changes.isEmpty)
        }
    }

    @Test("An invalid token in a list does not affect the other tokens")
    func list() async throws {
        try await TestGateway.run { gateway, key in
            let answer = await gateway.legacy(#"{"registration_ids":["a","b\u0000"]}"#, key: key)
            #expect(answer.value["results"]?.elements.last == ["error": "InvalidRegistration"])
            #expect(gateway.upstream.calls.map(\.target) == [.tokens(["a"])])
        }
    }

    @Test("A message's texts may contain control characters")
    func texts() async throws {
        try await TestGateway.run { gateway, key in
            let parts = #""notification":{"title":"a\u0000","body":"b\n"},"data":{"k\u0001":"v\u0000"}"#
            #expect(await gateway.send(#"{"token":"t",\#(parts)}"#, key: key).status == 200)
            let answer = await gateway.legacy(#"{"to":"t",\#(parts)}"#, key: key)
            #expect(answer.value["success"] == 1)
            #expect(gateway.upstream.calls.map { $0.command.message.notification?[.title] } == ["a\u{0}", "a\u{0}"])
        }
    }

    @Test(
        "A misspelled field of the admin API is refused with the closest known name",
        arguments: [
            ("tenants/demo", #"{"displayname":"a"}"#, "display_name"),
            ("tenants/demo", #"{"upstrem":"v1"}"#, "upstream"),
            ("tenants/demo/credentials/legacy", #"{"serverkey":"a"}"#, "server_key"),
            ("tenants/demo/credentials/v1", #"{"service_acount":{}}"#, "service_account"),
            ("tenants/demo/limits", #"{"devices":[]}"#, "device"),
            ("tenants/demo/limits", #"{"device":[{"rate":1,"perS":1,"burst":1}]}"#, "per_s"),
        ]
    )
    func suggestions(path: String, body: String, name: String) async throws {
        try await TestGateway.run { gateway, _ in
            let problem = try await gateway.admin(.put, "/admin/v1/\(path)", body: body).problem()
            #expect(problem["detail"]?.text == "This field is not known here; did you mean \(name)?")
        }
    }
}
