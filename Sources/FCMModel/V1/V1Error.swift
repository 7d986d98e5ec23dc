/// An error as the v1 facade tells it (`google.rpc.Status`); which one answers which code is in ``OutcomeCode``'s table.
struct V1Error: Sendable, Hashable {
    /// When a client is told to come back.
    enum Delay: Hashable {
        case never
        /// Where the cause names a delay.
        case named
        /// The cause's delay, or so many seconds.
        case seconds(Int)
    }

    /// The canonical code, which decides the HTTP status.
    let status: V1Status
    /// FCM's own code; `nil` where Google's front end would speak instead of FCM.
    let code: V1ErrorCode?
    /// A sentence for a developer.
    let message: String
    let delay: Delay

    init(_ status: V1Status, _ code: V1ErrorCode?, _ message: String, delay: Delay = .never) {
        self.status = status
        self.code = code
        self.message = message
        self.delay = delay
    }

    static var notFound: Self { Self(.notFound, .unregistered, "Requested entity was not found.") }
    static var senderMismatch: Self { Self(.permissionDenied, .senderIDMismatch, "SenderId mismatch") }
    static var invalidArgument: Self {
        Self(.invalidArgument, .invalidArgument, "Request contains an invalid argument.")
    }
    static var badRequest: Self { Self(.invalidArgument, nil, "Request contains an invalid argument.") }
    static var tooManyTopics: Self { Self(.invalidArgument, nil, "The registration follows too many topics.") }
    static var quota: Self { Self(.resourceExhausted, .quotaExceeded, "Quota exceeded.", delay: .seconds(60)) }
    static var unauthenticated: Self {
        Self(.unauthenticated, nil, "Request had invalid authentication credentials.")
    }
    /// A foreign project and one that does not exist must look the same.
    static var permissionDenied: Self { Self(.permissionDenied, nil, "The caller does not have permission") }
    static var thirdPartyAuth: Self {
        Self(.unauthenticated, .thirdPartyAuthError, "Auth error from APNS or Web Push Service")
    }
    /// Also for a refused credential of ours: at a 401 the caller would refresh its key.
    static var `internal`: Self { Self(.internal, .internal, "Internal error encountered.", delay: .named) }
    static var unavailable: Self {
        Self(.unavailable, .unavailable, "The service is currently unavailable.", delay: .seconds(5))
    }
    static var deadlineExceeded: Self {
        Self(.deadlineExceeded, nil, "The message was sent, but no answer came: it may have been delivered.")
    }
    static var aborted: Self {
        Self(.aborted, nil, "The same request is still being served.", delay: .seconds(1))
    }
}

/// The canonical error codes of Google's services (`google.rpc.Code`) that the v1 facade answers with.
package enum V1Status: String, Sendable, Hashable, CaseIterable {
    case invalidArgument = "INVALID_ARGUMENT"
    case unauthenticated = "UNAUTHENTICATED"
    case permissionDenied = "PERMISSION_DENIED"
    case notFound = "NOT_FOUND"
    case aborted = "ABORTED"
    case resourceExhausted = "RESOURCE_EXHAUSTED"
    case `internal` = "INTERNAL"
    case unavailable = "UNAVAILABLE"
    case deadlineExceeded = "DEADLINE_EXCEEDED"

    /// The HTTP status that Google's front end gives to the code.
    package var httpStatus: Int {
        switch self {
        case .invalidArgument: 400
        case .unauthenticated: 401
        case .permissionDenied: 403
        case .notFound: 404
        case .aborted: 409
        case .resourceExhausted: 429
        case .internal: 500
        case .unavailable: 503
        case .deadlineExceeded: 504
        }
    }
}

/// The error codes that FCM itself gives in a v1 answer (`FcmError`), as far as they are known.
///
/// FCM may add others at any time; an unknown one is classified by the HTTP status.
package enum V1ErrorCode: String, Sendable, Hashable, CaseIterable {
    case invalidArgument = "INVALID_ARGUMENT"
    case unregistered = "UNREGISTERED"
    case senderIDMismatch = "SENDER_ID_MISMATCH"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case unavailable = "UNAVAILABLE"
    case `internal` = "INTERNAL"
    case thirdPartyAuthError = "THIRD_PARTY_AUTH_ERROR"
    case unspecifiedError = "UNSPECIFIED_ERROR"

    /// Recognises a code as it stands on the wire, the older name of ``thirdPartyAuthError`` included.
    package init?(wireText: String) {
        if wireText == "APNS_AUTH_ERROR" {
            self = .thirdPartyAuthError
        } else {
            self.init(rawValue: wireText)
        }
    }
}

/// One entry of `google.rpc.BadRequest`: which field is wrong, and why.
struct V1FieldViolation {
    /// The path to the field, such as `message.android.ttl`; empty for the body as a whole.
    var field: String
    /// For a developer.
    var description: String
}
