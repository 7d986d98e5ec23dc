import FCMModel
import HTTPTypes

extension OutcomeCode {
    /// The HTTP status that a problem with this code has.
    var httpStatus: HTTPResponse.Status {
        switch self {
        case .malformedJSON, .duplicateKey, .tooDeep, .tooManyMembers, .badRequest: .badRequest
        case .unauthenticated: .unauthorized
        case .forbidden: .forbidden
        case .notFound: .notFound
        case .methodNotAllowed: .methodNotAllowed
        case .requestTimeout: .requestTimeout
        case .conflict, .groupConflict, .idempotencyInProgress: .conflict
        case .unregistered: .gone
        case .bodyTooLarge: .contentTooLarge
        case .uriTooLong: .uriTooLong
        case .unsupportedMediaType: .unsupportedMediaType
        case .invalidField, .unknownField, .invalidTarget, .invalidDataKey, .messageTooBig, .invalidToken,
            .senderMismatch, .packageMismatch, .tooManyTopics, .groupTooLarge, .noValidTokens, .idempotencyConflict:
            .unprocessableContent
        case .tenantRateExceeded, .deviceRateExceeded, .topicRateExceeded: .tooManyRequests
        case .headerTooLarge: .requestHeaderFieldsTooLarge
        case .internalError: .internalServerError
        case .upstreamCredentials, .upstreamProtocol, .upstreamInternal: .badGateway
        case .upstreamUnavailable, .overloaded, .auditUnavailable: .serviceUnavailable
        case .outcomeUnknown: .gatewayTimeout
        }
    }

    /// The problem's title: the same words for every occurrence (RFC 9457, 3.1.3).
    var title: String {
        switch self {
        case .malformedJSON: "The body is not valid JSON"
        case .duplicateKey: "The body names one member twice"
        case .tooDeep: "The body is nested too deeply"
        case .tooManyMembers: "The body has too many members"
        case .invalidField: "A field has a value that is not allowed"
        case .unknownField: "The body has a field that is not known"
        case .invalidTarget: "The message has no valid target"
        case .invalidDataKey: "A data key is reserved"
        case .messageTooBig: "The message's payload is too big"
        case .invalidToken: "The registration token is malformed"
        case .unregistered: "The device is no longer registered"
        case .senderMismatch: "The device is registered with another sender"
        case .packageMismatch: "The device's app is another package"
        case .unauthenticated: "The credentials are missing or not valid"
        case .forbidden: "The credentials do not allow this"
        case .notFound: "There is nothing at this address"
        case .conflict: "The present state does not allow this"
        case .methodNotAllowed: "The method is not allowed here"
        case .headerTooLarge: "The request's header is too large"
        case .uriTooLong: "The request's address is too long"
        case .badRequest: "The request is malformed"
        case .bodyTooLarge: "The request's body is too large"
        case .unsupportedMediaType: "The body's media type is not supported"
        case .requestTimeout: "The request did not arrive in time"
        case .tooManyTopics: "The device is subscribed to too many topics"
        case .groupTooLarge: "The device group would be too large"
        case .noValidTokens: "None of the tokens is valid"
        case .groupConflict: "The device group is being changed"
        case .idempotencyConflict: "The idempotency key was used for another request"
        case .idempotencyInProgress: "The first request with this idempotency key is still running"
        case .tenantRateExceeded: "The tenant sends too fast"
        case .deviceRateExceeded: "The device receives too many messages"
        case .topicRateExceeded: "The topic receives too many messages"
        case .upstreamCredentials: "The tenant's credentials for FCM are missing or refused"
        case .upstreamProtocol: "FCM's answer can't be understood"
        case .upstreamUnavailable: "FCM can't be reached or is overloaded"
        case .upstreamInternal: "FCM failed"
        case .overloaded: "The gateway is overloaded"
        case .outcomeUnknown: "The message was sent, but FCM did not answer"
        case .auditUnavailable: "The audit log can't be written, so nothing was done"
        case .internalError: "The gateway failed"
        }
    }
}
