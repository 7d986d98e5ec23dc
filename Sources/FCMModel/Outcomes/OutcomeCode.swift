/// What became of a request or of one recipient, in the words of the REST contract.
///
/// The raw value is the `code` member of a problem and of a result; it is stable and safe to show anybody.
package enum OutcomeCode: String, Sendable, Hashable, CaseIterable {
    // The body as text.
    case malformedJSON = "malformed_json"
    case duplicateKey = "duplicate_key"
    case tooDeep = "too_deep"
    case tooManyMembers = "too_many_members"

    // The message.
    case invalidField = "invalid_field"
    case unknownField = "unknown_field"
    case invalidTarget = "invalid_target"
    case invalidDataKey = "invalid_data_key"
    case messageTooBig = "message_too_big"

    // The recipient.
    case invalidToken = "invalid_token"
    case unregistered
    case senderMismatch = "sender_mismatch"
    case packageMismatch = "package_mismatch"

    // The caller.
    case unauthenticated
    case forbidden
    case notFound = "not_found"
    case conflict

    // HTTP itself.
    case methodNotAllowed = "method_not_allowed"
    case headerTooLarge = "header_too_large"
    case uriTooLong = "uri_too_long"
    case badRequest = "bad_request"
    case bodyTooLarge = "body_too_large"
    case unsupportedMediaType = "unsupported_media_type"
    case requestTimeout = "request_timeout"

    // Topics.
    case tooManyTopics = "too_many_topics"

    // Device groups.
    case groupTooLarge = "group_too_large"
    case noValidTokens = "no_valid_tokens"
    case groupConflict = "group_conflict"

    // Idempotency.
    case idempotencyConflict = "idempotency_conflict"
    case idempotencyInProgress = "idempotency_in_progress"

    // Quotas.
    case tenantRateExceeded = "tenant_rate_exceeded"
    case deviceRateExceeded = "device_rate_exceeded"
    case topicRateExceeded = "topic_rate_exceeded"

    // Upstream and the gateway itself.
    case upstreamCredentials = "upstream_credentials"
    case upstreamProtocol = "upstream_protocol"
    case upstreamUnavailable = "upstream_unavailable"
    case upstreamInternal = "upstream_internal"
    case overloaded
    case outcomeUnknown = "outcome_unknown"
    case auditUnavailable = "audit_unavailable"
    case internalError = "internal_error"
}

extension OutcomeCode {
    /// Whether repeating the unchanged request later can succeed.
    package var isRetryable: Bool {
        switch self {
        case .groupConflict, .idempotencyInProgress, .requestTimeout,
            .tenantRateExceeded, .deviceRateExceeded, .topicRateExceeded,
            .upstreamUnavailable, .upstreamInternal, .overloaded, .auditUnavailable:
            true
        case .malformedJSON, .duplicateKey, .tooDeep, .tooManyMembers,
            .invalidField, .unknownField, .invalidTarget, .invalidDataKey, .messageTooBig,
            .invalidToken, .unregistered, .senderMismatch, .packageMismatch,
            .unauthenticated, .forbidden, .notFound, .conflict,
            .methodNotAllowed, .headerTooLarge, .uriTooLong, .badRequest, .bodyTooLarge, .unsupportedMediaType,
            .tooManyTopics, .groupTooLarge, .noValidTokens, .idempotencyConflict,
            .upstreamCredentials, .upstreamProtocol, .outcomeUnknown, .internalError:
            false
        }
    }

    /// Who must do what before a repeat makes sense; `nil` where nothing general can be advised.
    package var action: CallerAction? {
        switch self {
        case .malformedJSON, .duplicateKey, .tooDeep, .tooManyMembers,
            .invalidField, .unknownField, .invalidTarget, .invalidDataKey,
            .invalidToken, .packageMismatch, .notFound, .conflict,
            .methodNotAllowed, .headerTooLarge, .uriTooLong, .badRequest, .bodyTooLarge, .unsupportedMediaType,
            .tooManyTopics, .groupTooLarge, .noValidTokens:
            .fixRequest
        case .messageTooBig:
            .shrinkPayload
        case .unregistered:
            .deleteToken
        case .senderMismatch:
            .useMatchingSender
        case .unauthenticated:
            .fixCredentials
        case .forbidden:
            .requestScope
        case .requestTimeout, .groupConflict,
            .tenantRateExceeded, .deviceRateExceeded, .topicRateExceeded,
            .upstreamUnavailable, .upstreamInternal, .overloaded, .auditUnavailable:
            .wait
        case .upstreamCredentials, .upstreamProtocol, .internalError:
            .callOperator
        case .idempotencyConflict, .idempotencyInProgress, .outcomeUnknown:
            nil
        }
    }
}
