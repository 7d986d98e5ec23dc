/// Proves credentials against FCM without sending anything.
package protocol CredentialProver: Sendable {
    /// Uses a tenant's credential for a dry run and says what came of it.
    ///
    /// Trouble on the way is a finding too.
    func prove(_ kind: UpstreamKind, of profile: TenantProfile) async -> CredentialReport
}
