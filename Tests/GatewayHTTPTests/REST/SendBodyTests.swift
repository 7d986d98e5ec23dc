import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayHTTP

struct SendBodyTests {
    /// A body and the faults that its problem lists, in order, as `pointer: code`.
    struct Fault: Sendable, CustomTestStringConvertible {
        var body: String
        var faults: [String]

        init(_ body: String, _ faults: String...) {
            self.body = body
            self.faults = faults
        }

        var testDescription: String { String(self.body.prefix(60)) }
    }

    /// Values of every kind but strings.
    private static let noStrings = ["null", "true", "5", "[]", "{}", #"["a"]"#]

    static let mistypedTexts: [Fault] = ["priority", "collapse_key", "restricted_package_name"]
        .flatMap { field in
            (Self.noStrings + [#""""#])
                .map { Fault(#"{"token":"t","\#(field)":\#($0)}"#, "/\(field): invalid_field") }
        }

    static let mistypedTargets: [Fault] = ["token", "fid", "topic", "condition", "device_group"]
        .flatMap { field in
            (Self.noStrings + [#""""#]).map { Fault(#"{"\#(field)":\#($0)}"#, "/\(field): invalid_field") }
        }

    static let mistypedFlags: [Fault] = ["content_available", "mutable_content", "dry_run"]
        .flatMap { field in
            ["null", "0", "1", #""true""#, #""""#, "[]", "{}"]
                .map { Fault(#"{"token":"t","\#(field)":\#($0)}"#, "/\(field): invalid_field") }
        }

    static let badNumbers: [Fault] =
        ["-1", "2419201", "1.5", "1e30", "-0.1", "99999999999999999999", "null", "true", #""60""#, #""""#, "[]", "{}"]
        .map { Fault(#"{"token":"t","ttl":\#($0)}"#, "/ttl: invalid_field") }
        + ["-1", "2147483648", "0.5", "null", "true", #""5""#, "[]", "{}"]
        .map { Fault(#"{"token":"t","notification":{"badge":\#($0)}}"#, "/notification/badge: invalid_field") }

    static let lists: [Fault] = ["tokens", "fids"]
        .flatMap { field in
            [
                Fault(#"{"\#(field)":[]}"#, "/\(field): invalid_target"),
                Fault(#"{"\#(field)":null}"#, "/\(field): invalid_field"),
                Fault(#"{"\#(field)":"a"}"#, "/\(field): invalid_field"),
                Fault(#"{"\#(field)":{}}"#, "/\(field): invalid_field"),
                Fault(#"{"\#(field)":["a",5]}"#, "/\(field)/1: invalid_field"),
                Fault(#"{"\#(field)":["a","b",null]}"#, "/\(field)/2: invalid_field"),
                Fault(#"{"\#(field)":["",  "b"]}"#, "/\(field)/0: invalid_field"),
                Fault(#"{"\#(field)":[["a"]]}"#, "/\(field)/0: invalid_field"),
                Fault(#"{"\#(field)":["a","/topics/news"]}"#, "/\(field)/1: invalid_target"),
                Fault(Self.list(field, count: 1_001), "/\(field): invalid_target"),
                Fault(#"{"\#(field)":["a","b\u0000"]}"#, "/\(field)/1: invalid_token"),
                Fault(
                    #"{"\#(field)":["a","\#(String(repeating: "x", count: 4_097))"]}"#,
                    "/\(field)/1: invalid_token"
                ),
            ]
        }

    static let targets: [Fault] = [
        Fault("{}", ": invalid_target"),
        Fault(#"{"data":{"a":"b"}}"#, ": invalid_target"),
        Fault(#"{"token":"a","tokens":["b"]}"#, ": invalid_target"),
        Fault(#"{"token":"a","topic":"b"}"#, ": invalid_target"),
        Fault(#"{"fid":"a","condition":"'a' in topics","device_group":"g"}"#, ": invalid_target"),
        Fault(#"{"token":"a","topic":5}"#, "/topic: invalid_field", ": invalid_target"),
        Fault(#"{"token":"/topics/news"}"#, "/token: invalid_target"),
        Fault(#"{"token":"/topics/"}"#, "/token: invalid_target"),
        Fault(#"{"token":"/topics/\u0301news"}"#, "/token: invalid_target"),
        Fault(#"{"fid":"/topics/news"}"#, "/fid: invalid_target"),
        Fault(#"{"token":"\#(String(repeating: "x", count: 4_097))"}"#, "/token: invalid_token"),
        Fault(#"{"fid":"\#(String(repeating: "x", count: 4_097))"}"#, "/fid: invalid_token"),
        Fault(#"{"token":"a\u0000b"}"#, "/token: invalid_token"),
        Fault(#"{"fid":"a\u007f"}"#, "/fid: invalid_token"),
        Fault(#"{"topic":"/topics/news"}"#, "/topic: invalid_target"),
        Fault(#"{"topic":"a b"}"#, "/topic: invalid_target"),
        Fault(#"{"topic":"caf\u00e9"}"#, "/topic: invalid_target"),
        Fault(#"{"topic":"\#(String(repeating: "x", count: 901))"}"#, "/topic: invalid_target"),
        Fault(#"{"device_group":"a\u0000"}"#, "/device_group: invalid_target"),
        Fault(#"{"device_group":"\#(String(repeating: "x", count: 257))"}"#, "/device_group: invalid_target"),
        Fault(#"{"condition":"news"}"#, "/condition: invalid_target"),
        Fault(#"{"condition":"'a' in topics &&"}"#, "/condition: invalid_target"),
        Fault(#"{"condition":"'a b' in topics"}"#, "/condition: invalid_target"),
        Fault(#"{"condition":"'' in topics"}"#, "/condition: invalid_target"),
        Fault(
            #"{"condition":"\#(String(repeating: "(", count: 33))'a' in topics\#(String(repeating: ")", count: 33))"}"#,
            "/condition: invalid_target"
        ),
        Fault(
            #"{"condition":"\#(["a", "b", "c", "d", "e", "f"].map { "'\($0)' in topics" }.joined(separator: " || "))"}"#,
            "/condition: invalid_target"
        ),
    ]

    static let payloads: [Fault] = [
        Fault(#"{"token":"t","data":null}"#, "/data: invalid_field"),
        Fault(#"{"token":"t","data":[]}"#, "/data: invalid_field"),
        Fault(#"{"token":"t","data":"a"}"#, "/data: invalid_field"),
        Fault(#"{"token":"t","data":{"a":1}}"#, "/data/a: invalid_field"),
        Fault(#"{"token":"t","data":{"a":null}}"#, "/data/a: invalid_field"),
        Fault(#"{"token":"t","data":{"a":true}}"#, "/data/a: invalid_field"),
        Fault(#"{"token":"t","data":{"a":{}}}"#, "/data/a: invalid_field"),
        Fault(#"{"token":"t","data":{"a":["b"]}}"#, "/data/a: invalid_field"),
        Fault(#"{"token":"t","data":{"a/b~c":1}}"#, "/data/a~1b~0c: invalid_field"),
        Fault(#"{"token":"t","data":{"x":"1","a":1,"b":2}}"#, "/data/a: invalid_field", "/data/b: invalid_field"),
        Fault(#"{"token":"t","data":{"":"a"}}"#, "/data/: invalid_data_key"),
        Fault(#"{"token":"t","data":{"from":"a"}}"#, "/data/from: invalid_data_key"),
        Fault(#"{"token":"t","data":{"message_type":"a"}}"#, "/data/message_type: invalid_data_key"),
        Fault(#"{"token":"t","data":{"google.c":"a"}}"#, "/data/google.c: invalid_data_key"),
        Fault(#"{"token":"t","data":{"gcm":"a"}}"#, "/data/gcm: invalid_data_key"),
        Fault(#"{"token":"t","data":{"ok":"a","gcmx":1}}"#, "/data/gcmx: invalid_data_key"),
        Fault(#"{"token":"t","notification":null}"#, "/notification: invalid_field"),
        Fault(#"{"token":"t","notification":"hello"}"#, "/notification: invalid_field"),
        Fault(#"{"token":"t","notification":[]}"#, "/notification: invalid_field"),
        Fault(#"{"token":"t","notification":{"color":"red"}}"#, "/notification/color: invalid_field"),
        Fault(##"{"token":"t","notification":{"color":"#12345"}}"##, "/notification/color: invalid_field"),
        Fault(##"{"token":"t","notification":{"color":"#12345g"}}"##, "/notification/color: invalid_field"),
        Fault(
            #"{"token":"t","notification":{"title_loc_args":"a"}}"#,
            "/notification/title_loc_args: invalid_field"
        ),
        Fault(
            #"{"token":"t","notification":{"title_loc_args":["\#(Array(repeating: "a", count: 1_001).joined(separator: #"",""#))"]}}"#,
            "/notification/title_loc_args: invalid_field"
        ),
        Fault(
            #"{"token":"t","notification":{"body_loc_args":["a",1]}}"#,
            "/notification/body_loc_args/1: invalid_field"
        ),
        Fault(
            #"{"token":"t","notification":{"body_loc_args":null}}"#,
            "/notification/body_loc_args: invalid_field"
        ),
        Fault(#"{"token":"t","priority":"urgent"}"#, "/priority: invalid_field"),
        Fault(#"{"token":"t","priority":"HIGH"}"#, "/priority: invalid_field"),
    ]

    static let notificationTexts: [Fault] = [
        "title", "body", "image", "subtitle", "sound", "icon", "color", "tag", "click_action", "android_channel_id",
        "title_loc_key", "body_loc_key",
    ]
    .flatMap { field in
        (Self.noStrings + [#""""#])
            .map {
                Fault(#"{"token":"t","notification":{"\#(field)":\#($0)}}"#, "/notification/\(field): invalid_field")
            }
    }

    static let platforms: [Fault] = [
        Fault(#"{"token":"t","android":5}"#, "/android: invalid_field"),
        Fault(
            #"{"token":"t","android":{"ttl":60,"x":1},"apns":[],"ttl":"x","webpush":{"headers":{"TTL":1}}}"#,
            "/android/ttl: invalid_field",
            "/android/x: unknown_field",
            "/apns: invalid_field",
            "/ttl: invalid_field",
            "/webpush/headers/TTL: invalid_field"
        ),
        Fault(#"{"token":"t","fcm_options":{"analytics_label":"a b"}}"#, "/fcm_options/analytics_label: invalid_field"),
        Fault(#"{"token":"t","fcmOptions":{}}"#, "/fcmOptions: unknown_field"),
    ]

    static let unknownFields: [Fault] = [
        Fault(#"{"token":"t","colour":"red"}"#, "/colour: unknown_field"),
        Fault(#"{"token":"t","to":"x"}"#, "/to: unknown_field"),
        Fault(#"{"token":"t","registration_ids":["x"]}"#, "/registration_ids: unknown_field"),
        Fault(#"{"token":"t","time_to_live":5}"#, "/time_to_live: unknown_field"),
        Fault(#"{"token":"t","Token":"x"}"#, "/Token: unknown_field"),
        Fault(#"{"token":"t","a/b~c":null}"#, "/a~1b~0c: unknown_field"),
        Fault(#"{"token":"t","":1}"#, "/: unknown_field"),
        Fault(#"{"token":"t","notification":{"sounds":"x"}}"#, "/notification/sounds: unknown_field"),
        Fault(#"{"nope":1}"#, "/nope: unknown_field", ": invalid_target"),
        Fault(
            #"{"token":"t","ttl":"x","nope":1,"dry_run":0}"#,
            "/ttl: invalid_field",
            "/nope: unknown_field",
            "/dry_run: invalid_field"
        ),
    ]

    @Test(
        "Every fault is listed with its pointer, and the problem has the first fault's code",
        arguments: [
            mistypedTexts, mistypedTargets, mistypedFlags, badNumbers, lists, targets, payloads, notificationTexts,
            platforms, unknownFields,
        ]
    )
    func faults(table: [Fault]) async throws {
        try await TestGateway.run { gateway, key in
            for fault in table {
                let answer = await gateway.send(fault.body, key: key)
                #expect(answer.status == 422, "\(fault.testDescription)")
                #expect(try answer.faults() == fault.faults, "\(fault.testDescription)")
                let problem = try answer.problem()
                let first = fault.faults.first?.split(separator: " ").last.map(String.init)
                #expect(problem["code"]?.text == first, "\(fault.testDescription)")
                #expect(problem["detail"] == problem["errors"]?[0]?["detail"], "\(fault.testDescription)")
                #expect(problem["retryable"] == false)
                #expect(problem["action"] == "fix_request")
                #expect(
                    problem.keys
                        == ["type", "title", "status", "code", "detail", "retryable", "action", "errors"]
                )
                for error in problem["errors"]?.elements ?? [] {
                    #expect(error.keys == ["pointer", "code", "detail"])
                    #expect(error["detail"]?.text?.isEmpty == false)
                }
            }
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test(
        "An unknown field gets a suggestion only if its name is close to a known field",
        arguments: [
            (#"{"tokn":"t"}"#, "; did you mean token?"), (#"{"Topic":"t"}"#, "; did you mean topic?"),
            (#"{"notification":{"titel":"t"},"token":"t"}"#, "; did you mean title?"),
            (#"{"notification":{"bagde":1},"token":"t"}"#, "; did you mean badge?"),
            (#"{"collapseKey":"t","token":"t"}"#, "; did you mean collapse_key?"),
            (#"{"to":"t"}"#, ""), (#"{"registration_ids":["t"]}"#, ""), (#"{"":1}"#, ""), (#"{"tökn":1}"#, ""),
        ]
    )
    func suggestions(body: String, hint: String) async throws {
        try await TestGateway.run { gateway, key in
            let problem = try await gateway.send(body, key: key).problem()
            #expect(problem["detail"]?.text == "This field is not known here\(hint)")
        }
    }

    @Test("No more than 20 faults are listed")
    func manyFaults() async throws {
        try await TestGateway.run { gateway, key async throws in
            let fields = (0..<50).map { #""f\#($0)":1"# }.joined(separator: ",")
            for (body, parent) in [("{\(fields)}", ""), (#"{"a":1,"android":{\#(fields)}}"#, "/android")] {
                let answer = await gateway.send(body, key: key)
                #expect(answer.status == 422)
                let expected = (parent.isEmpty ? [] : ["/a"]) + (0..<50).map { "\(parent)/f\($0)" }
                #expect(try answer.faults() == expected.prefix(20).map { "\($0): unknown_field" })
            }
        }
    }

    @Test(
        "A message at the limits of the rules is sent",
        arguments: [
            #"{"token":"\#(String(repeating: "x", count: 4_096))"}"#,
            #"{"tokens":["a"]}"#,
            #"{"tokens":["a","a"]}"#,
            SendBodyTests.list("tokens", count: 1_000),
            #"{"token":"topics/news"}"#,
            #"{"topic":"\#(String(repeating: "x", count: 900))"}"#,
            #"{"topic":"a-_.~%B2"}"#,
            #"{"condition":"\"a\" IN TOPICS"}"#,
            #"{"token":"t","ttl":0}"#, #"{"token":"t","ttl":2419200}"#, #"{"token":"t","ttl":6e1}"#,
            #"{"token":"t","notification":{}}"#, #"{"token":"t","data":{}}"#,
            #"{"token":"t","notification":{"badge":0}}"#,
            #"{"token":"t","data":{"Google":"a","fromage":"b","xgcm":"c"}}"#,
            " \r\n\t{ \"token\" : \"t\" } \n",
        ]
    )
    func accepted(body: String) async throws {
        try await TestGateway.run { gateway, key in
            #expect(await gateway.send(body, key: key).status == 200)
            #expect(gateway.upstream.calls.count == 1)
        }
    }

    @Test(
        "A payload over its target's limit is refused; one at the limit is sent",
        arguments: [
            (#""token":"t""#, 4_096), (#""tokens":["t","u"]"#, 4_096), (#""topic":"t""#, 2_048),
            (#""condition":"'t' in topics""#, 2_048),
        ]
    )
    func payloadSize(target: String, limit: Int) async throws {
        try await TestGateway.run { gateway, key in
            func body(_ bytes: Int) -> String {
                #"{\#(target),"data":{"k":"\#(String(repeating: "x", count: bytes - 1))"}}"#
            }
            #expect(await gateway.send(body(limit), key: key).status == 200)
            let problem = try await gateway.send(body(limit + 1), key: key).expectProblem(422, "message_too_big")
            #expect(problem["action"] == "shrink_payload")
            #expect(problem["retryable"] == false)
            #expect(problem["detail"]?.text?.contains(String(limit + 1)) == true)
            #expect(problem["detail"]?.text?.contains("at most \(limit)") == true)
            #expect(gateway.upstream.calls.count == 1)
        }
    }

    @Test("The blocks for platforms have at most 16 KiB of JSON together")
    func platformSize() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            func body(_ bytes: Int) -> String {
                let rest = #"{"apns":{"payload":{"k":""}}}"#.utf8.count
                return #"{"token":"t","apns":{"payload":{"k":"\#(String(repeating: "x", count: bytes - rest))"}}}"#
            }
            #expect(await gateway.send(body(16_384), key: key).status == 200)
            let answer = await gateway.send(body(16_385), key: key)
            try answer.expectProblem(422, "message_too_big")
        }
    }

    @Test("A legacy tenant's message may have blocks that agree with its fields, and is refused for others")
    func legacyPlatforms() async throws {
        try await TestGateway.run { gateway, key in
            let agreeing = #"{"token":"t","ttl":60,"android":{"ttl":"60s","priority":"high"}}"#
            #expect(await gateway.send(agreeing, key: key).status == 200)
            let message = try #require(gateway.upstream.calls.first?.command.message)
            #expect(message.platforms == nil && message.timeToLive == 60 && message.priority == .high)
            let other = await gateway.send(#"{"token":"t","ttl":60,"android":{"ttl":"61s"}}"#, key: key)
            #expect(try other.faults() == ["/android/ttl: invalid_field"])
            #expect(gateway.upstream.calls.count == 1)
        }
    }

    static func list(_ field: String, count: Int) -> String {
        let entries = (0..<count).map { #""token-\#($0)""# }.joined(separator: ",")
        return #"{"\#(field)":[\#(entries)]}"#
    }
}
