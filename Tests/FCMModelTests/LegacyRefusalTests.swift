import FCMModel
import NIOCore
import Testing

@Suite("LegacyRefusal")
struct LegacyRefusalTests {
    @Test(
        "Every refusal has the answer of the protocol",
        arguments: [
            (.invalidParameters(reason: "why"), 400, #"{"error": "InvalidParameters", "reason": "why"}"#),
            (.error(.invalidTTL, shape: .single), 200, #"{"error": "InvalidTtl"}"#),
            (.messageTooBig(payloadBytes: 2_049, shape: .single), 200, #"{"error": "MessageTooBig"}"#),
            (
                .error(.invalidDataKey, shape: .results(count: 2)), 200,
                """
                {"multicast_id": 42, "success": 0, "failure": 2, "canonical_ids": 0,
                 "results": [{"error": "InvalidDataKey"}, {"error": "InvalidDataKey"}]}
                """
            ),
            (
                .messageTooBig(payloadBytes: 4_097, shape: .results(count: 1)), 200,
                """
                {"multicast_id": 42, "success": 0, "failure": 1, "canonical_ids": 0,
                 "results": [{"error": "MessageTooBig"}]}
                """
            ),
        ] as [(LegacyRefusal, Int, String)]
    )
    func json(refusal: LegacyRefusal, status: Int, expected: String) throws {
        let reply = refusal.reply(multicastID: 42)
        #expect(reply.status == status)
        #expect(reply.contentType == "application/json; charset=UTF-8")
        #expect(try VectorJSON(parsing: expected).mismatches(in: VectorJSON(parsing: reply.body)) == [])
    }

    @Test("A body that is no JSON is answered with text in the service's own words")
    func text() {
        let reply = LegacyRefusal.invalidJSON(reason: "oops at position 3.").reply(multicastID: 42)
        #expect(reply.status == 400)
        #expect(reply.contentType == "text/plain; charset=UTF-8")
        #expect(String(buffer: reply.body) == "JSON_PARSING_ERROR: oops at position 3.\n")
    }

    @Test("The gateway understands its own refusals as it meant them")
    func readBack() {
        func code(_ refusal: LegacyRefusal) -> UpstreamResult.Answer {
            let reply = refusal.reply(multicastID: 42)
            let response = LegacyResponse(status: reply.status, retryAfter: nil, body: reply.body)
            return LegacyResponseReader.read(response, for: .token("t"), now: 0).answer
        }
        #expect(code(.invalidJSON(reason: "x")) == .failed(.malformedJSON))
        #expect(code(.invalidParameters(reason: "x")) == .failed(.invalidField))
        let missing = LegacyRefusal.error(.missingRegistration, shape: .results(count: 1))
        #expect(code(missing) == .recipients([.rejected(.invalidTarget)]))
        #expect(code(.error(.invalidDataKey, shape: .single)) == .failed(.invalidDataKey))
        #expect(code(.messageTooBig(payloadBytes: 1, shape: .single)) == .failed(.messageTooBig))
    }
}
