import FCMModel
import Testing

@Suite("OutcomeCode")
struct OutcomeCodeTests {
    /// The contract's table: code, whether a repeat can help, and who must do what.
    private static let contract: [(String, isRetryable: Bool, action: String?)] = [
        ("malformed_json", false, "fix_request"),
        ("duplicate_key", false, "fix_request"),
        ("too_deep", false, "fix_request"),
        ("too_many_members", false, "fix_request"),
        ("invalid_field", false, "fix_request"),
        ("unknown_field", false, "fix_request"),
        ("invalid_target", false, "fix_request"),
        ("invalid_data_key", false, "fix_request"),
        ("message_too_big", false, "shrink_payload"),
        ("invalid_token", false, "fix_request"),
        ("unregistered", false, "delete_token"),
        ("sender_mismatch", false, "use_matching_sender"),
        ("package_mismatch", false, "fix_request"),
        ("unauthenticated", false, "fix_credentials"),
        ("forbidden", false, "request_scope"),
        ("not_found", false, "fix_request"),
        ("method_not_allowed", false, "fix_request"),
        ("header_too_large", false, "fix_request"),
        ("uri_too_long", false, "fix_request"),
        ("bad_request", false, "fix_request"),
        ("too_many_topics", false, "fix_request"),
        ("group_too_large", false, "fix_request"),
        ("no_valid_tokens", false, "fix_request"),
        ("group_conflict", true, "wait"),
        ("idempotency_conflict", false, nil),
        ("idempotency_in_progress", true, nil),
        ("body_too_large", false, "fix_request"),
        ("unsupported_media_type", false, "fix_request"),
        ("tenant_rate_exceeded", true, "wait"),
        ("device_rate_exceeded", true, "wait"),
        ("topic_rate_exceeded", true, "wait"),
        ("upstream_credentials", false, "call_operator"),
        ("upstream_protocol", false, "call_operator"),
        ("upstream_unavailable", true, "wait"),
        ("overloaded", true, "wait"),
        ("upstream_internal", true, "wait"),
        ("outcome_unknown", false, nil),
        ("audit_unavailable", true, "wait"),
        // Beside the table of sending: the admin listener's conflicts, a request that came too slowly, and our faults.
        ("conflict", false, "fix_request"),
        ("request_timeout", true, "wait"),
        ("internal_error", false, "call_operator"),
    ]

    @Test("Every code says whether a repeat can help, and who must do what", arguments: Self.contract)
    func table(name: String, isRetryable: Bool, action: String?) throws {
        let code = try #require(OutcomeCode(rawValue: name))
        #expect(code.isRetryable == isRetryable)
        #expect(code.action?.rawValue == action)
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
