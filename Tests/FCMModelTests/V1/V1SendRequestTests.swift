import FCMModel
import NIOCore
import Testing
import VectorTestKit

@Suite("V1SendRequest")
struct V1SendRequestTests {
    private static let now = 1_700_000_000

    /// Members of a v1 message, and the legacy request with the same meaning.
    private static let equivalents: [(String, String)] = [
        (#""token": "t", "data": {"k": "v", "e": ""}"#, #"{"to": "t", "data": {"k": "v", "e": ""}}"#),
        (#""topic": "n""#, #"{"to": "/topics/n"}"#),
        (#""condition": "\"a\" in topics""#, #"{"condition": "'a' in topics"}"#),
        (
            #""token": "t", "notification": {"title": "T", "body": "B", "image": "I"}"#,
            #"{"to": "t", "notification": {"title": "T", "body": "B", "image": "I"}}"#
        ),
        (
            #""token": "t", "android": {"collapseKey": "c", "priority": "high", "ttl": "60.000s"}"#,
            #"{"to": "t", "collapse_key": "c", "priority": "high", "time_to_live": 60}"#
        ),
        (
            #""token": "t", "android": {"restricted_package_name": "p"}"#,
            #"{"to": "t", "restricted_package_name": "p"}"#
        ),
        (
            #"""
            "token": "t", "android": {"notification": {"title": "T", "body": "B", "icon": "i", "sound": "s", "tag": "g",
             "color": "#010203", "click_action": "A", "channel_id": "c", "title_loc_key": "k", "title_loc_args": ["a"],
             "body_loc_key": "l", "body_loc_args": []}}
            """#,
            #"""
            {"to": "t", "notification": {"title": "T", "body": "B", "icon": "i", "sound": "s", "tag": "g",
             "color": "#010203", "click_action": "A", "android_channel_id": "c", "title_loc_key": "k",
             "title_loc_args": "[\"a\"]", "body_loc_key": "l"}}
            """#
        ),
        (
            #""token": "t", "apns": {"headers": {"apns-priority": "5", "apns-collapse-id": "c"}}"#,
            #"{"to": "t", "priority": "normal", "collapse_key": "c"}"#
        ),
        (#""token": "t", "apns": {"headers": {"apns-expiration": "0"}}"#, #"{"to": "t", "time_to_live": 0}"#),
        (#""token": "t", "apns": {"headers": {"apns-expiration": "1700000060"}}"#, #"{"to": "t", "time_to_live": 60}"#),
        (
            #"""
            "token": "t", "android": {"ttl": "60s"}, "apns": {"headers": {"apns-expiration": "1700000065"}},
             "webpush": {"headers": {"ttl": "60"}}
            """#,
            #"{"to": "t", "time_to_live": 60}"#
        ),
        (
            #"""
            "token": "t", "apns": {"payload": {"aps": {"badge": 0, "sound": "s", "category": "A",
             "content-available": 1, "mutable-content": 1.0,
             "alert": {"title": "T", "subtitle": "S", "body": "B", "loc-key": "l", "loc-args": ["a"],
              "title-loc-key": "k", "title-loc-args": ["b"]}}}}
            """#,
            #"""
            {"to": "t", "content_available": true, "mutable_content": true,
             "notification": {"badge": "0", "sound": "s", "click_action": "A", "title": "T", "subtitle": "S",
              "body": "B", "body_loc_key": "l", "body_loc_args": "[\"a\"]", "title_loc_key": "k",
              "title_loc_args": "[\"b\"]"}}
            """#
        ),
        (
            #"""
            "token": "t", "webpush": {"headers": {"TTL": "5", "Urgency": "high"},
             "notification": {"icon": "https://i"}, "fcm_options": {"link": "https://l"}}
            """#,
            #"""
            {"to": "t", "time_to_live": 5, "priority": "high",
             "notification": {"icon": "https://i", "click_action": "https://l"}}
            """#
        ),
        // A silent push in the form that `V1Calls` writes.
        (
            #"""
            "token": "t", "android": {"priority": "HIGH"},
             "apns": {"headers": {"apns-priority": "5", "apns-push-type": "background"},
              "payload": {"aps": {"content-available": 1}}}
            """#,
            #"{"to": "t", "content_available": true, "priority": "high"}"#
        ),
        // Empty and null values are ignored.
        (
            #"""
            "token": "t", "android": {"collapse_key": "", "notification": {}, "data": null}, "apns": {},
             "fcm_options": null, "notification": {"title": ""}, "data": {"k": null}
            """#,
            #"{"to": "t"}"#
        ),
    ]

    @Test("Members with a legacy equivalent are translated", arguments: Self.equivalents)
    func carried(members: String, expected: String) throws {
        let request = try Self.legacy(members)
        let body = try VectorJSON(parsing: LegacyRequestEncoder.encode(request.message, to: request.target))
        #expect(try VectorJSON(parsing: expected).mismatches(in: body) == [])
        // The legacy decoder accepts the result.
        let again = try LegacyRequestDecoder.decode(LegacyRequestEncoder.encode(request.message, to: request.target))
        #expect(again.message == request.message)
        #expect(again.payloadBytes == request.payloadBytes)
    }

    /// Members beside the token, and the path of the refused one in the message.
    private static let uncarried: [(String, String)] = [
        (#""name": "n""#, "name"),
        (#""fcmOptions": {}"#, "fcm_options"),
        (#""data": {"google": "x"}"#, "data"),
        (#""android": {"data": {}}"#, "android.data"),
        (#""android": {"direct_boot_ok": false}"#, "android.direct_boot_ok"),
        (#""android": {"ttl": "3.5s"}"#, "android.ttl"),
        (#""android": {"notification": {"ticker": "x"}}"#, "android.notification.ticker"),
        (#""android": {"notification": {"image": "x"}}"#, "android.notification.image"),
        (#""apns": {"live_activity_token": "x"}"#, "apns.live_activity_token"),
        (#""apns": {"headers": {"apns-topic": "x"}}"#, "apns.headers.apns-topic"),
        (#""apns": {"headers": {"apns-push-type": "alert"}}"#, "apns.headers.apns-push-type"),
        (#""apns": {"headers": {"apns-push-type": "background"}}"#, "apns.headers.apns-push-type"),
        (#""apns": {"headers": {"apns-priority": "1"}}"#, "apns.headers.apns-priority"),
        (
            #""apns": {"headers": {"apns-priority": "10"},"payload": {"aps": {"content-available": 1}}}"#,
            "apns.headers.apns-priority"
        ),
        (#""apns": {"headers": {"apns-expiration": "1600000000"}}"#, "apns.headers.apns-expiration"),
        (#""apns": {"headers": {"apns-expiration": "1702419206"}}"#, "apns.headers.apns-expiration"),
        (#""apns": {"headers": {"apns-expiration": "x"}}"#, "apns.headers.apns-expiration"),
        (#""apns": {"payload": {"custom": 1}}"#, "apns.payload.custom"),
        (#""apns": {"payload": {"aps": 1}}"#, "apns.payload.aps"),
        (#""apns": {"payload": {"aps": {"alert": "x"}}}"#, "apns.payload.aps.alert"),
        (#""apns": {"payload": {"aps": {"alert": {"launch-image": "x"}}}}"#, "apns.payload.aps.alert.launch-image"),
        (#""apns": {"payload": {"aps": {"badge": "3"}}}"#, "apns.payload.aps.badge"),
        (#""apns": {"payload": {"aps": {"sound": {}}}}"#, "apns.payload.aps.sound"),
        (#""apns": {"payload": {"aps": {"content-available": 0}}}"#, "apns.payload.aps.content-available"),
        (#""apns": {"payload": {"aps": {"thread-id": "x"}}}"#, "apns.payload.aps.thread-id"),
        (#""webpush": {"data": {}}"#, "webpush.data"),
        (#""webpush": {"headers": {"Topic": "x"}}"#, "webpush.headers.Topic"),
        (#""webpush": {"headers": {"Urgency": "low"}}"#, "webpush.headers.Urgency"),
        (#""webpush": {"headers": {"TTL": "2419201"}}"#, "webpush.headers.TTL"),
        (#""webpush": {"notification": {"title": "x"}}"#, "webpush.notification.title"),
        (#""webpush": {"fcm_options": {"analytics_label": "x"}}"#, "webpush.fcm_options.analytics_label"),
    ]

    @Test("Members without a legacy equivalent are refused with their path", arguments: Self.uncarried)
    func notCarried(members: String, field: String) throws {
        try Self.expect(#""token": "t", \#(members)"#, isRefusedAt: "message.\(field)")
    }

    @Test("Targets without a legacy equivalent are refused with their path")
    func notAddressed() throws {
        try Self.expect(#""fid": "f""#, isRefusedAt: "message.fid")
        try Self.expect(#""condition": "!('a' in topics)""#, isRefusedAt: "message.condition")
    }

    private static let contradictions: [(String, String)] = [
        (
            #""android": {"collapse_key": "a"}, "apns": {"headers": {"apns-collapse-id": "b"}}"#,
            "apns.headers.apns-collapse-id"
        ),
        (#""android": {"priority": "HIGH"}, "webpush": {"headers": {"Urgency": "normal"}}"#, "webpush.headers.Urgency"),
        (
            #""android": {"priority": "HIGH"}, "apns": {"headers": {"apns-priority": "5"}}"#,
            "apns.headers.apns-priority"
        ),
        (#""android": {"ttl": "60s"}, "webpush": {"headers": {"TTL": "61"}}"#, "webpush.headers.TTL"),
        (
            #""android": {"ttl": "60s"}, "apns": {"headers": {"apns-expiration": "1700000066"}}"#,
            "apns.headers.apns-expiration"
        ),
        (#""android": {"ttl": "60s"}, "apns": {"headers": {"apns-expiration": "0"}}"#, "apns.headers.apns-expiration"),
        (#""notification": {"title": "a"}, "android": {"notification": {"title": "b"}}"#, "android.notification.title"),
        (
            "\"notification\": {\"title\": \"\u{E9}\"}, \"android\": {\"notification\": {\"title\": \"e\u{301}\"}}",
            "android.notification.title"
        ),
        (
            #""android": {"notification": {"sound": "a"}}, "apns": {"payload": {"aps": {"sound": "b"}}}"#,
            "apns.payload.aps.sound"
        ),
        (
            #""android": {"notification": {"body_loc_args": ["a"]}}, "#
                + #""apns": {"payload": {"aps": {"alert": {"loc-args": ["b"]}}}}"#,
            "apns.payload.aps.alert.loc-args"
        ),
        (
            #""android": {"notification": {"click_action": "A"}}, "webpush": {"fcm_options": {"link": "https://l"}}"#,
            "webpush.fcm_options.link"
        ),
    ]

    @Test("Platforms that disagree are refused with the later one's path", arguments: Self.contradictions)
    func disagreements(members: String, field: String) throws {
        try Self.expect(#""token": "t", \#(members)"#, isRefusedAt: "message.\(field)")
    }

    @Test("The translated payload has the legacy limit")
    func size() throws {
        let text = String(repeating: "a", count: 4_090)
        let request = try Self.decode(#""token": "t", "android": {"notification": {"tag": "\#(text)"}}"#)
        #expect(request.payloadBytes == 0)
        #expect(try request.legacyRequest(now: Self.now).payloadBytes == 4_093)
        try Self.expect(#""token": "t", "android": {"notification": {"tag": "\#(text)aaaa"}}"#, isRefusedAt: "message")
    }

    @Test("A dry run stays a dry run")
    func dryRun() throws {
        let body = ByteBuffer(string: #"{"validate_only": true, "message": {"token": "t"}}"#)
        #expect(try V1RequestDecoder.decode(body).legacyRequest(now: 0).message.dryRun)
    }

    @Test("The legacy encoder refuses an untranslated v1 message")
    func passThrough() throws {
        let request = try Self.decode(#""token": "t""#)
        #expect(throws: LegacyRequestEncoder.Inexpressible.passThrough) {
            try LegacyRequestEncoder.encode(request.message, to: request.target)
        }
    }

    @Test("A legacy message survives translation to v1 and back", arguments: SplitMix64.seeds)
    func roundTrip(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<20 {
            let (message, target) = try RandomMessage.forV1(using: &random)
            let body = V1Calls(message, to: target, now: Self.now).body(at: 0)
            let drift = random.below(6)
            let request = try V1RequestDecoder.decode(body).legacyRequest(now: Self.now + drift)
            let legacy = try VectorJSON(parsing: LegacyRequestEncoder.encode(request.message, to: request.target))
            let expected = try VectorJSON(parsing: LegacyRequestEncoder.encode(message, to: target))
            #expect(expected.mismatches(in: legacy) == [])
            #expect(
                request.message.data.map { [Array($0.key.utf8), Array($0.value.utf8)] }
                    == message.data.map { [Array($0.key.utf8), Array($0.value.utf8)] }
            )
            #expect(request.payloadBytes == message.payloadBytes)
        }
    }

    @Test("Every translation vector without members that v1 drops survives v1 and back")
    func vectors() throws {
        // Arguments without their key, empty ones, and a flag that needs a notification.
        let lossy = ["TRN-042", "TRN-043", "TRN-052"]
        for vector in try TranslationVector.all() where !lossy.contains(vector.id) {
            let request = try LegacyRequestDecoder.decode(vector.body)
            for call in vector.calls {
                let back = try V1RequestDecoder.decode(call.serialised()).legacyRequest(now: vector.now)
                let legacy = try VectorJSON(parsing: LegacyRequestEncoder.encode(back.message, to: back.target))
                let expected = try VectorJSON(parsing: LegacyRequestEncoder.encode(request.message, to: back.target))
                #expect(expected.mismatches(in: legacy) == [], "\(vector.id)")
            }
        }
    }

    private static func decode(_ members: String) throws -> V1SendRequest {
        try V1RequestDecoder.decode(ByteBuffer(string: #"{"message": {\#(members)}}"#))
    }

    private static func legacy(_ members: String) throws -> LegacySendRequest {
        try Self.decode(members).legacyRequest(now: Self.now)
    }

    private static func expect(_ members: String, isRefusedAt field: String) throws {
        let request = try Self.decode(members)
        do {
            _ = try request.legacyRequest(now: Self.now)
            Issue.record("accepted: \(members)")
        } catch {
            #expect(error.fields.map(\.path) == [field])
            #expect(!error.isSyntactic)
            #expect(V1ReplyWriter.reply(to: error).status == 400)
        }
    }
}
