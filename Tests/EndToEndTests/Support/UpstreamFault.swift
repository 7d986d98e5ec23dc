import Testing

/// Something that goes wrong on the way to FCM or there, and what callers must be told of it.
struct UpstreamFault: Sendable, CustomTestStringConvertible {
    let name: String
    /// The action of the emulator's fault; none where the token alone provokes it.
    let action: String?
    /// How many calls FCM may see: what it is too busy for is repeated where the caller has the time.
    let maxCalls: Int
    let token: String
    /// The caller's own deadline.
    let timeoutMilliseconds: Int?
    let status: Int
    let code: String
    /// The problem's action.
    let callerAction: String?
    let retryAfter: String?

    private init(
        _ name: String,
        action: String? = nil,
        calls: Int = 1,
        token: String = "device",
        timeout: Int? = nil,
        _ status: Int,
        _ code: String,
        _ callerAction: String?,
        retryAfter: String? = nil
    ) {
        (self.name, self.action, self.maxCalls, self.token) = (name, action, calls, token)
        (self.timeoutMilliseconds, self.status, self.code) = (timeout, status, code)
        (self.callerAction, self.retryAfter) = (callerAction, retryAfter)
    }

    var testDescription: String { self.name }

    private static let page = "<!DOCTYPE html><html><title>Error 404 (Not Found)!!1</title></html>"

    // A row is a line or two, where the formatter would have a line for each column.
    // swift-format-ignore
    /// All that one recipient can meet.
    static let all = [
        UpstreamFault("no answer in time", action: #"{"type": "hang"}"#, timeout: 3_000, 504, "outcome_unknown", nil),
        UpstreamFault("reset", action: #"{"type": "reset"}"#, 504, "outcome_unknown", nil),
        UpstreamFault("half an answer", action: #"{"type": "truncate"}"#, 504, "outcome_unknown", nil),
        UpstreamFault("garbage", action: #"{"type": "garbage"}"#, 502, "upstream_protocol", "call_operator"),
        UpstreamFault("401", action: #"{"type": "status", "status": 401}"#, 502, "upstream_credentials", "call_operator"),
        // Less than FCM asks for, so that nobody waits.
        UpstreamFault("503 with Retry-After", action: #"{"type": "status", "status": 503, "headers": {"Retry-After": "17"}}"#,
            timeout: 15_000, 503, "upstream_unavailable", "wait", retryAfter: "17"),
        UpstreamFault("503 without Retry-After", action: #"{"type": "status", "status": 503}"#, calls: 3,
            timeout: 15_000, 503, "upstream_unavailable", "wait", retryAfter: "5"),
        UpstreamFault("500", action: #"{"type": "status", "status": 500, "body": "oops"}"#, calls: 3,
            timeout: 15_000, 502, "upstream_internal", "wait"),
        UpstreamFault("a page with status 404", action: """
            {"type": "status", "status": 404, "body": "\(Self.page)",
            "headers": {"Content-Type": "text/html; charset=UTF-8"}}
            """, 502, "upstream_protocol", "call_operator"),
        UpstreamFault("DeprecatedApi for the call",
            action: #"{"type": "status", "status": 200, "body": "{\"error\":\"DeprecatedApi\"}"}"#,
            502, "upstream_protocol", "call_operator"),
        UpstreamFault("DeprecatedApi for the recipient", token: "x:ERROR_DeprecatedApi",
            502, "upstream_protocol", "call_operator"),
        UpstreamFault("400 with text",
            action: #"{"type": "status", "status": 400, "body": "JSON_PARSING_ERROR: Unexpected token\n"}"#,
            400, "malformed_json", "fix_request"),
        UpstreamFault("NotRegistered", token: "x:ERROR_NotRegistered", 410, "unregistered", "delete_token"),
        UpstreamFault("InvalidRegistration", token: "x:ERROR_InvalidRegistration", 422, "invalid_token", "fix_request"),
        UpstreamFault("MismatchSenderId", token: "x:ERROR_MismatchSenderId", 422, "sender_mismatch", "use_matching_sender"),
        UpstreamFault("DeviceMessageRateExceeded", token: "x:ERROR_DeviceMessageRateExceeded",
            429, "device_rate_exceeded", "wait", retryAfter: "5"),
        UpstreamFault("Unavailable", token: "x:ERROR_Unavailable", 503, "upstream_unavailable", "wait", retryAfter: "5"),
        UpstreamFault("InternalServerError", token: "x:ERROR_InternalServerError", 502, "upstream_internal", "wait"),
        UpstreamFault("InvalidApnsCredential", token: "x:ERROR_InvalidApnsCredential",
            502, "upstream_credentials", "call_operator"),
    ]
}
