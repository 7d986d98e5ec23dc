extension V1Fault {
    /// The error that tells of a rejection in v1's words.
    init(_ rejection: Rejection) {
        switch rejection.code {
        case .unregistered:
            self.init(status: .notFound, code: .unregistered, message: "Requested entity was not found.")
        case .senderMismatch:
            self.init(status: .permissionDenied, code: .senderIDMismatch, message: "SenderId mismatch")
        case .invalidToken, .invalidTarget, .packageMismatch, .invalidDataKey, .messageTooBig, .invalidField,
            .unknownField, .idempotencyConflict:
            self.init(
                status: .invalidArgument,
                code: .invalidArgument,
                message: "Request contains an invalid argument.",
                violation: Self.violation(rejection)
            )
        case .malformedJSON, .duplicateKey, .tooDeep, .tooManyMembers, .conflict, .methodNotAllowed, .headerTooLarge,
            .uriTooLong, .badRequest, .bodyTooLarge, .unsupportedMediaType, .groupTooLarge, .noValidTokens:
            self.init(status: .invalidArgument, message: "Request contains an invalid argument.")
        case .tooManyTopics:
            self.init(status: .invalidArgument, message: "The registration follows too many topics.")
        case .tenantRateExceeded, .deviceRateExceeded, .topicRateExceeded:
            self.init(
                status: .resourceExhausted,
                code: .quotaExceeded,
                message: "Quota exceeded.",
                retryAfter: rejection.retryAfter ?? 60
            )
        case .unauthenticated:
            self.init(status: .unauthenticated, message: "Request had invalid authentication credentials.")
        case .forbidden, .notFound:
            // A foreign project and one that does not exist must look the same.
            self.init(status: .permissionDenied, message: "The caller does not have permission")
        case .upstreamCredentials where rejection.legacyErrorName == .invalidAPNSCredential:
            self.init(
                status: .unauthenticated,
                code: .thirdPartyAuthError,
                message: "Auth error from APNS or Web Push Service"
            )
        case .upstreamCredentials, .upstreamProtocol, .upstreamInternal, .internalError:
            // A refused credential of ours is no 401: the caller would refresh its key.
            self.init(
                status: .internal,
                code: .internal,
                message: "Internal error encountered.",
                retryAfter: rejection.retryAfter
            )
        case .upstreamUnavailable, .overloaded, .auditUnavailable, .requestTimeout:
            self.init(
                status: .unavailable,
                code: .unavailable,
                message: "The service is currently unavailable.",
                retryAfter: rejection.retryAfter ?? 5
            )
        case .outcomeUnknown:
            self.init(
                status: .deadlineExceeded,
                message: "The message was sent, but no answer came: it may have been delivered."
            )
        case .groupConflict, .idempotencyInProgress:
            self.init(
                status: .aborted,
                message: "The same request is still being served.",
                retryAfter: rejection.retryAfter ?? 1
            )
        }
    }

    /// The field at fault, where the reason concerns one.
    private static func violation(_ rejection: Rejection) -> V1FieldViolation? {
        switch rejection.legacyErrorName {
        case .invalidRegistration:
            V1FieldViolation(
                field: "message.token",
                description: "The registration token is not a valid FCM registration token"
            )
        case .missingRegistration:
            V1FieldViolation(field: "message", description: "Recipient of the message is not set.")
        case .invalidPackageName:
            V1FieldViolation(
                field: "message.android.restricted_package_name",
                description: "The token belongs to another package"
            )
        case .invalidTTL:
            V1FieldViolation(field: "message.android.ttl", description: "Invalid ttl")
        case .invalidDataKey:
            V1FieldViolation(field: "message.data", description: "Invalid data payload key")
        case .messageTooBig:
            V1FieldViolation(field: "message", description: "The message is too big")
        case .notRegistered, .mismatchSenderID, .invalidParameters, .unavailable, .internalServerError,
            .deviceMessageRateExceeded, .topicsMessageRateExceeded, .invalidAPNSCredential, .missingCollapseKey,
            .quotaExceeded, .deviceQuotaExceeded:
            nil
        }
    }
}
