import Testing

/// Something that goes wrong on the way to FCM or there, and what callers must be told of it.
struct UpstreamFault: Sendable, CustomTestStringConvertible {
    /// What goes wrong.
    let name: String
    /// The action of the emulator's fault; none where the token alone provokes it.
    var action: String?
    /// How many calls FCM may see: what it is too busy for is repeated where the caller has the time.
    var maxCalls = 1
    /// The message's token.
    var token = "device"
    /// The caller's own deadline.
    var timeoutMilliseconds: Int?
    /// The answer's status.
    let status: Int
    /// The answer's code.
    let code: String
    /// The problem's action.
    let callerAction: String?
    /// What `Retry-After` says.
    var retryAfter: String?

    var testDescription: String { self.name }

    private static let page = "<!DOCTYPE html><html><title>Error 404 (Not Found)!!1</title></html>"

    /// All that one recipient can meet.
    static let all = [
        UpstreamFault(
            name: "no answer in time",
            action: #"{"type": "hang"}"#,
            timeoutMilliseconds: 3_000,
            status: 504,
            code: "outcome_unknown",
            callerAction: nil
        ),
        UpstreamFault(
            name: "reset",
            action: #"{"type": "reset"}"#,
            status: 504,
            code: "outcome_unknown",
            callerAction: nil
        ),
        UpstreamFault(
            name: "half an answer",
            action: #"{"type": "truncate"}"#,
            status: 504,
            code: "outcome_unknown",
            callerAction: nil
        ),
        UpstreamFault(
            name: "garbage",
            action: #"{"type": "garbage"}"#,
            status: 502,
            code: "upstream_protocol",
            callerAction: "call_operator"
        ),
        UpstreamFault(
            name: "401",
            action: #"{"type": "status", "status": 401}"#,
            status: 502,
            code: "upstream_credentials",
            callerAction: "call_operator"
        ),
        UpstreamFault(
            name: "503 with Retry-After",
            action: #"{"type": "status", "status": 503, "headers": {"Retry-After": "17"}}"#,
            // Less than FCM asks for, so that nobody waits.
            timeoutMilliseconds: 15_000,
            status: 503,
            code: "upstream_unavailable",
            callerAction: "wait",
            retryAfter: "17"
        ),
        UpstreamFault(
            name: "503 without Retry-After",
            action: #"{"type": "status", "status": 503}"#,
            maxCalls: 3,
            timeoutMilliseconds: 15_000,
            status: 503,
            code: "upstream_unavailable",
            callerAction: "wait",
            retryAfter: "5"
        ),
        UpstreamFault(
            name: "500",
            action: #"{"type": "status", "status": 500, "body": "oops"}"#,
            maxCalls: 3,
            timeoutMilliseconds: 15_000,
            status: 502,
            code: "upstream_internal",
            callerAction: "wait"
        ),
        UpstreamFault(
            name: "a page with status 404",
            action: """
                {"type": "status", "status": 404, "body": "\(Self.page)",
                "headers": {"Content-Type": "text/html; charset=UTF-8"}}
                """,
            status: 502,
            code: "upstream_protocol",
            callerAction: "call_operator"
        ),
        UpstreamFault(
            name: "DeprecatedApi for the call",
            action: #"{"type": "status", "status": 200, "body": "{\"error\":\"DeprecatedApi\"}"}"#,
            status: 502,
            code: "upstream_protocol",
            callerAction: "call_operator"
        ),
        UpstreamFault(
            name: "DeprecatedApi for the recipient",
            token: "x:ERROR_DeprecatedApi",
            status: 502,
            code: "upstream_protocol",
            callerAction: "call_operator"
        ),
        UpstreamFault(
            name: "400 with text",
            action: #"{"type": "status", "status": 400, "body": "JSON_PARSING_ERROR: Unexpected token\n"}"#,
            status: 400,
            code: "malformed_json",
            callerAction: "fix_request"
        ),
        UpstreamFault(
            name: "NotRegistered",
            token: "x:ERROR_NotRegistered",
            status: 410,
            code: "unregistered",
            callerAction: "delete_token"
        ),
        UpstreamFault(
            name: "InvalidRegistration",
            token: "x:ERROR_InvalidRegistration",
            status: 422,
            code: "invalid_token",
            callerAction: "fix_request"
        ),
        UpstreamFault(
            name: "MismatchSenderId",
            token: "x:ERROR_MismatchSenderId",
            status: 422,
            code: "sender_mismatch",
            callerAction: "use_matching_sender"
        ),
        UpstreamFault(
            name: "DeviceMessageRateExceeded",
            token: "x:ERROR_DeviceMessageRateExceeded",
            status: 429,
            code: "device_rate_exceeded",
            callerAction: "wait",
            retryAfter: "5"
        ),
        UpstreamFault(
            name: "Unavailable",
            token: "x:ERROR_Unavailable",
            status: 503,
            code: "upstream_unavailable",
            callerAction: "wait",
            retryAfter: "5"
        ),
        UpstreamFault(
            name: "InternalServerError",
            token: "x:ERROR_InternalServerError",
            status: 502,
            code: "upstream_internal",
            callerAction: "wait"
        ),
        UpstreamFault(
            name: "InvalidApnsCredential",
            token: "x:ERROR_InvalidApnsCredential",
            status: 502,
            code: "upstream_credentials",
            callerAction: "call_operator"
        ),
    ]
}
