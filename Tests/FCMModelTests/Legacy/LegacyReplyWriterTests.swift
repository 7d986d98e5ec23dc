import FCMModel
import NIOCore
import Testing
import VectorTestKit

@Suite("LegacyReplyWriter")
struct LegacyReplyWriterTests {
    private static let kinds: [String: Target.Kind] = [
        "multicast": .tokens, "token": .token, "topic": .topic, "condition": .condition, "group": .group,
    ]

    @Test(
        "Responses of a v1 upstream are written for legacy clients as in the vectors",
        arguments: try Vector.read("responses", where: "direction", is: "v1_to_legacy")
    )
    func vectors(vector: Vector) throws {
        var members = vector.members
        let now = try members.take("now").integer()
        var target = try members.take("target").members()
        let kind = try #require(Self.kinds[target.take("kind").text()])
        let recipients = kind == .tokens ? try target.take("recipients").integer() : 1
        let localErrors = try target.takeIfPresent("local_errors").textsByIndex()
            .mapValues { try #require(LegacyErrorName(rawValue: $0)) }
        let readings = try members.take("upstream").elements()
            .map { try $0.object { try Self.reading(&$0, for: kind, now: now) } }
        #expect(kind == .tokens || readings.count == 1)
        var result = kind == .tokens ? SendResult(gathering: readings) : SendResult(try #require(readings.first))
        if let known = try target.takeIfPresent("known_members")?.integer() { result = result.counting(known) }
        try target.finish()
        let isForm = try members.take("format").text() == "plain"
        let writer = LegacyReplyWriter(
            shape: kind == .topic || kind == .condition ? .single : .results(count: recipients),
            format: isForm ? .form : .json,
            localErrors: localErrors,
            multicastID: 4_711
        )
        let reply = Self.reply(writer, to: result)
        var expect = try members.take("expect").members()
        #expect(reply.status == (try expect.take("status").integer()))
        #expect(reply.retryAfter.map { String($0) } == (try expect.take("headers").headers()["retry-after"]))
        #expect(reply.contentType == (isForm ? "text/plain" : "application/json") + "; charset=UTF-8")
        let body = try expect.take("body")
        if isForm {
            #expect(String(buffer: reply.body) == (try body.text()))
        } else {
            #expect(body.mismatches(in: try VectorJSON(parsing: reply.body)) == [])
        }
        try expect.finish()
        try members.finish()
    }

    /// Reads one of the upstream's responses or a transport failure.
    private static func reading(_ members: inout VectorMembers, for kind: Target.Kind, now: Int) throws -> V1Reading {
        if let word = try members.takeIfPresent("transport")?.text() {
            return V1Reading(transportFailure: .outcomeUnknown, upstreamCode: word)
        }
        let mayBeGroup = kind == .token || kind == .group
        return V1ResponseReader.read(try UpstreamResponse(&members), for: kind, mayBeGroup: mayBeGroup, now: now)
    }

    @Test("Local errors keep their index for any result of the other tokens")
    func localErrors() throws {
        let request = try LegacyRequestDecoder.decode(
            ByteBuffer(string: #"{"registration_ids": ["", "a", "/topics/x", "b"]}"#)
        )
        let writer = LegacyReplyWriter(answering: request, format: .json, multicastID: 7)
        let sent = writer.reply(with: [
            .accepted(Acceptance(messageID: "m1")), .rejected(Rejection(code: .upstreamUnavailable, retryAfter: 9)),
        ])
        try Self.expect(
            sent,
            success: 1,
            failure: 3,
            #"{"error": "MissingRegistration"}, {"message_id": "m1"}, {"error": "InvalidRegistration"}, "#
                + #"{"error": "Unavailable"}"#
        )
        #expect(sent.retryAfter == nil)
        let refused = writer.reply(refusing: Rejection(code: .overloaded, retryAfter: 2))
        try Self.expect(
            refused,
            success: 0,
            failure: 4,
            #"{"error": "MissingRegistration"}, {"error": "Unavailable"}, {"error": "InvalidRegistration"}, "#
                + #"{"error": "Unavailable"}"#
        )
        #expect(refused.retryAfter == 2)
        let body = ByteBuffer(string: #"{"registration_ids": ["", "/topics/x"]}"#)
        let nothingSent = LegacyReplyWriter(
            answering: try LegacyRequestDecoder.decode(body),
            format: .json,
            multicastID: 7
        )
        try Self.expect(
            nothingSent.reply(with: []),
            success: 0,
            failure: 2,
            #"{"error": "MissingRegistration"}, {"error": "InvalidRegistration"}"#
        )
    }

    @Test("A missing outcome is an error, and surplus outcomes are ignored")
    func numbers() throws {
        let writer = LegacyReplyWriter(shape: .results(count: 2), format: .json, multicastID: 7)
        let accepted = RecipientOutcome.accepted(Acceptance(messageID: "m"))
        try Self.expect(
            writer.reply(with: [accepted]),
            success: 1,
            failure: 1,
            #"{"message_id": "m"}, {"error": "InternalServerError"}"#
        )
        try Self.expect(
            writer.reply(with: [accepted, accepted, accepted]),
            success: 2,
            failure: 0,
            #"{"message_id": "m"}, {"message_id": "m"}"#
        )
    }

    @Test("A replacement token from a legacy upstream is passed on and counted")
    func replacements() throws {
        let writer = LegacyReplyWriter(shape: .results(count: 2), format: .json, multicastID: 7)
        try Self.expect(
            writer.reply(with: [
                .accepted(Acceptance(messageID: "m", replacementToken: "new")), .rejected(.unregistered),
            ]),
            success: 1,
            failure: 1,
            canonical: 1,
            #"{"message_id": "m", "registration_id": "new"}, {"error": "NotRegistered"}"#
        )
    }

    @Test(
        "Topic message ids are numbers",
        arguments: [
            ("1", "1"), ("9223372036854775807", "9223372036854775807"), ("6928422829871654", "6928422829871654"),
            ("fake_message_id", "2132958063090717"),
            // The first eight bytes of SHA-256, modulo 2⁵³.
            ("9223372036854775808", "733308802677283"), ("0", "3636527331045176"), ("007", "8810357472300300"),
            ("10000000000000000000", "1064834948294501"),
        ]
    )
    func topicIDs(id: String, number: String) throws {
        let writer = LegacyReplyWriter(shape: .single, format: .json, multicastID: 7)
        let reply = writer.reply(with: [.accepted(Acceptance(messageID: id))])
        #expect(String(buffer: reply.body) == #"{"message_id":\#(number)}"#)
    }

    @Test("A JSON group reply has the counts and failed members, a form reply an id or an error")
    func groups() throws {
        let json = LegacyReplyWriter(shape: .results(count: 1), format: .json, multicastID: 7)
        let form = LegacyReplyWriter(shape: .results(count: 1), format: .form, multicastID: 7)
        let whole = GroupOutcome(success: 2, failure: 0, failedTokens: [])
        try Self.expect(json.reply(with: whole), 200, #"{"success": 2, "failure": 0}"#)
        #expect(String(buffer: form.reply(with: whole).body) == "id=0")
        let part = GroupOutcome(success: 1, failure: 2, failedTokens: ["a", "b"])
        try Self.expect(
            json.reply(with: part),
            200,
            #"{"success": 1, "failure": 2, "failed_registration_ids": ["a", "b"]}"#
        )
        #expect(String(buffer: form.reply(with: part).body) == "id=0")
        let none = form.reply(with: GroupOutcome(success: 0, failure: 1, failedTokens: ["a"]))
        #expect(none.status == 503)
        #expect(String(buffer: none.body) == "Error=Unavailable")
    }

    @Test(
        "The reply to a refused request depends on its code and format",
        arguments: [
            (.unauthenticated, .json, 401, "Unauthorized", nil), (.forbidden, .form, 401, "Unauthorized", nil),
            (.idempotencyConflict, .json, 400, #"{"error":"InvalidParameters"}"#, nil),
            (.idempotencyConflict, .form, 400, "Error=InvalidParameters", nil),
            (.idempotencyInProgress, .json, 503, #"{"error":"Unavailable"}"#, 1),
            (.idempotencyInProgress, .form, 503, "Error=Unavailable", 1),
            (.invalidField, .json, 400, #"{"error":"InvalidParameters"}"#, nil),
            (.invalidField, .form, 200, "Error=InvalidParameters", nil),
            (.upstreamInternal, .json, 200, #"{"error":"InternalServerError"}"#, nil),
            (.upstreamCredentials, .form, 500, "Error=InternalServerError", nil),
            (.outcomeUnknown, .json, 200, #"{"error":"InternalServerError"}"#, nil),
            (.tenantRateExceeded, .json, 200, #"{"error":"Unavailable"}"#, nil),
        ] as [(OutcomeCode, LegacyFormat, Int, String, Int?)]
    )
    func refusals(code: OutcomeCode, format: LegacyFormat, status: Int, body: String, retryAfter: Int?) {
        let writer = LegacyReplyWriter(shape: .single, format: format, multicastID: 7)
        let reply = writer.reply(refusing: Rejection(code: code))
        #expect(reply.status == status)
        #expect(String(buffer: reply.body) == body)
        #expect(reply.retryAfter == retryAfter)
    }

    @Test("A legacy upstream's error names reach a legacy client, deprecated ones as current names")
    func ownNames() throws {
        let names = [
            "InvalidTtl", "InvalidApnsCredential", "DeviceQuotaExceeded", "NotRegistered", "MissingCollapseKey",
        ]
        let results = names.map { #"{"error": "\#($0)"}"# }.joined(separator: ", ")
        let response = UpstreamResponse(200, #"{"multicast_id": 1, "results": [\#(results)]}"#)
        let result = LegacyResponseReader.read(response, for: .tokens(names), now: 0)
        let writer = LegacyReplyWriter(shape: .results(count: names.count), format: .json, multicastID: 7)
        let reply = Self.reply(writer, to: result)
        try Self.expect(
            reply,
            success: 0,
            failure: 5,
            #"{"error": "InvalidTtl"}, {"error": "InvalidApnsCredential"}, {"error": "DeviceMessageRateExceeded"}, "#
                + #"{"error": "NotRegistered"}, {"error": "InvalidParameters"}"#
        )
    }

    // MARK: Requests refused before sending

    private static func reply(_ refusal: Refusal, _ shape: LegacyReplyWriter.Shape) -> Reply {
        LegacyReplyWriter(shape: shape, format: .json, multicastID: 42).reply(to: refusal)
    }

    @Test("A bad value gets a JSON reply with the reason, and malformed JSON gets plain text")
    func reasons() throws {
        let value = Self.reply(Refusal(.invalidField, "why"), .single)
        try Self.expect(value, 400, #"{"error": "InvalidParameters", "reason": "why"}"#)
        #expect(value.contentType == "application/json; charset=UTF-8")
        #expect(value.code == .invalidField)
        let text = Self.reply(Refusal(.malformedJSON, "oops at position 3."), .single)
        #expect(text.status == 400)
        #expect(text.contentType == "text/plain; charset=UTF-8")
        #expect(String(buffer: text.body) == "JSON_PARSING_ERROR: oops at position 3.\n")
    }

    @Test("The response reader reads the gateway's own refusals back with their code")
    func readBack() {
        func result(_ refusal: Refusal, _ shape: LegacyReplyWriter.Shape = .single) -> SendResult {
            let reply = Self.reply(refusal, shape)
            let response = UpstreamResponse(status: reply.status, retryAfter: nil, body: reply.body)
            return LegacyResponseReader.read(response, for: .token("t"), now: 0)
        }
        for code in [OutcomeCode.malformedJSON, .invalidField, .invalidDataKey, .messageTooBig] {
            #expect(result(Refusal(code, "x")).refusal?.code == code)
        }
        let listed = result(Refusal(.invalidTarget), .results(count: 1))
        #expect(listed.answer == .recipients([.rejected(.invalidTarget)]))
    }

    /// Writes the reply to the result of an upstream call.
    private static func reply(_ writer: LegacyReplyWriter, to result: SendResult) -> Reply {
        switch result.answer {
        case .recipients(let outcomes): writer.reply(with: outcomes)
        case .group(let group): writer.reply(with: group)
        case .refused(let refusal): writer.reply(refusing: refusal.rejection)
        }
    }

    private static func expect(
        _ reply: Reply,
        success: Int,
        failure: Int,
        canonical: Int = 0,
        _ results: String
    ) throws {
        let counts = #""success": \#(success), "failure": \#(failure), "canonical_ids": \#(canonical)"#
        try Self.expect(reply, 200, #"{"multicast_id": 7, \#(counts), "results": [\#(results)]}"#)
    }

    private static func expect(_ reply: Reply, _ status: Int, _ body: String) throws {
        #expect(reply.status == status)
        #expect(try VectorJSON(parsing: body).mismatches(in: VectorJSON(parsing: reply.body)) == [])
    }
}
