/// The error codes that FCM itself gives in a v1 answer (`FcmError`), as far as they are known.
///
/// FCM may add others at any time; an unknown one is judged by the HTTP status.
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
