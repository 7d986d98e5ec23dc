extension OutcomeCode {
    /// What the legacy protocol calls the reason.
    ///
    /// T9 has few names: what callers must mend becomes `InvalidParameters`, what they can wait for `Unavailable`, what
    /// only operators can mend `InternalServerError`, so that nobody deletes a token or changes a key because of it
    /// (TB-OWNAUTH). An exhausted quota of the tenant is nobody's device and no topic, hence `Unavailable`.
    package var legacyErrorName: LegacyErrorName {
        switch self {
        case .malformedJSON, .duplicateKey, .tooDeep, .tooManyMembers, .invalidField, .unknownField,
            .unauthenticated, .forbidden, .notFound, .conflict,
            .methodNotAllowed, .headerTooLarge, .uriTooLong, .badRequest, .bodyTooLarge, .unsupportedMediaType,
            .tooManyTopics, .groupTooLarge, .noValidTokens, .idempotencyConflict:
            .invalidParameters
        case .invalidTarget: .missingRegistration
        case .invalidDataKey: .invalidDataKey
        case .messageTooBig: .messageTooBig
        case .invalidToken: .invalidRegistration
        case .unregistered: .notRegistered
        case .senderMismatch: .mismatchSenderID
        case .packageMismatch: .invalidPackageName
        case .deviceRateExceeded: .deviceMessageRateExceeded
        case .topicRateExceeded: .topicsMessageRateExceeded
        case .tenantRateExceeded, .upstreamUnavailable, .overloaded, .auditUnavailable, .requestTimeout,
            .groupConflict, .idempotencyInProgress:
            .unavailable
        case .upstreamCredentials, .upstreamProtocol, .upstreamInternal, .outcomeUnknown, .internalError:
            .internalServerError
        }
    }
}
