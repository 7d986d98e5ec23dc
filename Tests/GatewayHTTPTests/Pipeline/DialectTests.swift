import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayHTTP

/// Every code, and each surface's answer to a message's outcome.
struct DialectTests {
    /// The contract's table: code, status, retryable, action.
    static let contract: [(String, Int, Bool, String?)] = [
        ("malformed_json", 400, false, "fix_request"), ("duplicate_key", 400, false, "fix_request"),
        ("too_deep", 400, false, "fix_request"), ("too_many_members", 400, false, "fix_request"),
        ("invalid_field", 422, false, "fix_request"), ("unknown_field", 422, false, "fix_request"),
        ("invalid_target", 422, false, "fix_request"), ("invalid_data_key", 422, false, "fix_request"),
        ("message_too_big", 422, false, "shrink_payload"), ("invalid_token", 422, false, "fix_request"),
        ("unregistered", 410, false, "delete_token"), ("sender_mismatch", 422, false, "use_matching_sender"),
        ("package_mismatch", 422, false, "fix_request"), ("unauthenticated", 401, false, "fix_credentials"),
        ("forbidden", 403, false, "request_scope"), ("not_found", 404, false, "fix_request"),
        ("method_not_allowed", 405, false, "fix_request"), ("header_too_large", 431, false, "fix_request"),
        ("uri_too_long", 414, false, "fix_request"), ("bad_request", 400, false, "fix_request"),
        ("too_many_topics", 422, false, "fix_request"),
        ("group_too_large", 422, false, "fix_request"), ("no_valid_tokens", 422, false, "fix_request"),
        ("group_conflict", 409, true, "wait"), ("idempotency_conflict", 422, false, nil),
        ("idempotency_in_progress", 409, true, nil), ("body_too_large", 413, false, "fix_request"),
        ("batch_state", 409, false, nil), ("part_conflict", 409, false, "fix_request"),
        ("batch_incomplete", 409, false, "fix_request"), ("batch_too_large", 422, false, "fix_request"),
        ("batch_quota_exceeded", 429, true, "wait"),
        ("unsupported_media_type", 415, false, "fix_request"), ("tenant_rate_exceeded", 429, true, "wait"),
        ("device_rate_exceeded", 429, true, "wait"), ("topic_rate_exceeded", 429, true, "wait"),
        ("upstream_credentials", 502, false, "call_operator"), ("upstream_protocol", 502, false, "call_operator"),
        ("upstream_unavailable", 503, true, "wait"), ("overloaded", 503, true, "wait"),
        ("upstream_internal", 502, true, "wait"), ("outcome_unknown", 504, false, nil),
        ("audit_unavailable", 503, true, "wait"),
        // Not in the table of sends: conflicts of the admin listener, slow requests and the gateway's own faults.
        ("conflict", 409, false, "fix_request"), ("precondition_failed", 412, false, "fix_request"),
        ("request_timeout", 408, true, "wait"),
        ("internal_error", 500, false, "call_operator"),
    ]

    @Test("Every code has the contract's status, action and Retry-After")
    func codes() throws {
        for (name, status, isRetryable, action) in Self.contract {
            let code = try #require(OutcomeCode(rawValue: name), "\(name)")
            let answer = Answer(Refusal(code).response)
            #expect(answer.status == status, "\(name)")
            let problem = try answer.problem()
            #expect(problem["code"]?.text == name)
            #expect(problem["retryable"] == .bool(isRetryable), "\(name)")
            #expect(problem["action"]?.text == action, "\(name)")
            #expect(answer.header("Retry-After") == (status == 429 || status == 503 ? "5" : nil), "\(name)")
        }
    }

    @Test("Every code has a title of its own and an explanation")
    func titles() {
        let titles = OutcomeCode.allCases.map(\.title)
        #expect(Set(titles).count == OutcomeCode.allCases.count)
        #expect(Set(OutcomeCode.allCases.map(\.explanation)).allSatisfy { !$0.isEmpty })
    }

    @Test("The contract lists every code exactly once")
    func completeness() {
        #expect(Self.contract.map(\.0).sorted() == OutcomeCode.allCases.map(\.rawValue).sorted())
    }

    // MARK: Outcomes of a message

    /// A message's outcome and the answers of legacy and v1; the contract has those of REST.
    struct Row: Sendable, CustomTestStringConvertible {
        var code: OutcomeCode
        /// The error of the legacy protocol, and the status of a form's answer.
        var legacy: String
        var formStatus: Int
        /// The legacy upstream's error name, if the code alone does not determine it.
        var given: LegacyErrorName?
        var v1: V1Words?

        var testDescription: String { "\(self.code.rawValue) \(self.legacy)" }
        var rejecting: SendResult { .rejecting(Rejection(code: self.code, legacyName: self.given)) }
        var failing: SendResult { self.failing(after: nil) }

        func failing(after delay: Int?) -> SendResult {
            SendResult(refused: self.code, retryAfter: delay, upstreamCode: "x", legacyName: self.given)
        }

        init(_ code: OutcomeCode, _ legacy: String, _ v1: V1Words?, given: LegacyErrorName? = nil, form: Int = 200) {
            self.code = code
            self.legacy = legacy
            self.formStatus = form
            self.given = given
            self.v1 = v1
        }
    }

    /// A Google API error.
    struct V1Words: Sendable {
        var httpStatus: Int
        var status: String
        var errorCode: String?
        var field: String?
        var retryAfter: String?

        init(_ httpStatus: Int, _ status: String, _ errorCode: String?, field: String? = nil, retryAfter: String? = nil)
        {
            self.httpStatus = httpStatus
            self.status = status
            self.errorCode = errorCode
            self.field = field
            self.retryAfter = retryAfter
        }

        static func invalid(_ field: String) -> V1Words {
            V1Words(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", field: field)
        }

        static let ours = V1Words(500, "INTERNAL", "INTERNAL")
        static let lost = V1Words(504, "DEADLINE_EXCEEDED", nil)
        static let apple = V1Words(401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR")
        static let away = V1Words(503, "UNAVAILABLE", "UNAVAILABLE", retryAfter: "5")
        static let exceeded = V1Words(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", retryAfter: "60")
    }

    private static let rows: [Row] = [
        Row(.unregistered, "NotRegistered", V1Words(404, "NOT_FOUND", "UNREGISTERED")),
        Row(.invalidToken, "InvalidRegistration", .invalid("message.token")),
        Row(.invalidTarget, "MissingRegistration", nil),
        Row(.senderMismatch, "MismatchSenderId", V1Words(403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH")),
        Row(.packageMismatch, "InvalidPackageName", .invalid("message.android.restricted_package_name")),
        Row(.messageTooBig, "MessageTooBig", nil),
        Row(.invalidDataKey, "InvalidDataKey", nil),
        Row(.invalidField, "InvalidParameters", nil),
        Row(.invalidField, "InvalidTtl", .invalid("message.android.ttl"), given: .invalidTTL),
        Row(.deviceRateExceeded, "DeviceMessageRateExceeded", .exceeded),
        Row(.topicRateExceeded, "TopicsMessageRateExceeded", nil),
        Row(.upstreamCredentials, "InternalServerError", .ours, form: 500),
        Row(.upstreamCredentials, "InvalidApnsCredential", .apple, given: .invalidAPNSCredential),
        Row(.upstreamUnavailable, "Unavailable", .away, form: 503),
        Row(.upstreamInternal, "InternalServerError", .ours, form: 500),
        Row(.upstreamProtocol, "InternalServerError", .ours, form: 500),
        Row(.outcomeUnknown, "InternalServerError", .lost, form: 500),
        Row(.outcomeUnknown, "Unavailable", nil, given: .unavailable, form: 503),
    ]

    @Test("REST answers with a problem for one recipient, for a whole call and with FCM's delay", arguments: rows)
    func rest(row: Row) async throws {
        try await TestGateway.run { gateway, key in
            func check(_ body: String, _ result: SendResult, delay: Int? = nil) async throws {
                gateway.answer(result)
                try Self.check(await gateway.send(body, key: key), row.code, delay: delay)
            }
            // The result of a single recipient is never an unknown outcome.
            if row.code != .outcomeUnknown { try await check(#"{"token":"lone"}"#, row.rejecting) }
            try await check(#"{"token":"whole"}"#, row.failing)
            try await check(#"{"tokens":["a","b"]}"#, row.failing)
            try await check(#"{"token":"delayed"}"#, row.failing(after: 37), delay: 37)
        }
    }

    @Test("A call that the upstream refused as malformed JSON is answered with that code")
    func malformed() async throws {
        try await TestGateway.run { gateway, key in
            for body in [#"{"token":"device"}"#, #"{"tokens":["a","b"]}"#] {
                gateway.answer(SendResult(refused: .malformedJSON, retryAfter: 37, upstreamCode: "x"))
                try Self.check(await gateway.send(body, key: key), .malformedJSON)
            }
        }
    }

    /// Checks a send's problem against the contract; only a retryable code has a delay.
    private static func check(
        _ answer: Answer,
        _ code: OutcomeCode,
        delay: Int? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let contract = try #require(Self.contract.first { $0.0 == code.rawValue }, sourceLocation: sourceLocation)
        let (_, status, isRetryable, action) = contract
        let retryAfter: Int? = isRetryable ? delay ?? (status == 429 || status == 503 ? 5 : nil) : nil
        let limitedBy: String? = status == 429 ? "fcm" : nil
        #expect(answer.status == status, sourceLocation: sourceLocation)
        let problem = try answer.problem(sourceLocation: sourceLocation)
        #expect(problem["code"]?.text == code.rawValue, sourceLocation: sourceLocation)
        #expect(problem["retryable"] == .bool(isRetryable), sourceLocation: sourceLocation)
        #expect(problem["action"]?.text == action, sourceLocation: sourceLocation)
        #expect(problem["retry_after"]?.int == retryAfter, sourceLocation: sourceLocation)
        #expect(problem["limited_by"]?.text == limitedBy, sourceLocation: sourceLocation)
        #expect(problem["id"]?.text?.isUUIDv7 == true, sourceLocation: sourceLocation)
        #expect(answer.header("RateLimit") != nil, sourceLocation: sourceLocation)
        #expect(answer.header("RateLimit-Policy") != nil, sourceLocation: sourceLocation)
        var known: Set = ["type", "title", "status", "code", "detail", "retryable", "id"]
        if action != nil { known.insert("action") }
        if retryAfter != nil { known.insert("retry_after") }
        if limitedBy != nil { known.insert("limited_by") }
        #expect(problem.keys == known, sourceLocation: sourceLocation)
    }

    @Test("The legacy protocol answers with the outcome's error name in every format", arguments: rows)
    func legacy(row: Row) async throws {
        try await TestGateway.run { gateway, key in
            let error: JSON = ["error": .string(row.legacy)]
            for result in [row.rejecting, row.failing] {
                gateway.answer(result, result, result)
                let device = await gateway.legacy(#"{"to":"device"}"#, key: key)
                #expect(device.status == 200)
                #expect(
                    device.value.without("multicast_id") == [
                        "success": 0, "failure": 1, "canonical_ids": 0, "results": [error],
                    ]
                )
                let topic = await gateway.legacy(#"{"to":"/topics/news"}"#, key: key)
                #expect(topic.status == (row.legacy == "InvalidParameters" ? 400 : 200))
                #expect(topic.value == error)
                let form = await gateway.form("registration_id=device", key: key)
                #expect(form.status == row.formStatus)
                #expect(form.body == "Error=\(row.legacy)")
                #expect(form.header("Content-Type") == "text/plain; charset=UTF-8")
                #expect([device, topic, form].allSatisfy { $0.header("Retry-After") == nil })
            }
            gateway.answer(row.failing)
            let list = await gateway.legacy(#"{"registration_ids":["a","b"]}"#, key: key)
            #expect(list.value["results"] == [error, error])
        }
    }

    @Test("v1 answers with the outcome's Google API error", arguments: rows.filter { $0.v1 != nil })
    func v1(row: Row) async throws {
        let words = try #require(row.v1)
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.legacy)
            for (token, result) in [("lone", row.rejecting), ("whole", row.failing)] {
                gateway.answer(result)
                let answer = await gateway.v1(SendSurface.v1.body(token), key: key)
                #expect(answer.status == words.httpStatus)
                #expect(answer.header("Retry-After") == words.retryAfter)
                try answer.expectError(words.status, words.errorCode, field: words.field)
            }
        }
    }
}
