/// An error as the v1 facade tells it (`google.rpc.Status`).
struct V1Fault {
    /// The canonical code, which decides the HTTP status.
    var status: V1Status
    /// FCM's own code; `nil` where Google's front end would speak instead of FCM.
    var code: V1ErrorCode?
    /// A sentence for a developer.
    var message: String
    /// The field at fault.
    var violation: V1FieldViolation?
    /// Seconds to wait before a repeat.
    var retryAfter: Int?
}
