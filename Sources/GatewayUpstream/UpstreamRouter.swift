package import FCMModel
package import GatewayCore

/// Hands each call to the sender of its tenant's protocol.
package struct UpstreamRouter: UpstreamSender {
    private let legacy: LegacySender
    private let v1: V1Sender

    /// A router over these senders.
    ///
    /// - Parameters:
    ///   - legacy: sends by the legacy protocol.
    ///   - v1: sends by HTTP v1.
    package init(legacy: LegacySender, v1: V1Sender) {
        self.legacy = legacy
        self.v1 = v1
    }

    /// What the tenant's protocol has no form for.
    package func refusal(of target: Target, for profile: TenantProfile) -> Refusal? {
        switch profile.tenant.upstream {
        case .legacy: self.legacy.refusal(of: target, for: profile)
        case .v1: self.v1.refusal(of: target, for: profile)
        }
    }

    /// Sends by the tenant's protocol.
    package func send(_ call: UpstreamCall) async -> UpstreamResult {
        switch call.profile.tenant.upstream {
        case .legacy: await self.legacy.send(call)
        case .v1: await self.v1.send(call)
        }
    }
}
