import FCMModel
import NIOCore
import Testing
import VectorTestKit

@Suite("LegacyResponseReader")
struct LegacyResponseReaderTests {
    @Test(
        "Responses are read as in the vectors",
        arguments: try Vector.read("responses", where: "direction", is: "legacy_to_outcome")
    )
    func vectors(vector: Vector) throws {
        var members = vector.members
        let target = try Self.target(members.take("target").text(), members.take("tokens").texts())
        let response = try members.take("response").object { try UpstreamResponse(&$0) }
        let result = LegacyResponseReader.read(response, for: target, now: try members.take("now").integer())
        var expect = try members.take("expect").members()
        #expect(result.retryAfter == (try expect.takeIfPresent("retry_after")?.integer()))
        if let results = expect.takeIfPresent("results") {
            let outcomes = result.outcomes(count: target.recipientCount).map(Self.json)
            #expect(results.mismatches(in: .array(outcomes)) == [])
        } else if case .group(let group) = result.answer {
            var counts = try expect.take("group").members()
            #expect(group.success == (try counts.take("success").integer()))
            #expect(group.failure == (try counts.take("failure").integer()))
            #expect(group.failedTokens == (try counts.take("failed_tokens").texts()))
            #expect(group.isRetryable == (try counts.take("retryable").flag()))
            try counts.finish()
        } else {
            Issue.record("another shape: \(result.answer)")
        }
        try expect.finish()
        try members.finish()
    }

    private static func target(_ kind: String, _ tokens: [String]) throws -> Target {
        switch kind {
        case "token": .token(try #require(tokens.first))
        case "group": .notificationKey(try #require(tokens.first))
        case "multicast": .tokens(tokens)
        case "topic": .topic(try #require(TopicName("news")))
        case "condition": .condition(try TopicCondition(parsing: "'news' in topics"))
        default: throw VectorProblem("unknown target \(kind)")
        }
    }

    /// An outcome in the vectors' form, which is that of the REST contract.
    private static func json(_ outcome: RecipientOutcome) -> VectorJSON {
        let members: [(String, VectorJSON?)] =
            switch outcome {
            case .accepted(let acceptance):
                [
                    ("status", .string("accepted")), ("message_id", .string(acceptance.messageID)),
                    ("replacement_token", acceptance.replacementToken.map { .string($0) }),
                ]
            case .rejected(let rejection):
                [
                    ("status", .string("rejected")), ("code", .string(rejection.code.rawValue)),
                    ("retryable", .bool(rejection.code.isRetryable)),
                    ("action", rejection.code.action.map { .string($0.rawValue) }),
                ]
            }
        return .object(members.compactMap { key, value in value.map { VectorJSON.Member(key: key, value: $0) } })
    }

    @Test("The vectors are 31 legacy responses and 51 v1 responses")
    func completeness() throws {
        let read = try Vector.read("responses", where: "direction", is: "legacy_to_outcome")
        #expect(read.map(\.id) == (52...82).map { "RSP-0\($0)" })
        #expect(try Vector.read("responses", where: "direction", is: "v1_to_legacy").count == 51)
    }

    @Test("A status other than 200 and 400 decides the whole call regardless of the body")
    func statuses() {
        let result = #"{"results":[{"error":"NotRegistered"}]}"#
        let bodies = ["", "<html>", result, "Error=NotRegistered", "NotRegistered"]
        for status in 100...999 where status != 200 && status != 400 {
            let expected: OutcomeCode =
                switch status {
                case 401, 403: .upstreamCredentials
                case 500: .upstreamInternal
                case 429, 501...599: .upstreamUnavailable
                default: .upstreamProtocol
                }
            for body in bodies {
                let result = Self.read(status: status, body)
                #expect(result.refusal?.code == expected, "\(status)")
                #expect(result.upstreamCode == String(status))
            }
        }
    }

    @Test("With an idempotency key, a proxy's 5xx gives an unknown outcome")
    func proxy() {
        let own = [#"{"error":"Unavailable"}"#, "Error=InternalServerError", "Unavailable\n"]
        let foreign = ["", "<html>", "{}", #"{"error":"Bad gateway"}"#, #"{"results":[{"message_id":"1"}]}"#]
        for status in 100...999 {
            // Statuses that FCM documents keep their meaning, and so do those below 500.
            let isProxys = (501...599).contains(status) && status != 503
            for body in own + foreign {
                let result = Self.read(status: status, body, isIdempotent: true)
                if isProxys, foreign.contains(body) {
                    #expect(result == SendResult(refused: .outcomeUnknown, upstreamCode: String(status)))
                } else {
                    #expect(result == Self.read(status: status, body), "\(status) \(body)")
                }
            }
        }
    }

    @Test(
        "A 400 is classified by its text",
        arguments: [
            ("JSON_PARSING_ERROR", .malformedJSON),
            ("\"data\" key is odd", .invalidField),
            ("to", .invalidTarget), ("to\r\n", .invalidTarget), ("token", .invalidField),
            ("\"registration_ids\" field cannot be empty\n", .invalidField),
            ("Field \"to\" must be a JSON string: 3", .invalidField),
            ("InvalidRegistration", .invalidToken), ("MISSING_REGISTRATION\n", .invalidTarget),
            ("InvalidTtl: too long", .invalidField), ("NotRegistered", .unregistered),
            (#"{"error":"InvalidParameters: Bad topic or filter provided"}"#, .invalidField),
            (#"{"error":"MessageTooBig","reason":"x"}"#, .messageTooBig),
            (#"{"error":"SomethingNew"}"#, .upstreamProtocol), (#"{"error":"DeprecatedApi"}"#, .upstreamProtocol),
            (#"{"error":7}"#, .invalidField), (#"{"results":[{"error":"NotRegistered"}]}"#, .invalidField),
            ("", .invalidField), ("<html><body>Bad Request</body></html>", .invalidField),
        ] as [(String, OutcomeCode)]
    )
    func badRequests(body: String, expected: OutcomeCode) {
        #expect(Self.read(status: 400, body).refusal?.code == expected)
    }

    @Test("The upstream code is a known error name, else the status")
    func upstreamCodes() {
        let gone = #"{"results":[{"error":"NOT_REGISTERED: gone"}]}"#
        #expect(Self.read(status: 200, gone).upstreamCode == "NotRegistered")
        #expect(Self.read(status: 400, "InvalidTtl: secret").upstreamCode == "InvalidTtl")
        #expect(Self.read(status: 200, #"{"error":"a secret"}"#).upstreamCode == "200")
        #expect(Self.read(status: 400, "a secret").upstreamCode == "400")
        let mixed = #"{"results":[{"message_id":"1"},{"error":"x"},{"error":"Unavailable"},{"error":"NotRegistered"}]}"#
        #expect(Self.read(status: 200, mixed, for: .tokens(["a", "b", "c", "d"])).upstreamCode == "Unavailable")
    }

    @Test(
        "Message ids are strings or numbers and keep their digits",
        arguments: [
            (#""0:1""#, "0:1"), ("7146077062196508237", "7146077062196508237"),
            ("12345678901234567890", "12345678901234567890"),
            (#""""#, nil), ("null", nil), ("true", nil), ("{}", nil), ("[1]", nil),
        ] as [(String, String?)]
    )
    func messageIDs(written: String, expected: String?) {
        let single = Self.read(status: 200, #"{"message_id":\#(written)}"#, for: .token("t")).answer
        let listed = Self.read(status: 200, #"{"results":[{"message_id":\#(written)}]}"#, for: .token("t")).answer
        if let expected {
            #expect(single == .recipients([.accepted(Acceptance(messageID: expected))]))
            #expect(listed == single)
        } else {
            #expect(single == .refused(Refusal(.upstreamProtocol)))
            #expect(listed == .recipients([.rejected(.upstreamProtocol)]))
        }
    }

    @Test("A registration id is a replacement only if it is another token")
    func replacements() {
        func replacement(_ registrationID: String) -> [RecipientOutcome] {
            let body = #"{"results":[{"message_id":"1"},{"message_id":"2","registration_id":\#(registrationID)}]}"#
            guard case .recipients(let outcomes) = Self.read(status: 200, body, for: .tokens(["a", "b"])).answer else {
                return []
            }
            return Array(outcomes.dropFirst())
        }
        #expect(replacement(#""c""#) == [.accepted(Acceptance(messageID: "2", replacementToken: "c"))])
        // Another recipient's token is a replacement too: two old tokens may have become one.
        #expect(replacement(#""a""#) == [.accepted(Acceptance(messageID: "2", replacementToken: "a"))])
        for none in [#""b""#, #""""#, "null", "7"] {
            #expect(replacement(none) == [.accepted(Acceptance(messageID: "2"))])
        }
    }

    @Test("A result count that differs from the recipients is a protocol error", arguments: [0, 1, 2, 4, 1_000])
    func countMismatch(count: Int) {
        let results = Array(repeating: #"{"error":"NotRegistered"}"#, count: count).joined(separator: ",")
        let body = #"{"multicast_id":1,"success":0,"failure":3,"results":[\#(results)]}"#
        let result = Self.read(status: 200, body, for: .tokens(["a", "b", "c"]))
        #expect(result.refusal?.code == .upstreamProtocol)
    }

    @Test("A single result for several recipients is a protocol error")
    func singleAnswers() {
        for body in [#"{"message_id":"1"}"#, "id=1", "{}", #"{"multicast_id":1}"#, "[]", "null", "7", "\"x\""] {
            #expect(Self.read(status: 200, body, for: .tokens(["a", "b"])).refusal?.code == .upstreamProtocol)
        }
    }

    @Test("Counts without a multicast id are a group result for any target")
    func groups() throws {
        let topic = Target.topic(try #require(TopicName("news")))
        let body = #"{"success":1,"failure":2,"failed_registration_ids":["r1",7,"r2"]}"#
        for target in [.token("t"), .tokens(["a", "b"]), .notificationKey("k"), topic] as [Target] {
            let result = Self.read(status: 200, body, retryAfter: "9", for: target)
            let counts = GroupOutcome(success: 1, failure: 2, failedTokens: ["r1", "r2"], retryAfter: 9)
            #expect(result.answer == .group(counts))
        }
        let all = Self.read(status: 200, #"{"success":2,"failure":0}"#, retryAfter: "9", for: .notificationKey("k"))
        #expect(all.answer == .group(GroupOutcome(success: 2, failure: 0, failedTokens: [])))
        #expect(all.retryAfter == nil)
        for body in [
            #"{"multicast_id":1,"success":2,"failure":0}"#, #"{"success":-1,"failure":0}"#, #"{"success":2}"#,
            #"{"success":"2","failure":"0"}"#, #"{"success":1.5,"failure":0}"#,
        ] {
            #expect(Self.read(status: 200, body, for: .notificationKey("k")).refusal?.code == .upstreamProtocol)
        }
    }

    @Test(
        "Impossible group counts and members are a protocol error",
        arguments: [
            #"{"success":9223372036854775807,"failure":1}"#,
            #"{"success":9223372036854775807,"failure":9223372036854775807}"#,
            #"{"success":1001,"failure":0}"#, #"{"success":0,"failure":1001}"#, #"{"success":-1,"failure":0}"#,
            #"{"success":0,"failure":1,"failed_registration_ids":["\#(String(repeating: "x", count: 4_097))"]}"#,
            #"{"success":0,"failure":1,"failed_registration_ids":["/topics/all"]}"#,
            #"{"success":0,"failure":1,"failed_registration_ids":["a b"]}"#,
            #"{"success":0,"failure":1000,"failed_registration_ids":["# + String(repeating: #""a","#, count: 1_000)
                + #""a"]}"#,
        ]
    )
    func foreignCounts(body: String) {
        for target in [.notificationKey("k"), .token("t"), .tokens(["a", "b"])] as [Target] {
            #expect(Self.read(status: 200, body, for: target).refusal?.code == .upstreamProtocol)
        }
    }

    @Test("Group counts up to 1,000 are accepted, and GroupOutcome clamps others")
    func largestCounts() {
        let result = Self.read(status: 200, #"{"success":1000,"failure":1000}"#, for: .notificationKey("k"))
        #expect(result.answer == .group(GroupOutcome(success: 1_000, failure: 1_000, failedTokens: [])))
        let clamped = GroupOutcome(success: .max, failure: .min, failedTokens: [])
        #expect(clamped == GroupOutcome(success: 1_000, failure: 0, failedTokens: []))
    }

    @Test("A message id or replacement beyond its limits is a protocol error")
    func foreignTexts() {
        let long = String(repeating: "x", count: 513)
        let longest = String(repeating: "x", count: 512)
        let longToken = String(repeating: "x", count: 4_097)
        let longestToken = String(repeating: "x", count: 4_096)
        for id in [long, "a b", "\u{E9}", "a\\u0000", #"a\nregistration_id=b"#] {
            let listed = #"{"results":[{"message_id":"\#(id)"},{"error":"NotRegistered"}]}"#
            #expect(
                Self.read(status: 200, listed, for: .tokens(["a", "b"])).answer
                    == .recipients([.rejected(.upstreamProtocol), .rejected(.unregistered)])
            )
            #expect(Self.read(status: 200, #"{"message_id":"\#(id)"}"#).refusal?.code == .upstreamProtocol)
        }
        let number = String(repeating: "9", count: 513)
        #expect(Self.read(status: 200, #"{"message_id":\#(number)}"#).refusal?.code == .upstreamProtocol)
        #expect(Self.read(status: 200, "id=\(long)").refusal?.code == .upstreamProtocol)
        #expect(Self.read(status: 200, "id=\u{E9}").refusal?.code == .upstreamProtocol)
        for token in [longToken, "/topics/all", "a b", "\u{E9}"] {
            let listed = #"{"results":[{"message_id":"1","registration_id":"\#(token)"}]}"#
            for body in [listed, "id=1\nregistration_id=\(token)"] {
                #expect(Self.read(status: 200, body).answer == .recipients([.rejected(.upstreamProtocol)]))
            }
        }
        let accepted = Acceptance(messageID: longest, replacementToken: longestToken)
        for body in [
            #"{"results":[{"message_id":"\#(longest)","registration_id":"\#(longestToken)"}]}"#,
            "id=\(longest)\r\nregistration_id=\(longestToken)\r\n",
        ] {
            #expect(Self.read(status: 200, body).answer == .recipients([.accepted(accepted)]))
        }
    }

    @Test("A long text is not searched for an id or an error")
    func longTexts() {
        let page = String(repeating: "\n", count: 1_000_000) + "id=1"
        #expect(Self.read(status: 200, page).refusal?.code == .upstreamProtocol)
        // One character of a megabyte.
        let letter = "x" + String(repeating: "\u{301}", count: 500_000)
        for status in [200, 400] {
            let expected: OutcomeCode = status == 200 ? .upstreamProtocol : .invalidField
            for body in [letter, "Error=\(letter)", "id=\(letter)"] {
                #expect(Self.read(status: status, body).refusal?.code == expected)
            }
            #expect(Self.read(status: status, #"{"error":"\#(letter)"}"#).refusal?.code == expected)
        }
    }

    @Test("A 429 has the delay that it names, or a minute")
    func tooManyRequests() {
        #expect(Self.read(status: 429, "").retryAfter == 60)
        #expect(Self.read(status: 429, "", retryAfter: "soon").retryAfter == 60)
        #expect(Self.read(status: 429, "", retryAfter: "7").retryAfter == 7)
        #expect(Self.read(status: 503, "").retryAfter == nil)
    }

    @Test("An empty 200 means unregistered for a group key and is a protocol error otherwise")
    func emptyAnswers() throws {
        #expect(Self.read(status: 200, "", for: .notificationKey("k")).refusal?.code == .unregistered)
        let topic = Target.topic(try #require(TopicName("news")))
        let condition = Target.condition(try TopicCondition(parsing: "'a' in topics"))
        for target in [.token("t"), .tokens(["t"]), .tokens(["a", "b"]), topic, condition] as [Target] {
            #expect(Self.read(status: 200, "", for: target).refusal?.code == .upstreamProtocol)
        }
        #expect(Self.read(status: 200, " ", for: .notificationKey("k")).refusal?.code == .upstreamProtocol)
    }

    @Test("A delay is passed on only if something can be retried")
    func delays() {
        let body = #"{"results":[{"error":"NotRegistered"},{"error":"Unavailable"}]}"#
        #expect(Self.read(status: 200, body, retryAfter: "7", for: .tokens(["a", "b"])).retryAfter == 7)
        #expect(Self.read(status: 200, body, retryAfter: "soon", for: .tokens(["a", "b"])).retryAfter == nil)
        let final = #"{"results":[{"error":"NotRegistered"},{"message_id":"1"}]}"#
        #expect(Self.read(status: 200, final, retryAfter: "7", for: .tokens(["a", "b"])).retryAfter == nil)
        #expect(Self.read(status: 401, "", retryAfter: "7").retryAfter == nil)
        #expect(Self.read(status: 503, "", retryAfter: "Thu, 01 Jan 1970 00:00:30 GMT").retryAfter == 30)
        #expect(Self.read(status: 503, "").retryAfter == nil)
    }

    private static func read(
        status: Int,
        _ body: String,
        retryAfter: String? = nil,
        for target: Target = .token("t"),
        isIdempotent: Bool = false
    ) -> SendResult {
        let response = UpstreamResponse(status, body, retryAfter: retryAfter)
        return LegacyResponseReader.read(response, for: target, now: 0, isIdempotent: isIdempotent)
    }
}
