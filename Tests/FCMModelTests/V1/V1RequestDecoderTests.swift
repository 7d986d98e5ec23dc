import FCMModel
import NIOCore
import Testing
import VectorTestKit

@Suite("V1RequestDecoder")
struct V1RequestDecoderTests {
    /// A message with every field of the protocol.
    private static let full =
        #"{"validate_only": true, "message": {"name": "n", "token": "t", "data": {"k": "v", "e": ""}, "#
        + #""notification": {"title": "t", "body": "b", "image": "https://i"}, "#
        + PlatformBlocksTests.everyField.dropFirst() + "}"

    @Test("Every field of the protocol is accepted")
    func everyField() throws {
        let request = try Self.decode(Self.full)
        #expect(request.target == .token("t"))
        #expect(request.message.dryRun)
        #expect(request.message.collapseKey == "c")
        #expect(request.message.priority == .high)
        #expect(request.message.timeToLive == 3)
        // Common texts and data; no platform's data is larger.
        #expect(request.payloadBytes == "titlet".count + "bodyb".count + "imagehttps://i".count + "kve".count)
    }

    @Test("Both spellings of names are read and forwarded unchanged")
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
        let body = String(buffer: V1Calls(request.message, to: request.target, now: 0).body(at: 0))
        let expected =
            #"{"validate_only":true,"message":{"token":"t","fcmOptions":{"analyticsLabel":"l"},"#
            + #""android":{"collapseKey":"c","restrictedPackageName":"p","directBootOk":true,"#
            + #""notification":{"bodyLocArgs":["a"],"lightSettings":{"lightOnDuration":"1s"}}},"#
            + #""apns":{"fcmOptions":{"image":"i"},"liveActivityToken":"l"}}}"#
        #expect(body == expected)
    }

    @Test("A message is forwarded with the same members and unchanged numbers")
    func forwarding() throws {
        let request = try Self.decode(Self.full)
        let body = V1Calls(request.message, to: request.target, now: 0).body(at: 0)
        #expect(try VectorJSON(parsing: Self.full).mismatches(in: VectorJSON(parsing: body)) == [])
        #expect(String(buffer: body).contains(#"[null,{"a":1e400}]"#))
        #expect(String(buffer: body).contains(#""badge":1.0"#))
    }

    @Test("A v1 condition is forwarded in canonical form")
    func conditions() throws {
        let request = try Self.decode(
            #"{"message": {"condition": "\"a\" IN topics&&!( 'b' in topics )", "data": {"a": "b"}}}"#
        )
        let body = V1Calls(request.message, to: request.target, now: 0).body(at: 0)
        let expected = #"{"message":{"condition":"'a' in topics && !('b' in topics)","data":{"a":"b"}}}"#
        #expect(String(buffer: body) == expected)
    }

    @Test(
        "A token or an installation id is read as the target",
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
        // Names and types are checked before values.
        (#"{"message": {"token": "t", "android": {"priority": "urgent"}, "x": 1}}"#, "message.x", .unknownField),
    ]

    /// Parts of a message for one platform.
    private static let platformRefusals: [(String, String, OutcomeCode)] = [
        (#""android": {"ttl": 60}"#, "android.ttl", .invalidField),
        (#""android": {"x": null}"#, "android.x", .unknownField),
        (#""android": {"collapse_key": "a", "collapseKey": "a"}"#, "android.collapse_key", .duplicateKey),
        (#""android": {"notification": {"sticky": 1}}"#, "android.notification.sticky", .invalidField),
        (
            #""android": {"notification": {"notificationCount": 1.5}}"#, "android.notification.notification_count",
            .invalidField
        ),
        (
            #""android": {"notification": {"title_loc_args": ["a", 1]}}"#, "android.notification.title_loc_args",
            .invalidField
        ),
        (#""apns": {"payload": "x"}"#, "apns.payload", .invalidField),
        (#""apns": {"headers": {"apns-priority": 5}}"#, "apns.headers.apns-priority", .invalidField),
        (#""webpush": {"fcm_options": {"image": "i"}}"#, "webpush.fcm_options.image", .unknownField),
    ]

    @Test(
        "Structural errors are refused without an FcmError and with their path",
        arguments: Self.frontEndRefusals
            + Self.platformRefusals.map { (#"{"message": {\#($0.0)}}"#, "message.\($0.1)", $0.2) }
    )
    func frontEnd(body: String, field: String, code: OutcomeCode) throws {
        try Self.expect(body, isRefusedBy: .frontEnd, at: field, as: code)
    }

    @Test(
        "An invalid target is refused with an FcmError and its path",
        arguments: [
            ("{}", "message"), (#"{"message": null}"#, "message"), (#"{"message": {}}"#, "message"),
            (#"{"message": {"token": ""}}"#, "message"),
            (#"{"message": {"token": "t", "topic": "n"}}"#, "message.topic"),
            (#"{"message": {"topic": "/topics/n"}}"#, "message.topic"),
            (#"{"message": {"condition": "'a' in topics &&"}}"#, "message.condition"),
        ]
    )
    func badTarget(body: String, field: String) throws {
        try Self.expect(body, isRefusedBy: .service, at: field, as: .invalidTarget)
    }

    @Test(
        "An invalid value is refused with an FcmError and its path",
        arguments: [
            (#""android": {"priority": "urgent"}"#, "android.priority"), (#""android": {"ttl": "60"}"#, "android.ttl"),
            (#""android": {"ttl": "-1s"}"#, "android.ttl"), (#""android": {"ttl": "2419200.5s"}"#, "android.ttl"),
            (#""android": {"ttl": "99999999999999999999s"}"#, "android.ttl"),
            (#""android": {"ttl": "1.s"}"#, "android.ttl"),
            (#""android": {"notification": {"color": "red"}}"#, "android.notification.color"),
            (#""android": {"notification": {"visibility": "secret"}}"#, "android.notification.visibility"),
            (#""android": {"notification": {"vibrate_timings": ["1s", "x"]}}"#, "android.notification.vibrate_timings"),
            (#""fcm_options": {"analytics_label": "a b"}"#, "fcm_options.analytics_label"),
            (#""webpush": {"fcm_options": {"link": "http://x"}}"#, "webpush.fcm_options.link"),
        ]
    )
    func badValue(members: String, field: String) throws {
        let body = #"{"message": {"token": "t", \#(members)}}"#
        try Self.expect(body, isRefusedBy: .service, at: "message.\(field)", as: .invalidField)
    }

    @Test(
        "FCM's reserved words are refused as data keys",
        arguments: ["from", "message_type", "google.x", "gcm.notification.x", ""]
    )
    func badDataKey(key: String) throws {
        let body = #"{"message": {"token": "t", "data": {"\#(key)": "x"}}}"#
        try Self.expect(body, isRefusedBy: .service, at: "message.data", as: .invalidDataKey)
    }

    @Test("A condition may have five topics but not six")
    func topicsPerCondition() throws {
        func body(_ count: Int) -> String {
            let condition = Array(repeating: "'a' in topics", count: count).joined(separator: " || ")
            return #"{"message": {"condition": "\#(condition)"}}"#
        }
        #expect(try Self.decode(body(5)).target.kind == .condition)
        try Self.expect(body(6), isRefusedBy: .service, at: "message.condition", as: .invalidTarget)
    }

    @Test("Keys that v1 allows and legacy reserves are refused in the translation only")
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

    @Test("The payload limit counts keys and values of common, Android and web data")
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

    @Test("A refusal shortens a long unknown name")
    func longNames() throws {
        let name = String(repeating: "x", count: 500)
        do {
            _ = try Self.decode(#"{"message": {"\#(name)": 1}}"#)
            Issue.record("accepted")
        } catch let refusal as Refusal {
            #expect((refusal.fields.first?.path.count ?? 0) < 100)
        }
    }

    private static func decode(_ text: String) throws -> V1SendRequest {
        try V1RequestDecoder.decode(ByteBuffer(string: text))
    }

    /// The part of Google's service that would refuse a request.
    private enum Layer {
        case frontEnd
        case service
    }

    /// Checks a refusal and its reply.
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
