package import FCMModel
package import GatewayCore

/// Hands each call to the sender of its tenant's protocol.
package struct UpstreamRouter: UpstreamSender {
    private let legacy: LegacySender

    /// A router over these senders.
    package init(legacy: LegacySender) {
        self.legacy = legacy
    }

    /// What the tenant's protocol has no form for.
    package func objection(to target: Target, of profile: TenantProfile) -> UpstreamObjection? {
        switch profile.tenant.upstream {
        case .legacy: self.legacy.objection(to: target, of: profile)
        case .v1: nil
        }
    }

    /// Sends by the tenant's protocol.
    ///
    /// A tenant set to a protocol that this gateway has no sender for has no credential for it either, and that is
    /// what its callers are told.
    package func send(_ call: UpstreamCall) async -> UpstreamResult {
        switch call.profile.tenant.upstream {
        case .legacy: await self.legacy.send(call)
        case .v1: UpstreamResult(answer: .failed(.upstreamCredentials), upstreamCode: "no_credential")
        }
    }
}
