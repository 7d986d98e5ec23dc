package import GatewayCore

extension Principal {
    /// A caller with a fresh key of a sample tenant.
    ///
    /// - Throws: ``SampleError`` for a malformed tenant name.
    package static func sample(
        tenant: String = "acme",
        limits: LimitPolicies = LimitPolicies(),
        scopes: Set<Scope> = Set(Scope.allCases),
        topicPrefixes: [String] = [],
        upstream: UpstreamKind = .legacy
    ) throws -> Principal {
        Principal(
            profile: try .sample(tenant, limits: limits, upstream: upstream),
            key: try .sample(of: .generate(), tenant: tenant, scopes: scopes, topicPrefixes: topicPrefixes)
        )
    }
}
