import FCMModel

extension OutcomeCode {
    /// What a problem says where nothing more is known of this occurrence: the cause and what can be done about it.
    var explanation: String {
        switch self {
        case .malformedJSON: "Send one JSON object, in UTF-8"
        case .duplicateKey: "Name each member of an object once"
        case .tooDeep: "Nest objects and arrays less deeply"
        case .tooManyMembers: "Send fewer members"
        case .invalidField: "Correct the field's value"
        case .unknownField: "Leave the field out, or correct its name"
        case .invalidTarget: "Name one target in the form that its kind has"
        case .invalidDataKey: "Rename the data key: FCM keeps it to itself"
        case .messageTooBig: "Send less in notification and data"
        case .invalidToken: "Send the token exactly as the device reported it; do not delete it for this alone"
        case .unregistered: "The app was removed from the device or got a new token; delete this one"
        case .senderMismatch: "Send with the credentials of the sender that the device registered with"
        case .packageMismatch: "Correct restricted_package_name, or leave it out"
        case .unauthenticated: "Send valid credentials in Authorization"
        case .forbidden: "Ask an operator for credentials that allow this"
        case .notFound: "Check the address"
        case .conflict: "Look at the present state and decide anew"
        case .methodNotAllowed: "Use a method that Allow names"
        case .headerTooLarge: "Send fewer or shorter header fields"
        case .uriTooLong: "Send a shorter address"
        case .badRequest: "Correct the request"
        case .bodyTooLarge: "Send a smaller body"
        case .unsupportedMediaType: "Send the body as application/json"
        case .requestTimeout: "Send the whole request without a long pause"
        case .tooManyTopics: "Unsubscribe the device from other topics first: FCM allows 2,000 for each"
        case .groupTooLarge: "A device group holds at most 20 tokens"
        case .noValidTokens: "Check the tokens"
        case .groupConflict: "Repeat when the other change is done"
        case .idempotencyConflict: "Use a new idempotency key for a new request"
        case .idempotencyInProgress: "Repeat when the first request is done"
        case .tenantRateExceeded: "The tenant's quota is used up; wait before the next message"
        case .deviceRateExceeded: "The device's quota is used up; wait before the next message to it"
        case .topicRateExceeded: "The topic's quota is used up; wait before the next message to it"
        case .upstreamCredentials: "FCM refuses the tenant's credentials; an operator must check them"
        case .upstreamProtocol: "An operator must check the endpoint that the tenant's messages go to"
        case .upstreamInternal: "FCM reported an error of its own; repeat after a while"
        case .upstreamUnavailable, .overloaded: "Repeat after a while"
        case .outcomeUnknown: "Nobody knows whether the message was delivered; repeating it may deliver it twice"
        case .auditUnavailable: "Nothing is done that can't be recorded; repeat after a while"
        case .internalError: "An operator must look into the log"
        }
    }
}
