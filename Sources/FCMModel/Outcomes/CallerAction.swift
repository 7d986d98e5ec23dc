/// What the receiver of a refusal should do about it.
package enum CallerAction: String, Sendable, Hashable {
    case fixRequest = "fix_request"
    case shrinkPayload = "shrink_payload"
    case deleteToken = "delete_token"
    case useMatchingSender = "use_matching_sender"
    case fixCredentials = "fix_credentials"
    case requestScope = "request_scope"
    case wait
    case callOperator = "call_operator"
}
