import FCMModel
import Testing

@testable import GatewayHTTP

struct OutcomeCodeTests {
    /// The contract's table: the code, its status, whether repeating helps, and who must do what.
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
        ("unsupported_media_type", 415, false, "fix_request"), ("tenant_rate_exceeded", 429, true, "wait"),
        ("device_rate_exceeded", 429, true, "wait"), ("topic_rate_exceeded", 429, true, "wait"),
        ("upstream_credentials", 502, false, "call_operator"), ("upstream_protocol", 502, false, "call_operator"),
        ("upstream_unavailable", 503, true, "wait"), ("overloaded", 503, true, "wait"),
        ("upstream_internal", 502, true, "wait"), ("outcome_unknown", 504, false, nil),
        ("audit_unavailable", 503, true, "wait"),
        // Beside the table of sending: the admin listener's conflicts, a request that came too slowly, and our faults.
        ("conflict", 409, false, "fix_request"), ("request_timeout", 408, true, "wait"),
        ("internal_error", 500, false, "call_operator"),
    ]

    @Test("Every code of the contract has its status, its advice and its delay")
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

    @Test("Titles tell the codes apart")
    func titles() {
        let titles = OutcomeCode.allCases.map(\.title)
        #expect(Set(titles).count == OutcomeCode.allCases.count)
        #expect(Set(OutcomeCode.allCases.map(\.explanation)).allSatisfy { !$0.isEmpty })
    }

    @Test("The contract names every code, and only once")
    func completeness() {
        #expect(Self.contract.map(\.0).sorted() == OutcomeCode.allCases.map(\.rawValue).sorted())
    }

    @Test("Only the death of a token asks for its deletion")
    func deletion() {
        #expect(OutcomeCode.allCases.filter { $0.action == .deleteToken } == [.unregistered])
    }
}
