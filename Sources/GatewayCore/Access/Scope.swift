/// What a key may be used for.
package enum Scope: String, Sendable, Hashable, CaseIterable {
    case sendMessages = "messages:send"
    case manageDeviceGroups = "device-groups:manage"
    case manageTopics = "topics:manage"
    case readAudit = "audit:read"
    case readTokens = "tokens:read"
    case manageTokens = "tokens:manage"
}
