/// The errors that the Instance ID API names, for one device of a batch or for a request as a whole.
package enum InstanceIDErrorName: String, Sendable, Hashable, CaseIterable {
    case notFound = "NOT_FOUND"
    case invalidArgument = "INVALID_ARGUMENT"
    case permissionDenied = "PERMISSION_DENIED"
    case tooManyTopics = "TOO_MANY_TOPICS"
    case resourceExhausted = "RESOURCE_EXHAUSTED"
    case deadlineExceeded = "DEADLINE_EXCEEDED"
    case `internal` = "INTERNAL"
    case unavailable = "UNAVAILABLE"
    case unauthenticated = "UNAUTHENTICATED"
    case unknown = "UNKNOWN"

    /// What the error means for the device that it is said of.
    var rejection: Rejection {
        switch self {
        case .notFound: Rejection(code: .unregistered)
        case .invalidArgument: Rejection(code: .invalidToken)
        case .permissionDenied: Rejection(code: .senderMismatch)
        case .tooManyTopics: Rejection(code: .tooManyTopics)
        case .resourceExhausted: Rejection(code: .tenantRateExceeded, limitedBy: .fcm)
        case .deadlineExceeded, .unavailable: Rejection(code: .upstreamUnavailable)
        case .internal, .unknown: Rejection(code: .upstreamInternal)
        case .unauthenticated: Rejection(code: .upstreamCredentials)
        }
    }

    /// The status of an answer that is this error as a whole.
    var httpStatus: Int {
        switch self {
        case .invalidArgument, .tooManyTopics: 400
        case .unauthenticated: 401
        case .permissionDenied: 403
        case .notFound: 404
        case .resourceExhausted: 429
        case .internal, .unknown: 500
        case .unavailable: 503
        case .deadlineExceeded: 504
        }
    }
}
