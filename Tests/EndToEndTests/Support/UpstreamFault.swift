/// A fault at FCM or on the way there.
struct UpstreamFault: Sendable {
    /// The action of the emulator's fault; nil if the token alone causes it.
    let action: String?
    /// At most this many calls reach FCM: the gateway retries an overload within the caller's deadline.
    let maxCalls: Int
    /// The end of the token.
    let token: String
    /// The caller's own deadline.
    let timeoutMilliseconds: Int?
    let status: Int

    private init(_ status: Int, action: String, calls: Int = 1, timeout: Int? = nil) {
        (self.action, self.maxCalls, self.token) = (action, calls, "device")
        (self.timeoutMilliseconds, self.status) = (timeout, status)
    }

    /// An error that FCM gives for a token.
    private init(_ status: Int, error: String) {
        (self.action, self.maxCalls, self.token) = (nil, 1, "x:ERROR_\(error)")
        (self.timeoutMilliseconds, self.status) = (nil, status)
    }

    private static let page = "<!DOCTYPE html><html><title>Error 404 (Not Found)!!1</title></html>"

    /// Every fault that a single recipient can meet.
    static let all = [
        UpstreamFault(504, action: #"{"type": "hang"}"#, timeout: 3_000),
        UpstreamFault(504, action: #"{"type": "reset"}"#),
        UpstreamFault(504, action: #"{"type": "truncate"}"#),
        UpstreamFault(502, action: #"{"type": "garbage"}"#),
        UpstreamFault(502, action: #"{"type": "status", "status": 401}"#),
        // FCM asks for more time than the caller has, so that the gateway does not wait.
        UpstreamFault(
            503,
            action: #"{"type": "status", "status": 503, "headers": {"Retry-After": "17"}}"#,
            timeout: 15_000
        ),
        UpstreamFault(503, action: #"{"type": "status", "status": 503}"#, calls: 3, timeout: 15_000),
        UpstreamFault(502, action: #"{"type": "status", "status": 500, "body": "oops"}"#, calls: 3, timeout: 15_000),
        UpstreamFault(
            502,
            action: """
                {"type": "status", "status": 404, "body": "\(Self.page)",
                "headers": {"Content-Type": "text/html; charset=UTF-8"}}
                """
        ),
        UpstreamFault(502, action: #"{"type": "status", "status": 200, "body": "{\"error\":\"DeprecatedApi\"}"}"#),
        UpstreamFault(
            400,
            action: #"{"type": "status", "status": 400, "body": "JSON_PARSING_ERROR: Unexpected token\n"}"#
        ),
        UpstreamFault(502, error: "DeprecatedApi"), UpstreamFault(410, error: "NotRegistered"),
        UpstreamFault(422, error: "InvalidRegistration"), UpstreamFault(422, error: "MismatchSenderId"),
        UpstreamFault(429, error: "DeviceMessageRateExceeded"), UpstreamFault(503, error: "Unavailable"),
        UpstreamFault(502, error: "InternalServerError"), UpstreamFault(502, error: "InvalidApnsCredential"),
    ]
}
