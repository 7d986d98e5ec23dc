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
