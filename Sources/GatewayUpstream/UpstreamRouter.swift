package import FCMModel
package import GatewayCore

/// Hands each call to the sender of its tenant's protocol.
package struct UpstreamRouter: UpstreamSender {
    private let legacy: LegacySender
    private let v1: V1Sender?

    /// A router over these senders.
    ///
    /// - Parameters:
    ///   - legacy: sends by the legacy protocol.
    ///   - v1: sends by HTTP v1; without it, tenants set to that protocol are told that there is no credential.
    package init(legacy: LegacySender, v1: V1Sender? = nil) {
        self.legacy = legacy
        self.v1 = v1
    }

    /// What the tenant's protocol has no form for.
    package func objection(to target: Target, of profile: TenantProfile) -> UpstreamObjection? {
        switch profile.tenant.upstream {
        case .legacy: self.legacy.objection(to: target, of: profile)
        case .v1: self.v1?.objection(to: target, of: profile)
        }
    }

    /// Sends by the tenant's protocol.
    package func send(_ call: UpstreamCall) async -> UpstreamResult {
        switch call.profile.tenant.upstream {
        case .legacy:
            return await self.legacy.send(call)
        case .v1:
            guard let v1 = self.v1 else {
                return UpstreamResult(answer: .failed(.upstreamCredentials), upstreamCode: "no_credential")
            }
            return await v1.send(call)
        }
    }
}
