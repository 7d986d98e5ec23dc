package import GatewayCore

/// A sample value or resource that can't be created.
package struct SampleError: Error, Hashable {
    package var what: String

    package init(what: String) {
        self.what = what
    }
}

extension Timestamp {
    /// 2026-03-01T12:00:00Z, where tests begin.
    package static let sample = Timestamp(microseconds: 1_772_366_400_000_000)
}

extension TenantID {
    package static func sample(_ name: String = "acme") throws -> TenantID {
        guard let id = TenantID(name) else { throw SampleError(what: "tenant \(name)") }
        return id
    }
}

extension Tenant {
    /// A tenant created at ``Timestamp/sample``, by default with a legacy upstream.
    package static func sample(
        _ name: String = "acme",
        isDisabled: Bool = false,
        upstream: UpstreamKind = .legacy,
        clientNames: [String] = []
    ) throws -> Tenant {
        Tenant(
            id: try .sample(name),
            displayName: "Tenant \(name)",
            upstream: upstream,
            isDisabled: isDisabled,
            clientNames: clientNames.compactMap { ClientName($0) },
            createdAt: .sample,
            updatedAt: .sample
        )
    }
}

extension TenantProfile {
    /// A tenant with a legacy credential and these limits; its pseudonyms are salted with its name.
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
    package static func sample(_ tenant: String = "acme") -> Pseudonymizer {
        Pseudonymizer(auditKey: .sample("audit"), tenantSalt: Array(tenant.utf8))
    }
}
