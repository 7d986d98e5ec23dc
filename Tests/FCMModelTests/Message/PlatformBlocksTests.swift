import NIOCore
import StrictJSON
import Testing

@testable import FCMModel

@Suite("PlatformBlocks")
struct PlatformBlocksTests {
    /// Every field of HTTP v1's blocks with a value.
    static let everyField = #"""
        {"android": {"collapse_key": "c", "priority": "HIGH", "ttl": "3.5s", "restricted_package_name": "p",
          "data": {"k": "v", "e": ""}, "direct_boot_ok": true, "bandwidth_constrained_ok": false,
          "restricted_satellite_ok": true, "fcm_options": {"analytics_label": "-_.~%"},
          "notification": {"title": "t", "body": "b", "icon": "i", "color": "#09afAF", "sound": "s", "tag": "g",
           "click_action": "A", "body_loc_key": "k", "body_loc_args": ["a"], "title_loc_key": "k", "title_loc_args": [],
           "channel_id": "c", "image": "i", "ticker": "t", "sticky": true, "event_time": "2014-10-02T15:01:23Z",
           "local_only": true, "notification_priority": "PRIORITY_MAX", "default_sound": true,
           "default_vibrate_timings": false, "default_light_settings": true, "vibrate_timings": ["1s", "0.5s"],
           "visibility": "SECRET", "notification_count": 3, "proxy": "IF_PRIORITY_LOWERED",
           "light_settings": {"color": {"red": 0.1, "green": 1, "blue": 0, "alpha": 1e-1},
            "light_on_duration": "1s", "light_off_duration": "2.000000001s"}}},
         "apns": {"headers": {"apns-priority": "10", "apns-collapse-id": "c"}, "live_activity_token": "l",
          "payload": {"aps": {"alert": {"title": "t"}, "badge": 1.0}, "custom": [null, {"a": 1e400}]},
          "fcm_options": {"analytics_label": "l", "image": "i"}},
         "webpush": {"headers": {"TTL": "1"}, "data": {"k": "v"}, "notification": {"actions": [{}]},
          "fcm_options": {"link": "HTTPS://x", "analytics_label": "l"}},
         "fcm_options": {"analytics_label": "l"}}
        """#

    private static func value(_ json: String) throws -> JSONValue {
        try JSONDocument(parsing: ByteBuffer(string: json)).root
    }

    private static func blocks(_ json: String) throws -> PlatformBlocks {
        let blocks =
            try Self.value(json).members.map { members in members.map { (name: $0.key, value: $0.value) } } ?? []
        for block in blocks {
            #expect(PlatformBlocks.problems(of: block.value, in: block.name, atMost: 20) == [], "\(json)")
        }
        return try #require(PlatformBlocks(blocks))
    }

    /// The members of an object that hold something, each as an object with that member alone.
    private static func leaves(of value: JSONValue, _ schema: V1Schema, _ wrap: @escaping (String) -> String)
        -> [String]
    {
        (value.members.map(Array.init) ?? [])
            .flatMap { member -> [String] in
                let wrapped = { (value: String) in wrap(#"{"\#(member.key)":\#(value)}"#) }
                guard case .message(let inner)? = schema[member.key]?.kind else {
                    return [wrapped(member.value.canonicalText)]
                }
                return Self.leaves(of: member.value, inner, wrapped)
            }
    }

    private static func missing(in value: JSONValue?, _ schema: V1Schema) -> [String] {
        schema.names.flatMap { name -> [String] in
            guard let field = value?[name] else { return [name] }
            guard case .message(let inner)? = schema[name]?.kind else { return [] }
            return Self.missing(in: field, inner).map { "\(name).\($0)" }
        }
    }

    @Test("Each field of HTTP v1 reaches the body of the call as it was given, alone and with all others")
    func everyFieldArrives() throws {
        let all = try Self.value(Self.everyField)
        let common = ["condition", "data", "fid", "name", "notification", "token", "topic"]
        #expect(Self.missing(in: all, .message) == common)
        let leaves = Self.leaves(of: all, .message) { $0 }
        #expect(leaves.count == 51)
        for json in leaves + [Self.everyField] {
            var message = Message()
            message.platforms = try Self.blocks(json)
            let body = V1Calls(message, to: .token("t"), now: 0).body(at: 0)
            let sent = try V1RequestDecoder.decode(body)
            #expect(
                try JSONDocument(parsing: #require(sent.message.passThrough)).root.canonicalText
                    == Self.value(json).canonicalText
            )
        }
    }

    @Test(
        "Blocks are a merge patch of the members that the other fields become",
        arguments: [
            ("{}", #"{"android":{"ttl":"60s"}}"#, #"{"android":{"ttl":"60s"}}"#),
            // Either spelling, also inside.
            (
                #"{"android":{"ttl":"600s","collapse_key":"a"},"webpush":{"headers":{"TTL":"600"}}}"#,
                #"{"android":{"collapseKey":"b","notification":{"lightSettings":{"lightOnDuration":"1s"}}}}"#,
                #"{"android":{"collapse_key":"b","notification":{"light_settings":{"light_on_duration":"1s"}},"ttl":"600s"},"webpush":{"headers":{"TTL":"600"}}}"#
            ),
            // `null` removes a member of a message and of a structure, and makes none.
            (
                #"{"android":{"ttl":"600s"},"apns":{"payload":{"aps":{"badge":1,"sound":"s"}}}}"#,
                #"{"android":null,"apns":{"payload":{"aps":{"badge":null,"category":null},"a":{"b":null}}},"webpush":null}"#,
                #"{"apns":{"payload":{"a":{},"aps":{"sound":"s"}}}}"#
            ),
            // Lists and texts are replaced, and an object replaces what is none.
            (
                #"{"apns":{"payload":{"aps":{"alert":{"title":"t","loc-args":["1","2"]}}}}}"#,
                #"{"apns":{"payload":{"aps":{"alert":{"loc-args":[null]}}}}}"#,
                #"{"apns":{"payload":{"aps":{"alert":{"loc-args":[null],"title":"t"}}}}}"#
            ),
            (
                #"{"apns":{"payload":{"aps":{"sound":"s"}}}}"#,
                #"{"apns":{"payload":{"aps":{"sound":{"name":"x","critical":null}}}}}"#,
                #"{"apns":{"payload":{"aps":{"sound":{"name":"x"}}}}}"#
            ),
            // Names of headers have no letter case, and other names have.
            (
                #"{"apns":{"headers":{"apns-priority":"5"}},"webpush":{"headers":{"TTL":"1","Urgency":"high"}}}"#,
                #"{"apns":{"headers":{"Apns-Priority":"10"}},"webpush":{"headers":{"ttl":"2","urgency":null}}}"#,
                #"{"apns":{"headers":{"Apns-Priority":"10"}},"webpush":{"headers":{"ttl":"2"}}}"#
            ),
            (
                #"{"apns":{"payload":{"headers":{"a":"1"},"aps":{"badge":1}}}}"#,
                #"{"apns":{"payload":{"headers":{"A":"2"},"APS":{"badge":2}}}}"#,
                #"{"apns":{"payload":{"APS":{"badge":2},"aps":{"badge":1},"headers":{"A":"2","a":"1"}}}}"#
            ),
        ]
    )
    func patched(members: String, blocks: String, result: String) throws {
        let patched = try Self.blocks(blocks).applied(to: ByteBuffer(string: members))
        #expect(try JSONDocument(parsing: patched).root.canonicalText == result)
    }

    @Test("Blocks are applied to the translated fields, whose data they leave alone")
    func overTheFields() throws {
        var message = Message()
        message.timeToLive = 600
        message.data = [DataEntry(key: "android", value: "x"), DataEntry(key: "headers", value: "y")]
        message.platforms = try Self.blocks(
            #"{"android":{"ttl":"60s","data":{"HEADERS":"z"}},"fcm_options":{"analytics_label":"l"}}"#
        )
        let body = V1Calls(message, to: .topic(try #require(TopicName("news"))), now: 1_000).body(at: 0)
        #expect(
            String(buffer: body)
                == #"{"message":{"topic":"news","data":{"android":"x","headers":"y"},"#
                + #""apns":{"headers":{"apns-expiration":"1600"}},"webpush":{"headers":{"TTL":"600"}},"#
                + #""android":{"ttl":"60s","data":{"HEADERS":"z"}},"fcm_options":{"analytics_label":"l"}}}"#
        )
    }

    @Test(
        "A problem is reported with its pointer and its code",
        arguments: [
            ("android", "5", ["/android: invalid_field"]),
            (
                "android", #"{"ttl":60,"priority":"urgent","x":1}"#,
                [
                    "/android/ttl: invalid_field", "/android/x: unknown_field", "/android/priority: invalid_field",
                ]
            ),
            ("android", #"{"collapse_key":"a","collapseKey":"b"}"#, ["/android/collapse_key: duplicate_key"]),
            ("android", #"{"ttl":"2419201s"}"#, ["/android/ttl: invalid_field"]),
            (
                "android",
                #"{"notification":{"light_settings":{"color":{"red":1.1,"green":-1e99,"blue":"1","alpha":0}}}}"#,
                [
                    "/android/notification/light_settings/color/blue: invalid_field",
                    "/android/notification/light_settings/color/red: invalid_field",
                    "/android/notification/light_settings/color/green: invalid_field",
                ]
            ),
            ("android", #"{"data":{"a.b/c":1,"d":null}}"#, ["/android/data/a.b~1c: invalid_field"]),
            (
                "android",
                #"{"notification":{"color":"red","vibrate_timings":["1"],"body_loc_args":[1],"sticky":"yes"}}"#,
                [
                    "/android/notification/body_loc_args: invalid_field", "/android/notification/sticky: invalid_field",
                    "/android/notification/color: invalid_field",
                    "/android/notification/vibrate_timings: invalid_field",
                ]
            ),
            (
                "apns", #"{"payload":[],"headers":{"apns-collapse-id":"\#(String(repeating: "x", count: 65))"}}"#,
                [
                    "/apns/payload: invalid_field", "/apns/headers/apns-collapse-id: invalid_field",
                ]
            ),
            ("webpush", #"{"fcm_options":{"link":"http://x"}}"#, ["/webpush/fcm_options/link: invalid_field"]),
            (
                "fcm_options", #"{"analytics_label":"\#(String(repeating: "x", count: 51))"}"#,
                [
                    "/fcm_options/analytics_label: invalid_field"
                ]
            ),
            (
                "fcm_options", #"{"analytics_label":"a b","image":"i"}"#,
                [
                    "/fcm_options/image: unknown_field", "/fcm_options/analytics_label: invalid_field",
                ]
            ),
        ]
    )
    func problems(name: String, json: String, expected: [String]) throws {
        let problems = PlatformBlocks.problems(of: try Self.value(json), in: name, atMost: 20)
        #expect(problems.map { "\($0.path): \($0.code.rawValue)" } == expected)
        #expect(PlatformBlocks.problems(of: try Self.value(json), in: name, atMost: 1).count == 1)
    }

    @Test("The data of one platform counts as payload if it is larger than the common data")
    func payloadBytes() throws {
        var message = Message()
        message.notification = Notification()
        message.notification?[.title] = "12345"
        message.data = [DataEntry(key: "a", value: "bc")]
        message.platforms = try Self.blocks(#"{"android":{"data":{"k":"v"}},"webpush":{"data":{"long":"value"}}}"#)
        #expect(message.payloadBytes == "title12345".utf8.count + "longvalue".utf8.count)
    }

    @Test("Urgency and a collapse key are seen in a block too")
    func options() throws {
        func message(_ json: String) throws -> Message {
            var message = Message()
            message.platforms = try Self.blocks(json)
            return message
        }
        #expect(try message(#"{"android":{"priority":"high"}}"#).isUrgent)
        #expect(try message(#"{"apns":{"headers":{"apns-priority":"10"}}}"#).isUrgent)
        #expect(try !message(#"{"android":{"priority":"NORMAL","collapse_key":""}}"#).isUrgent)
        #expect(try message(#"{"android":{"collapseKey":"c"}}"#).isCollapsible)
        #expect(try !message(#"{"android":{"collapse_key":""}}"#).isCollapsible)
    }

    // MARK: The legacy protocol

    @Test("A block that agrees with the other fields becomes a legacy message")
    func legacy() throws {
        var message = Message()
        message.priority = .high
        message.notification = Notification()
        message.notification?[.title] = "t"
        message.dryRun = true
        message.platforms = try Self.blocks(
            #"""
            {"android": {"priority": "high", "ttl": "60s", "notification": {"title": "t", "icon": "i"}},
             "apns": {"headers": {"apns-expiration": "1060", "apns-priority": "10"}, "payload": {"aps": {"badge": 2}}},
             "webpush": {"headers": {"TTL": "60"}}}
            """#
        )
        let legacy = try message.withoutPlatforms(now: 1_000)
        let body = try LegacyRequestEncoder.encode(legacy, to: .token("d"))
        #expect(
            try JSONDocument(parsing: body).root.canonicalText
                == #"{"dry_run":true,"notification":{"badge":"2","icon":"i","title":"t"},"priority":"high","time_to_live":60,"to":"d"}"#
        )
    }

    @Test(
        "The first field that legacy can't express is refused",
        arguments: [
            (#"{"fcm_options":{"analytics_label":"l"}}"#, "/fcm_options"),
            (#"{"android":{"direct_boot_ok":true}}"#, "/android/direct_boot_ok"),
            (#"{"android":{"data":{"k":"v"}}}"#, "/android/data"),
            (#"{"android":{"ttl":"61s"}}"#, "/android/ttl"),
            (#"{"android":{"ttl":null}}"#, "/android/ttl"), (#"{"webpush":null}"#, "/webpush"),
            (#"{"apns":{"payload":{"com.example.a/b":1}}}"#, "/apns/payload/com.example.a~1b"),
            (#"{"apns":{"headers":{"apns-priority":"5"}}}"#, "/apns/headers/apns-priority"),
            (#"{"apns":{"headers":{"apns-push-type":"background"}}}"#, "/apns/headers/apns-push-type"),
            (#"{"webpush":{"notification":{"icon":"j"}}}"#, "/webpush/notification/icon"),
        ]
    )
    func notLegacy(blocks: String, pointer: String) throws {
        var message = Message()
        message.timeToLive = 60
        message.priority = .high
        message.notification = Notification()
        message.notification?[.icon] = "i"
        message.platforms = try Self.blocks(blocks)
        #expect(throws: LegacyRequestEncoder.Inexpressible.passThrough) {
            try LegacyRequestEncoder.encode(message, to: .token("d"))
        }
        let refusal = #expect(throws: Refusal.self) { try message.withoutPlatforms(now: 1_000) }
        #expect(refusal?.fields.map(\.path) == [pointer])
        #expect(refusal?.code == .invalidField)
        #expect(refusal?.detail?.contains("legacy protocol") == true)
    }
}
