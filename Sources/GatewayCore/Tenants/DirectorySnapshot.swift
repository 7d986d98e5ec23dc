/// An immutable picture of the directory with everything opened and compiled that a request needs.
package final class DirectorySnapshot: Sendable {
    /// The tenants by id.
    package let tenants: [TenantID: TenantProfile]
    /// The keys by id with their tenants, revoked ones included.
    package let principals: [String: Principal]

    /// An empty picture.
    package convenience init() {
        self.init(tenants: [:], principals: [:])
    }

    /// A picture of these tenants and keys.
    private init(tenants: [TenantID: TenantProfile], principals: [String: Principal]) {
        self.tenants = tenants
        self.principals = principals
    }

    /// Opens and compiles stored contents.
    ///
    /// A credential that does not open under the master key leaves its tenant without one; its sends answer
    /// `upstream_credentials` instead of stopping everybody else's. Tenants' loads are carried over from the picture
    /// before, and so are their former limits, at first from the last run's by their tenants' keys.
    package convenience init(
        contents: DirectoryContents,
        after previous: DirectorySnapshot? = nil,
        kept: [LimitKey: PolicyHistory] = [:],
        at time: Timestamp,
        masterKey: MasterKey,
        auditKey: Secret,
        defaultLimits: LimitPolicies
    ) {
        let credentials = Dictionary(
            contents.credentials.map { ([$0.tenant.text, $0.kind.rawValue], $0) },
            uniquingKeysWith: { $0.version > $1.version ? $0 : $1 }
        )
        let senders = contents.tenants.compactMap(\.senderID).reduce(into: [:]) { $0[$1, default: 0] += 1 }
        var tenants: [TenantID: TenantProfile] = [:]
        for tenant in contents.tenants {
            let legacy = credentials[[tenant.id.text, UpstreamKind.legacy.rawValue]]
            let v1 = credentials[[tenant.id.text, UpstreamKind.v1.rawValue]]
            let overrides = contents.limits[tenant.id] ?? LimitOverrides()
            let limits = defaultLimits.overridden(by: overrides)
            let pseudonymizer = Pseudonymizer(auditKey: auditKey, tenantSalt: contents.salts[tenant.id] ?? [])
            let history =
                previous?.tenants[tenant.id]?.policyHistory ?? kept[LimitKey(tenant: tenant.id, pseudonymizer)]
            tenants[tenant.id] = TenantProfile(
                tenant: tenant,
                legacyCredential: legacy.flatMap { LegacyCredential(opening: $0, under: masterKey) },
                v1Credential: v1.flatMap { ServiceAccountCredential(opening: $0, under: masterKey) },
                storedCredentials: [legacy, v1].compactMap(\.self),
                limits: limits,
                policyHistory: history?.followed(by: limits, at: time),
                ownLimits: overrides.scopes,
                pseudonymizer: pseudonymizer,
                sharesSender: tenant.senderID.map { senders[$0, default: 0] > 1 } ?? false,
                load: previous?.tenants[tenant.id]?.load ?? TenantLoad()
            )
        }
        var principals: [String: Principal] = [:]
        for key in contents.keys {
            guard let profile = tenants[key.tenant] else { continue }
            principals[key.id] = Principal(profile: profile, key: key)
        }
        self.init(tenants: tenants, principals: principals)
    }
}
