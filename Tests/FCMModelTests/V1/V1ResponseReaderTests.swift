import FCMModel
import NIOCore
import Testing

@Suite("V1ResponseReader")
struct V1ResponseReaderTests {
    typealias Row = (status: Int, body: String, code: OutcomeCode, retryAfter: Int?, signal: V1Reading.Signal)

    /// A refusal with one entry in `details`.
    private static func refusal(_ status: String, _ detail: String = "", message: String = "x") -> String {
        #"{"error": {"code": 1, "message": "\#(message)", "status": "\#(status)", "details": [\#(detail)]}}"#
    }

    private static func fcmError(_ code: String) -> String {
        #"{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": "\#(code)"}"#
    }

    private static func violation(_ field: String, _ description: String = "") -> String {
        #"{"@type": "type.googleapis.com/google.rpc.BadRequest", "#
            + #""fieldViolations": [{"field": "\#(field)", "description": "\#(description)"}]}"#
    }

    private static let projectQuota =
        #"{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"}"#

    private static let refusals: [Row] = [
        (404, refusal("NOT_FOUND", fcmError("UNREGISTERED")), .unregistered, nil, .none),
        (403, refusal("PERMISSION_DENIED", fcmError("SENDER_ID_MISMATCH")), .senderMismatch, nil, .none),
        (401, refusal("UNAUTHENTICATED", fcmError("THIRD_PARTY_AUTH_ERROR")), .upstreamCredentials, nil, .none),
        (429, refusal("RESOURCE_EXHAUSTED", fcmError("QUOTA_EXCEEDED")), .deviceRateExceeded, 60, .targetQuota),
        (429, refusal("RESOURCE_EXHAUSTED", projectQuota), .tenantRateExceeded, 60, .projectQuota),
        (429, refusal("RESOURCE_EXHAUSTED"), .upstreamUnavailable, 60, .none),
        (429, "<html>", .upstreamUnavailable, 60, .none),
        (400, refusal("RESOURCE_EXHAUSTED"), .upstreamUnavailable, 60, .none),
        (503, refusal("UNAVAILABLE", fcmError("UNAVAILABLE")), .upstreamUnavailable, nil, .trouble),
        (500, refusal("INTERNAL", fcmError("INTERNAL")), .upstreamInternal, nil, .trouble),
        (500, refusal("UNKNOWN", fcmError("UNSPECIFIED_ERROR")), .upstreamInternal, nil, .trouble),
        (401, refusal("UNAUTHENTICATED"), .upstreamCredentials, nil, .tokenRefused),
        (401, refusal("UNAUTHENTICATED", fcmError("BRAND_NEW")), .upstreamCredentials, nil, .none),
        (403, refusal("PERMISSION_DENIED"), .upstreamCredentials, nil, .credentialRefused),
        (404, refusal("NOT_FOUND"), .upstreamCredentials, nil, .credentialRefused),
        (404, "<html>", .upstreamCredentials, nil, .credentialRefused),
        (404, refusal("NOT_FOUND", fcmError("BRAND_NEW")), .upstreamCredentials, nil, .none),
        (500, "", .upstreamInternal, nil, .trouble), (500, "<html></html>", .upstreamInternal, nil, .trouble),
        (502, "<html></html>", .upstreamUnavailable, nil, .trouble), (504, "", .upstreamUnavailable, nil, .trouble),
        (503, #"{"error": {"code": 503, "mess"#, .upstreamUnavailable, nil, .trouble),
        (302, "<html></html>", .upstreamProtocol, nil, .none), (418, "", .upstreamProtocol, nil, .none),
        (413, refusal("INVALID_ARGUMENT"), .upstreamProtocol, nil, .none),
        (400, "", .invalidField, nil, .none), (400, "<html>", .invalidField, nil, .none),
        (400, refusal("FAILED_PRECONDITION"), .invalidField, nil, .none),
    ]

    @Test("With an idempotency key, a 5xx that is not FCM's own gives an unknown outcome", arguments: 500...599)
    func proxy(status: Int) {
        for body in ["", "<html>", "{}", #"{"error": {"code": 502, "mess"#, Self.refusal("DEADLINE_EXCEEDED")] {
            let reading = Self.read(status, body, isIdempotent: true)
            #expect(reading.answer == .rejected(Rejection(code: .outcomeUnknown)), "\(body)")
            #expect(reading.signal == .trouble && reading.upstreamCode == String(status))
        }
        let own = [
            Self.refusal("UNAVAILABLE"), Self.refusal("UNAVAILABLE", Self.fcmError("UNAVAILABLE")),
            Self.refusal("INTERNAL", Self.fcmError("BRAND_NEW")), Self.refusal("RESOURCE_EXHAUSTED", Self.projectQuota),
            Self.refusal("DEADLINE_EXCEEDED", Self.fcmError("INTERNAL")),
        ]
        for body in own {
            #expect(Self.read(status, body, isIdempotent: true) == Self.read(status, body), "\(body)")
        }
    }

    @Test("An idempotency key does not affect a status below 500", arguments: Self.refusals.filter { $0.status < 500 })
    func keyed(row: Row) {
        #expect(Self.read(row.status, row.body, isIdempotent: true) == Self.read(row.status, row.body))
    }

    @Test("Refusals have their code, delay and signal", arguments: Self.refusals)
    func refusal(row: Row) {
        let reading = Self.read(row.status, row.body)
        let isQuota = row.signal == .targetQuota || row.signal == .projectQuota
        #expect(reading.rejection?.code == row.code)
        #expect(reading.rejection?.retryAfter == row.retryAfter)
        #expect(reading.rejection?.limitedBy == (isQuota ? .fcm : nil))
        #expect(reading.signal == row.signal)
    }

    @Test(
        "An invalid argument is classified by its violations and message",
        arguments: [
            (violation("message.token"), "x", .invalidToken),
            (violation("message"), "Recipient of the message is NOT SET.", .invalidField),
            (violation("message", "Recipient is Not Set."), "x", .invalidTarget),
            ("", "The Registration Token is not valid", .invalidToken),
            (violation("message.android.restrictedPackageName"), "x", .packageMismatch),
            (violation("message.android.restricted_package_name"), "x", .packageMismatch),
            (violation("message.android.ttl"), "x", .invalidField),
            ("", "INVALID DATA PAYLOAD KEY: gcm", .invalidDataKey),
            ("", "An Invalid data payload key", .invalidField),
            (violation("message.data", "Android message is Too Big"), "x", .messageTooBig),
            ("", "Request contains an invalid argument.", .invalidField),
        ] as [(String, String, OutcomeCode)]
    )
    func invalidArguments(detail: String, message: String, code: OutcomeCode) {
        let details = [Self.fcmError("INVALID_ARGUMENT"), detail].filter { !$0.isEmpty }.joined(separator: ", ")
        let body = Self.refusal("INVALID_ARGUMENT", details, message: message)
        #expect(Self.read(400, body).rejection?.code == code)
        // The front end sends the same without an FcmError.
        #expect(Self.read(400, Self.refusal("INVALID_ARGUMENT", detail, message: message)).rejection?.code == code)
        // With an unknown code, the status alone decides.
        let unknown = [Self.fcmError("BRAND_NEW"), detail].filter { !$0.isEmpty }.joined(separator: ", ")
        let judged = Self.read(400, Self.refusal("INVALID_ARGUMENT", unknown, message: message))
        #expect(judged.rejection?.code == .invalidField)
    }

    @Test("An error of a topic or condition never blames a token", arguments: [Target.Kind.topic, .condition])
    func topicsWithoutTokens(kind: Target.Kind) {
        let body = Self.refusal(
            "INVALID_ARGUMENT",
            Self.fcmError("INVALID_ARGUMENT") + "," + Self.violation("message.token", "bad registration token")
        )
        #expect(Self.read(400, body, for: kind).rejection?.code == .invalidField)
        let quota = Self.refusal("RESOURCE_EXHAUSTED", Self.fcmError("QUOTA_EXCEEDED"))
        #expect(Self.read(429, quota, for: kind).rejection?.code == .topicRateExceeded)
    }

    @Test("A violation of message.fid is an invalid token for an installation only")
    func installations() {
        let body = Self.refusal("INVALID_ARGUMENT", Self.violation("message.fid"))
        #expect(Self.read(400, body, for: .installation).rejection?.code == .invalidToken)
        #expect(Self.read(400, body, for: .token).rejection?.code == .invalidField)
    }

    @Test(
        "A message id is the rest of the name after messages",
        arguments: [
            ("projects/p/messages/0:15%31", "0:15%31"), ("projects/p/messages/a/b", "a/b"),
            ("projects/123/messages/fake_message_id", "fake_message_id"),
        ]
    )
    func messageIDs(name: String, id: String) {
        #expect(Self.read(200, #"{"name": "\#(name)"}"#).answer == .accepted(messageID: id))
        #expect(Self.read(201, #"{"name": "\#(name)", "more": 1}"#).answer == .accepted(messageID: id))
    }

    @Test(
        "A 200 without a valid name is a protocol error",
        arguments: [
            #"{"name": ""}"#, #"{"name": "projects/p/messages/"}"#, #"{"name": "projects//messages/1"}"#,
            #"{"name": "messages/1"}"#, #"{"name": 1}"#, #"{"unexpected": true}"#, "[]", "null", "<html>", " ",
            #"{"name": "projects/p/messages/1""#,
            #"{"name": "projects/p/messages/1", "name": "projects/p/messages/2"}"#,
        ]
    )
    func unreadable(body: String) {
        for kind in Target.Kind.allCases {
            #expect(Self.read(200, body, for: kind).rejection?.code == .upstreamProtocol)
        }
    }

    @Test("An empty object is accepted only if the target may be a group", arguments: ["{}", " {}\n"])
    func emptyObject(body: String) {
        let reading = Self.read(200, body, mayBeGroup: true)
        #expect(reading.answer == .group)
        #expect(reading.outcome == .rejected(.upstreamProtocol))
        for kind in Target.Kind.allCases {
            #expect(Self.read(200, body, for: kind).rejection?.code == .upstreamProtocol)
        }
    }

    @Test(
        "A 2xx without an object is a protocol error, even for a group",
        arguments: [(200, ""), (204, ""), (200, " "), (200, "\r\n"), (200, "[]"), (200, "null")]
    )
    func blank(status: Int, body: String) {
        for kind in [Target.Kind.token, .group] {
            #expect(Self.read(status, body, for: kind, mayBeGroup: true).rejection?.code == .upstreamProtocol)
        }
    }

    @Test(
        "A message id that is too long or not visible ASCII is a protocol error",
        arguments: [String(repeating: "x", count: 513), "a b", "a\\nb", "\u{E9}", "\\u0000"]
    )
    func foreignIDs(id: String) {
        let body = #"{"name": "projects/p/messages/\#(id)"}"#
        #expect(Self.read(200, body).rejection?.code == .upstreamProtocol)
        #expect(Self.read(200, body, mayBeGroup: true).rejection?.code == .upstreamProtocol)
        let longest = String(repeating: "x", count: 512)
        #expect(Self.read(200, #"{"name": "projects/p/messages/\#(longest)"}"#).answer == .accepted(messageID: longest))
    }

    @Test(
        "A delay from header or body is at most a day",
        arguments: [
            (nil, "9223372036854775807s"), (nil, "9223372036854775807.9s"), (nil, "86401s"),
            ("Fri, 31 Dec 9999 23:59:59 GMT", ""), ("99999999999999999999", ""),
        ] as [(String?, String)]
    )
    func longDelays(header: String?, info: String) {
        let details = #"{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "\#(info)"}"#
        let body = Self.refusal("UNAVAILABLE", Self.fcmError("UNAVAILABLE") + "," + details)
        #expect(Self.read(503, body, retryAfter: header).rejection?.retryAfter == 86_400)
        let response = UpstreamResponse(503, body, retryAfter: header)
        let kept = V1ResponseReader.read(response, for: .token, now: 0, keepsAnswer: true).passThrough?.reply
        #expect(kept?.retryAfter == header.map { _ in 86_400 })
        #expect(kept?.body == response.body)
    }

    @Test("A delay comes from the header, else from the body, for retryable errors only")
    func delays() {
        let info = #"{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "30.5s"}"#
        let unavailable = Self.refusal("UNAVAILABLE", Self.fcmError("UNAVAILABLE") + "," + info)
        #expect(Self.read(503, unavailable, retryAfter: "7").rejection?.retryAfter == 7)
        #expect(Self.read(503, unavailable).rejection?.retryAfter == 31)
        #expect(Self.read(503, unavailable, retryAfter: "soon").rejection?.retryAfter == 31)
        #expect(Self.read(503, unavailable, retryAfter: "Thu, 01 Jan 1970 00:01:00 GMT").rejection?.retryAfter == 60)
        #expect(Self.read(503, unavailable, retryAfter: "Thu, 01 Jan 1970 00:00:00 GMT").rejection?.retryAfter == 0)
        let quota = Self.refusal("RESOURCE_EXHAUSTED", Self.projectQuota)
        #expect(Self.read(429, quota, retryAfter: "7").rejection?.retryAfter == 7)
        let dead = Self.refusal("NOT_FOUND", Self.fcmError("UNREGISTERED") + "," + info)
        #expect(Self.read(404, dead, retryAfter: "7").rejection?.retryAfter == nil)
    }

    @Test(
        "Details are recognized by the end of their type, in any order and number",
        arguments: [
            (#"{"@type": "x/google.firebase.fcm.v1.FcmError", "errorCode": "UNREGISTERED"}"#, .unregistered),
            (#"{"@type": "google.firebase.fcm.v1.FcmError", "errorCode": "UNREGISTERED"}"#, .unregistered),
            (#"{}, [], 1, {"@type": 1}, "# + fcmError("UNREGISTERED"), .unregistered),
            (fcmError("BRAND_NEW") + "," + fcmError("UNREGISTERED"), .unregistered),
            (fcmError("UNREGISTERED") + "," + fcmError("BRAND_NEW"), .unregistered),
            (#"{"@type": "x/nogoogle.firebase.fcm.v1.FcmError", "errorCode": "UNREGISTERED"}"#, .upstreamCredentials),
            (#"{"@type": "x/google.firebase.fcm.v1.ApnsError", "errorCode": "UNREGISTERED"}"#, .upstreamCredentials),
            (#"{"@type": "x/google.firebase.fcm.v1.FcmError", "errorCode": 1}"#, .upstreamCredentials),
        ] as [(String, OutcomeCode)]
    )
    func details(details: String, code: OutcomeCode) {
        #expect(Self.read(404, Self.refusal("NOT_FOUND", details)).rejection?.code == code)
    }

    @Test("Only responses with an FcmError and every 400 are passed through")
    func passThrough() {
        #expect(Self.read(404, Self.refusal("NOT_FOUND", Self.fcmError("UNREGISTERED"))).passThrough != nil)
        #expect(Self.read(401, Self.refusal("X", Self.fcmError("BRAND_NEW"))).passThrough != nil)
        #expect(Self.read(400, Self.refusal("INVALID_ARGUMENT")).passThrough != nil)
        #expect(Self.read(400, "<html>").passThrough != nil)
        #expect(Self.read(401, Self.refusal("UNAUTHENTICATED")).passThrough == nil)
        #expect(Self.read(503, "<html>").passThrough == nil)
        #expect(Self.read(429, Self.refusal("RESOURCE_EXHAUSTED", Self.projectQuota)).passThrough == nil)
        #expect(Self.read(200, #"{"name": "projects/p/messages/1"}"#).passThrough == nil)
    }

    @Test("The upstream code is a known error code, else the status")
    func upstreamCodes() {
        #expect(Self.read(404, Self.refusal("NOT_FOUND", Self.fcmError("UNREGISTERED"))).upstreamCode == "UNREGISTERED")
        let older = Self.read(401, Self.refusal("X", Self.fcmError("APNS_AUTH_ERROR")))
        #expect(older.upstreamCode == "THIRD_PARTY_AUTH_ERROR")
        #expect(Self.read(404, Self.refusal("NOT_FOUND", Self.fcmError("BRAND_NEW"))).upstreamCode == "404")
        #expect(Self.read(429, Self.refusal("X", Self.projectQuota)).upstreamCode == "RATE_LIMIT_EXCEEDED")
        #expect(Self.read(200, "{}").upstreamCode == "200")
    }

    @Test("A truncated response is read by its status alone", arguments: [200, 404, 503])
    func truncation(status: Int) throws {
        let body =
            status == 200
            ? #"{"name": "projects/demo/messages/m1"}"# : Self.refusal("NOT_FOUND", Self.fcmError("UNREGISTERED"))
        for length in 1..<body.utf8.count {
            let code = Self.read(status, String(body.prefix(length))).rejection?.code
            let expected: OutcomeCode =
                status == 200 ? .upstreamProtocol : status == 404 ? .upstreamCredentials : .upstreamUnavailable
            #expect(code == expected)
        }
    }

    private static func read(
        _ status: Int,
        _ body: String,
        retryAfter: String? = nil,
        for kind: Target.Kind = .token,
        mayBeGroup: Bool = false,
        isIdempotent: Bool = false
    ) -> V1Reading {
        V1ResponseReader.read(
            UpstreamResponse(status, body, retryAfter: retryAfter),
            for: kind,
            mayBeGroup: mayBeGroup,
            now: 0,
            keepsAnswer: true,
            isIdempotent: isIdempotent
        )
    }
}
