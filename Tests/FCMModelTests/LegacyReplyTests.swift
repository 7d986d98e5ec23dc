import FCMModel
import NIOCore
import Testing

@Suite("LegacyReply")
struct LegacyReplyTests {
    private static let invalidTTL = Refusal(.invalidField, legacyName: .invalidTTL)

    private static func reply(_ refusal: Refusal, _ shape: LegacyReply.Shape) -> LegacyReply {
        LegacyReply(refusing: refusal, format: .json, shape: shape, multicastID: 42)
    }

    @Test(
        "Every refusal of a request has the answer of the protocol",
        arguments: [
            (Refusal(.invalidField, "why"), .single, 400, #"{"error": "InvalidParameters", "reason": "why"}"#),
            (Self.invalidTTL, .single, 200, #"{"error": "InvalidTtl"}"#),
            (Refusal(.messageTooBig), .single, 200, #"{"error": "MessageTooBig"}"#),
            (
                Refusal(.invalidDataKey), .results(count: 2), 200,
                """
                {"multicast_id": 42, "success": 0, "failure": 2, "canonical_ids": 0,
                 "results": [{"error": "InvalidDataKey"}, {"error": "InvalidDataKey"}]}
                """
            ),
            (
                Refusal(.messageTooBig), .results(count: 1), 200,
                """
                {"multicast_id": 42, "success": 0, "failure": 1, "canonical_ids": 0,
                 "results": [{"error": "MessageTooBig"}]}
                """
            ),
        ] as [(Refusal, LegacyReply.Shape, Int, String)]
    )
    func json(refusal: Refusal, shape: LegacyReply.Shape, status: Int, expected: String) throws {
        let reply = Self.reply(refusal, shape)
        #expect(reply.status == status)
        #expect(reply.contentType == "application/json; charset=UTF-8")
        #expect(reply.code == refusal.code)
        #expect(try VectorJSON(parsing: expected).mismatches(in: VectorJSON(parsing: reply.body)) == [])
    }

    @Test("A body that is no JSON is answered with text in the service's own words")
    func text() {
        let reply = Self.reply(Refusal(.malformedJSON, "oops at position 3."), .single)
        #expect(reply.status == 400)
        #expect(reply.contentType == "text/plain; charset=UTF-8")
        #expect(String(buffer: reply.body) == "JSON_PARSING_ERROR: oops at position 3.\n")
    }

    @Test("The gateway understands its own refusals as it meant them")
    func readBack() {
        func code(_ refusal: Refusal, _ shape: LegacyReply.Shape = .single) -> UpstreamResult.Answer {
            let reply = Self.reply(refusal, shape)
            let response = LegacyResponse(status: reply.status, retryAfter: nil, body: reply.body)
            return LegacyResponseReader.read(response, for: .token("t"), now: 0).answer
        }
        #expect(code(Refusal(.malformedJSON, "x")) == .failed(.malformedJSON))
        #expect(code(Refusal(.invalidField, "x")) == .failed(.invalidField))
        #expect(code(Refusal(.invalidTarget), .results(count: 1)) == .recipients([.rejected(.invalidTarget)]))
        #expect(code(Refusal(.invalidDataKey)) == .failed(.invalidDataKey))
        #expect(code(Refusal(.messageTooBig)) == .failed(.messageTooBig))
    }
}
