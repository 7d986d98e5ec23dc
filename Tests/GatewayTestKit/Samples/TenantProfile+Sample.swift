package import GatewayCore

extension TenantProfile {
    /// A tenant with a legacy credential and these limits; its pseudonyms are salted with its name.
    ///
    /// - Throws: ``SampleError`` for a malformed name.
    package static func sample(
        _ name: String = "acme",
        limits: LimitPolicies = LimitPolicies(),
        endpoint: String? = nil,
        upstream: UpstreamKind = .legacy
    ) throws -> TenantProfile {
        TenantProfile(
            tenant: try .sample(name, upstream: upstream),
            legacyCredential: LegacyCredential(serverKey: .sample("server key of \(name)"), endpoint: endpoint),
            v1Credential: nil,
            storedCredentials: [],
            limits: limits,
            pseudonymizer: .sample(name)
        )
    }
}

extension Pseudonymizer {
    /// The pseudonyms of a sample tenant.
    package static func sample(_ tenant: String = "acme") -> Pseudonymizer {
        Pseudonymizer(auditKey: .sample("audit"), tenantSalt: Array(tenant.utf8))
    }
}
