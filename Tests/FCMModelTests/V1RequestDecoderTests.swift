import FCMModel
import NIOCore
import Testing

@Suite("V1RequestDecoder")
struct V1RequestDecoderTests {
    /// A message with every field that the protocol page knows.
    private static let full = #"""
        {"validate_only": true, "message": {"name": "n", "token": "t", "data": {"k": "v", "e": ""},
         "notification": {"title": "t", "body": "b", "image": "https://i"}, "fcm_options": {"analytics_label": "-_.~%"},
         "android": {"collapse_key": "c", "priority": "high", "ttl": "3.5s", "restricted_package_name": "p",
          "data": {"k": "v"}, "direct_boot_ok": true, "bandwidth_constrained_ok": false,
          "restricted_satellite_ok": true,
          "fcm_options": {"analytics_label": "l"},
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
          "fcm_options": {"link": "HTTPS://x", "analytics_label": "l"}}}}
        """#

    @Test("Every field of the protocol is accepted")
    func everyField() throws {
        let request = try Self.decode(Self.full)
        #expect(request.target == .token("t"))
        #expect(request.message.dryRun)
        #expect(request.message.collapseKey == "c")
        #expect(request.message.priority == .high)
        #expect(request.message.timeToLive == 3)
        // Common texts and data; the platforms' data are no larger.
        #expect(request.payloadBytes == "titlet".count + "bodyb".count + "imagehttps://i".count + "kve".count)
    }

    @Test("Both spellings of names are understood, and forwarded as they were written")
    func spellings() throws {
        let request = try Self.decode(
            #"""
            {"validateOnly": true, "message": {"token": "t", "fcmOptions": {"analyticsLabel": "l"},
             "android": {"collapseKey": "c", "restrictedPackageName": "p", "directBootOk": true,
              "notification": {"bodyLocArgs": ["a"], "lightSettings": {"lightOnDuration": "1s"}}},
             "apns": {"fcmOptions": {"image": "i"}, "liveActivityToken": "l"}}}
            """#
        )
        #expect(request.message.dryRun)
        #expect(request.message.collapseKey == "c")
        let body = String(buffer: V1BodyTemplate(request.message, now: 0).body(for: .token("t")))
        let expected =
            #"{"validate_only":true,"message":{"token":"t","fcmOptions":{"analyticsLabel":"l"},"#
            + #""android":{"collapseKey":"c","restrictedPackageName":"p","directBootOk":true,"#
            + #""notification":{"bodyLocArgs":["a"],"lightSettings":{"lightOnDuration":"1s"}}},"#
            + #""apns":{"fcmOptions":{"image":"i"},"liveActivityToken":"l"}}}"#
        #expect(body == expected)
    }

    @Test("A message is forwarded with nothing added, nothing dropped and no number touched")
    func forwarding() throws {
        let request = try Self.decode(Self.full)
        let body = V1BodyTemplate(request.message, now: 0).body(for: .token("t"))
        #expect(try VectorJSON(parsing: Self.full).mismatches(in: VectorJSON(parsing: body)) == [])
        #expect(String(buffer: body).contains(#"[null,{"a":1e400}]"#))
        #expect(String(buffer: body).contains(#""badge":1.0"#))
    }

    @Test("A condition is forwarded in canonical form, by the v1 profile")
    func conditions() throws {
        let request = try Self.decode(
            #"{"message": {"condition": "\"a\" IN topics&&!( 'b' in topics )", "data": {"a": "b"}}}"#
        )
        guard case .condition(let condition) = request.target else {
            Issue.record("no condition: \(request.target)")
            return
        }
        let body = V1BodyTemplate(request.message, now: 0).body(for: .condition(condition))
        let expected = #"{"message":{"condition":"'a' in topics && !('b' in topics)","data":{"a":"b"}}}"#
        #expect(String(buffer: body) == expected)
    }

    @Test(
        "Every target has its place",
        arguments: [
            (#""token": "t""#, .token("t")), (#""fid": "f", "token": null"#, .installation("f")),
            (#""token": "/topics/x""#, .token("/topics/x")),
        ] as [(String, Target)]
    )
    func targets(members: String, target: Target) throws {
        #expect(try Self.decode(#"{"message": {\#(members)}}"#).target == target)
    }

    private static let frontEndRefusals: [(String, String, OutcomeCode)] = [
        ("", "", .malformedJSON), ("{", "", .malformedJSON), ("<html>", "", .malformedJSON),
        ("[]", "", .invalidField), ("1", "", .invalidField),
        (#"{"message": {"token": "a", "token": "b"}}"#, "message.token", .duplicateKey),
        (#"{"x": 1}"#, "x", .unknownField), (#"{"message": []}"#, "message", .invalidField),
        (#"{"validate_only": "true"}"#, "validate_only", .invalidField),
        (#"{"message": {"to": "x"}}"#, "message.to", .unknownField),
        (#"{"message": {"token": 1}}"#, "message.token", .invalidField),
        (#"{"message": {"token": "t", "data": {"a": 12}}}"#, "message.data.a", .invalidField),
        (#"{"message": {"token": "t", "data": []}}"#, "message.data", .invalidField),
        (#"{"message": {"android": {"ttl": 60}}}"#, "message.android.ttl", .invalidField),
        (#"{"message": {"android": {"x": null}}}"#, "message.android.x", .unknownField),
        (
            #"{"message": {"android": {"collapse_key": "a", "collapseKey": "a"}}}"#, "message.android.collapse_key",
            .duplicateKey
        ),
        (
            #"{"message": {"android": {"notification": {"sticky": 1}}}}"#, "message.android.notification.sticky",
            .invalidField
        ),
        (
            #"{"message": {"android": {"notification": {"notificationCount": 1.5}}}}"#,
            "message.android.notification.notification_count", .invalidField
        ),
        (
            #"{"message": {"android": {"notification": {"title_loc_args": ["a", 1]}}}}"#,
            "message.android.notification.title_loc_args", .invalidField
        ),
        (#"{"message": {"apns": {"payload": "x"}}}"#, "message.apns.payload", .invalidField),
        (
            #"{"message": {"apns": {"headers": {"apns-priority": 5}}}}"#, "message.apns.headers.apns-priority",
            .invalidField
        ),
        (
            #"{"message": {"webpush": {"fcm_options": {"image": "i"}}}}"#, "message.webpush.fcm_options.image",
            .unknownField
        ),
        // Names and types of everything come before values.
        (#"{"message": {"token": "t", "android": {"priority": "urgent"}, "x": 1}}"#, "message.x", .unknownField),
    ]

    @Test(
        "What Google's front end refuses is refused without an FcmError, by its path",
        arguments: Self.frontEndRefusals
    )
    func frontEnd(body: String, field: String, code: OutcomeCode) throws {
        try Self.expect(body, isRefusedBy: .frontEnd, at: field, as: code)
    }

    private static let serviceRefusals: [(String, String, OutcomeCode)] = [
        ("{}", "message", .invalidTarget), (#"{"message": null}"#, "message", .invalidTarget),
        (#"{"message": {}}"#, "message", .invalidTarget),
        (#"{"message": {"token": ""}}"#, "message", .invalidTarget),
        (#"{"message": {"token": "t", "topic": "n"}}"#, "message.topic", .invalidTarget),
        (#"{"message": {"topic": "/topics/n"}}"#, "message.topic", .invalidTarget),
        (#"{"message": {"condition": "'a' in topics &&"}}"#, "message.condition", .invalidTarget),
        (
            #"{"message": {"token": "t", "android": {"priority": "urgent"}}}"#, "message.android.priority",
            .invalidField
        ),
        (#"{"message": {"token": "t", "android": {"ttl": "60"}}}"#, "message.android.ttl", .invalidField),
        (#"{"message": {"token": "t", "android": {"ttl": "-1s"}}}"#, "message.android.ttl", .invalidField),
        (#"{"message": {"token": "t", "android": {"ttl": "2419200.5s"}}}"#, "message.android.ttl", .invalidField),
        (
            #"{"message": {"token": "t", "android": {"ttl": "99999999999999999999s"}}}"#, "message.android.ttl",
            .invalidField
        ),
        (#"{"message": {"token": "t", "android": {"ttl": "1.s"}}}"#, "message.android.ttl", .invalidField),
        (
            #"{"message": {"token": "t", "android": {"notification": {"color": "red"}}}}"#,
            "message.android.notification.color", .invalidField
        ),
        (
            #"{"message": {"token": "t", "android": {"notification": {"visibility": "secret"}}}}"#,
            "message.android.notification.visibility", .invalidField
        ),
        (
            #"{"message": {"token": "t", "android": {"notification": {"vibrate_timings": ["1s", "x"]}}}}"#,
            "message.android.notification.vibrate_timings", .invalidField
        ),
        (
            #"{"message": {"token": "t", "fcm_options": {"analytics_label": "a b"}}}"#,
            "message.fcm_options.analytics_label", .invalidField
        ),
        (
            #"{"message": {"token": "t", "webpush": {"fcm_options": {"link": "http://x"}}}}"#,
            "message.webpush.fcm_options.link", .invalidField
        ),
        (#"{"message": {"token": "t", "data": {"from": "x"}}}"#, "message.data", .invalidDataKey),
        (#"{"message": {"token": "t", "data": {"message_type": "x"}}}"#, "message.data", .invalidDataKey),
        (#"{"message": {"token": "t", "data": {"google.x": "x"}}}"#, "message.data", .invalidDataKey),
        (#"{"message": {"token": "t", "data": {"gcm.notification.x": "x"}}}"#, "message.data", .invalidDataKey),
        (#"{"message": {"token": "t", "data": {"": "x"}}}"#, "message.data", .invalidDataKey),
    ]

    @Test("What FCM refuses is refused with an FcmError, by its path", arguments: Self.serviceRefusals)
    func service(body: String, field: String, code: OutcomeCode) throws {
        try Self.expect(body, isRefusedBy: .service, at: field, as: code)
    }

    @Test("Six topics are too many for a condition, five are not")
    func topicsPerCondition() throws {
        func body(_ count: Int) -> String {
            let condition = Array(repeating: "'a' in topics", count: count).joined(separator: " || ")
            return #"{"message": {"condition": "\#(condition)"}}"#
        }
        #expect(try Self.decode(body(5)).target.kind == .condition)
        try Self.expect(body(6), isRefusedBy: .service, at: "message.condition", as: .invalidTarget)
    }

    @Test("Words that only start like reserved ones are data in v1")
    func freeKeys() throws {
        let request = try Self.decode(#"{"message": {"token": "t", "data": {"google": "", "gcm.x": "", "gcm": ""}}}"#)
        #expect(throws: Refusal.self) { try request.legacyRequest(now: 0) }
    }

    @Test("A collapse id for Apple has at most 64 bytes")
    func collapseIDs() throws {
        func body(_ id: String) -> String {
            #"{"message": {"token": "t", "apns": {"headers": {"apns-collapse-id": "\#(id)"}}}}"#
        }
        let fits = String(repeating: "é", count: 32)
        #expect(try Self.decode(body(fits)).message.collapseKey == fits)
        let field = "message.apns.headers.apns-collapse-id"
        try Self.expect(body(fits + "x"), isRefusedBy: .service, at: field, as: .invalidField)
    }

    @Test("The payload is measured by keys and values, with the largest data of all platforms")
    func size() throws {
        func body(_ target: String, _ path: String, _ bytes: Int) -> String {
            let value = String(repeating: "a", count: bytes - 1)
            let data = #""data": {"k": "\#(value)"}"#
            return #"{"message": {\#(target), \#(path.isEmpty ? data : #""\#(path)": {\#(data)}"#)}}"#
        }
        for path in ["", "android", "webpush"] {
            #expect(try Self.decode(body(#""token": "t""#, path, 4_096)).payloadBytes == 4_096)
            let large = body(#""token": "t""#, path, 4_097)
            try Self.expect(large, isRefusedBy: .service, at: "message", as: .messageTooBig)
            let topic = body(#""topic": "n""#, path, 2_049)
            try Self.expect(topic, isRefusedBy: .service, at: "message", as: .messageTooBig)
        }
    }

    @Test("A refused name is told, but not whole where it may be payload")
    func longNames() throws {
        let name = String(repeating: "x", count: 500)
        do {
            _ = try Self.decode(#"{"message": {"\#(name)": 1}}"#)
            Issue.record("accepted")
        } catch let refusal as Refusal {
            #expect((refusal.fields.first?.path.count ?? 0) < 100)
        }
    }

    @Test("What we encode, we accept, and forward byte for byte", arguments: SplitMix64.seeds)
    func ownBodies(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<20 {
            let (message, recipient) = try RandomMessage.forV1(using: &random)
            let body = V1BodyTemplate(message, now: 1_700_000_000).body(for: recipient)
            let request = try V1RequestDecoder.decode(body)
            #expect(request.message.dryRun == message.dryRun)
            #expect(V1BodyTemplate(request.message, now: 0).body(for: recipient) == body)
            #expect(request.payloadBytes <= message.payloadBytes)
        }
    }

    @Test("A broken body has an outcome like any other, and an answer", arguments: SplitMix64.seeds)
    func mutatedBodies(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var bodies = [ByteBuffer(string: Self.full)]
        for _ in 0..<10 {
            let (message, recipient) = try RandomMessage.forV1(using: &random)
            bodies.append(V1BodyTemplate(message, now: 1_700_000_000).body(for: recipient))
        }
        for _ in 0..<150 {
            let body = BodyMutator.mutate(random.pick(bodies), using: &random)
            do throws(Refusal) {
                let request = try V1RequestDecoder.decode(body)
                let again = V1Calls(request.message, to: request.target, now: 0).body(at: 0)
                #expect(try V1RequestDecoder.decode(again).target == request.target)
                let legacy = try request.legacyRequest(now: 1_700_000_000)
                #expect(legacy.payloadBytes <= legacy.target.maxPayloadBytes)
                #expect(legacy.message.data.allSatisfy { !ValueRules.isRefusedDataKey($0.key) })
            } catch {
                #expect(V1ReplyWriter.reply(to: error).status == 400)
                #expect(V1ReplyWriter.reply(to: error).body.readableBytes > 0)
            }
        }
    }

    private static func decode(_ text: String) throws -> V1SendRequest {
        try V1RequestDecoder.decode(ByteBuffer(string: text))
    }

    /// Who would refuse a request at Google's.
    private enum Layer {
        case frontEnd
        case service
    }

    /// Checks a refusal and the answer that tells of it.
    private static func expect(
        _ body: String,
        isRefusedBy layer: Layer,
        at field: String,
        as code: OutcomeCode
    ) throws {
        do {
            _ = try Self.decode(body)
            Issue.record("accepted: \(body)")
        } catch let refusal as Refusal {
            #expect(refusal.isSyntactic == (layer == .frontEnd))
            #expect(refusal.fields.first?.path == field)
            #expect(refusal.code == code)
            let reply = V1ReplyWriter.reply(to: refusal)
            let response = UpstreamResponse(status: reply.status, retryAfter: nil, body: reply.body)
            let reading = V1ResponseReader.read(response, for: .token, now: 0)
            #expect(reading.upstreamCode == (layer == .service ? "INVALID_ARGUMENT" : "400"))
            #expect(String(buffer: reply.body).contains(#""status":"INVALID_ARGUMENT""#))
            #expect(String(buffer: reply.body).contains("google.rpc.BadRequest"))
        }
    }
}
