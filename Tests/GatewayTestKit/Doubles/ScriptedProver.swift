package import GatewayCore

/// A prover that finds what it is told to find.
package struct ScriptedProver: CredentialProver {
    private let finding: @Sendable (UpstreamKind, TenantProfile) -> CredentialReport

    /// A prover.
    ///
    /// - Parameter finding: what it finds; by default that everything is valid.
    package init(
        finding: @escaping @Sendable (UpstreamKind, TenantProfile) -> CredentialReport = { kind, _ in
            CredentialReport(.valid, "It is a good \(kind.rawValue) credential", upstreamCode: "200")
        }
    ) {
        self.finding = finding
    }

    /// Finds it.
    package func prove(
        _ kind: UpstreamKind,
        of profile: TenantProfile,
        origin: RequestOrigin
    ) async -> CredentialReport {
        self.finding(kind, profile)
    }
}
