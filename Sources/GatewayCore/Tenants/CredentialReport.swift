/// Proves credentials against FCM without sending anything.
package protocol CredentialProver: Sendable {
    /// Uses a tenant's credential for a dry run and says what came of it; trouble on the way is a finding too.
    func prove(_ kind: UpstreamKind, of profile: TenantProfile, origin: RequestOrigin) async -> CredentialReport
}

/// What came of proving a credential.
package struct CredentialReport: Sendable, Hashable {
    /// What was found, a bounded set that is safe to show anybody.
    package enum Finding: String, Sendable, Hashable, CaseIterable {
        /// FCM takes messages by this credential.
        case valid
        /// The tenant has no such credential, or it does not open under the master key.
        case missing
        /// The setting `upstream.allowedTokenHosts` does not allow the account's token endpoint.
        case tokenHostRefused = "token_host_refused"
        /// The key itself can't be used for signing.
        case keyUnusable = "key_unusable"
        /// The key is not, or no longer, accepted.
        case keyRefused = "key_refused"
        /// This machine's clock and the token endpoint's disagree.
        case clockSkew = "clock_skew"
        /// The account may not send for the tenant's project, which is another than its own, or unknown.
        case projectMismatch = "project_mismatch"
        /// The project has the messaging API switched off.
        case apiDisabled = "api_disabled"
        /// The account lacks the permission to send.
        case permissionDenied = "permission_denied"
        /// The token endpoint does not answer, or only with trouble of its own.
        case tokenEndpointUnreachable = "token_endpoint_unreachable"
        /// FCM does not answer, or only with trouble of its own.
        case endpointUnreachable = "endpoint_unreachable"
        /// What answers is not FCM, or FCM in a way that we don't know.
        case unexpected
    }

    /// What was found.
    package let finding: Finding
    /// What it means and what to do about it, in words for an operator; never holds a secret.
    package let detail: String
    /// What the other side said, in its own bounded words.
    package let upstreamCode: String?

    /// A report.
    package init(_ finding: Finding, _ detail: String, upstreamCode: String? = nil) {
        self.finding = finding
        self.detail = detail
        self.upstreamCode = upstreamCode
    }
}
