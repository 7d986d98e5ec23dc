package import GatewayCore

extension AuditRecord {
    /// A record of the gateway's own, told from others by its action.
    package static func sample(_ action: String = "sample") -> AuditRecord {
        AuditRecord(
            time: .sample,
            tenant: nil,
            principal: "gateway",
            action: action,
            outcome: .done,
            requestID: "request"
        )
    }
}
