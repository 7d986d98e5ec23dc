/// An immutable snapshot of the directory with everything opened and compiled that a request needs.
package final class DirectorySnapshot: Sendable {
    /// Opens and compiles what the store holds.
    struct Opener: Sendable {
        let masterKey: MasterKey
        let auditKey: Secret
        var defaultLimits: LimitPolicies
    }

    /// What a snapshot is made of, while it is made.
    private struct Parts {
        var tenants: [TenantID: TenantProfile] = [:]
        var principals: [String: Principal] = [:]
        var unservedKeys: [String: APIKeyRecord] = [:]
        var refused: Set<RefusedRow> = []
        var isExpired = false

        mutating func remove(_ id: TenantID) {
            for key in self.tenants.removeValue(forKey: id)?.keys ?? [] { self.principals[key.id] = nil }
            if !self.refused.isEmpty { self.refused = self.refused.filter { $0.tenant != id } }
            if !self.unservedKeys.isEmpty { self.unservedKeys = self.unservedKeys.filter { $0.value.tenant != id } }
        }

        mutating func insert(_ profile: TenantProfile) {
            self.tenants[profile.id] = profile
            for key in profile.keys { self.principals[key.id] = Principal(profile: profile, key: key) }
        }

        /// Opens and compiles stored contents, as far as they are not those of an earlier profile. A credential that
        /// does not open under the master key leaves its tenant without one: its sends answer `upstream_credentials`.
        mutating func insert(
            _ contents: DirectoryContents,
            after earlier: [TenantID: TenantProfile],
            _ opener: Opener
        ) {
            self.refused.formUnion(contents.refused)
            let credentials = Dictionary(grouping: contents.credentials, by: \.tenant)
            var keys = Dictionary(grouping: contents.keys, by: \.tenant)
            for tenant in contents.tenants {
                let profile = TenantProfile(
                    tenant,
                    salt: contents.salts[tenant.id] ?? [],
                    credentials: credentials[tenant.id] ?? [],
                    keys: keys.removeValue(forKey: tenant.id) ?? [],
                    limits: contents.limits[tenant.id] ?? LimitOverrides(),
                    version: contents.version,
                    after: earlier[tenant.id],
                    opener
                )
                self.insert(profile)
                for stored in profile.storedCredentials where !profile.hasOpened(stored.kind) {
                    self.refused.insert(RefusedRow(.credential, stored.kind.rawValue, of: tenant.id))
                }
            }
            for key in keys.values.joined() { self.unservedKeys[key.id] = key }
        }
    }

    package let tenants: [TenantID: TenantProfile]
    /// The keys by id with their tenants, revoked ones included.
    package let principals: [String: Principal]
    /// The keys by id of tenants whose rows this version can't read.
    let unservedKeys: [String: APIKeyRecord]
    package let refused: Set<RefusedRow>
    /// Whether the store could not be asked for too long, so that no key is accepted.
    package let isExpired: Bool

    package convenience init() {
        self.init(Parts())
    }

    private init(_ parts: Parts) {
        self.tenants = parts.tenants
        self.principals = parts.principals
        self.unservedKeys = parts.unservedKeys
        self.refused = parts.refused
        self.isExpired = parts.isExpired
    }

    /// Opens and compiles all that the store holds; tenants' loads, and what is opened already, are carried over.
    convenience init(_ contents: DirectoryContents, after previous: DirectorySnapshot? = nil, _ opener: Opener) {
        var parts = Parts()
        parts.insert(contents, after: previous?.tenants ?? [:], opener)
        self.init(parts)
    }

    /// The same with other contents of one tenant. Two dictionaries are copied, which takes well under a millisecond
    /// for 10,000 tenants; nothing else grows with their number.
    func replacing(_ id: TenantID, with contents: DirectoryContents, _ opener: Opener) -> DirectorySnapshot {
        self.changed { parts in
            parts.remove(id)
            parts.insert(contents, after: self.tenants, opener)
        }
    }

    func replacing(_ ids: some Sequence<TenantID>, asIn other: DirectorySnapshot) -> DirectorySnapshot {
        self.changed { parts in
            for id in ids {
                parts.remove(id)
                other.tenants[id].map { parts.insert($0) }
                parts.refused.formUnion(other.refused.filter { $0.tenant == id })
                for key in other.unservedKeys.values where key.tenant == id { parts.unservedKeys[key.id] = key }
            }
        }
    }

    /// The same under other default limits.
    func limited(_ opener: Opener) -> DirectorySnapshot {
        self.changed { parts in
            for profile in self.tenants.values {
                let limited = TenantProfile(
                    profile.tenant,
                    salt: profile.salt,
                    credentials: profile.storedCredentials,
                    keys: profile.keys,
                    limits: profile.limitOverrides,
                    version: profile.version,
                    after: profile,
                    opener
                )
                parts.insert(limited)
            }
        }
    }

    /// Whether what a change was to bring about is there; what it adds has a random part or its own time, so that it is
    /// taken for no other's.
    func shows(_ change: DirectoryChange) -> Bool {
        switch change {
        case .putTenant(var tenant, let salt):
            guard let profile = self.tenants[tenant.id] else { return false }
            // Which only the store decides.
            tenant.prefixesGroups = profile.tenant.prefixesGroups
            return profile.tenant == tenant && profile.salt == salt
        case .deleteTenant(let id):
            return self.tenants[id] == nil && !self.refused.contains(RefusedRow(.tenant, id.text, of: id))
        case .putCredential(let credential):
            return self.tenants[credential.tenant]?.storedCredentials.contains(credential) == true
        case .deleteCredential(let kind, let tenant):
            return self.tenants[tenant]?.storedCredentials.contains { $0.kind == kind } == false
        case .addKey(let key), .putKey(let key), .rotateKey(new: let key, old: _):
            return self.principals[key.id]?.key == key
        case .removeKey(let id, let tenant):
            return self.principals[id]?.key.tenant != tenant && !self.refused.contains(RefusedRow(.key, id, of: tenant))
        case .putLimits(let tenant, let limits):
            return self.tenants[tenant]?.limitOverrides == limits
        }
    }

    func expired(_ isExpired: Bool) -> DirectorySnapshot {
        self.changed { $0.isExpired = isExpired }
    }

    private func changed(_ change: (inout Parts) -> Void) -> DirectorySnapshot {
        var parts = Parts(tenants: self.tenants, principals: self.principals, refused: self.refused)
        parts.unservedKeys = self.unservedKeys
        parts.isExpired = self.isExpired
        change(&parts)
        return DirectorySnapshot(parts)
    }
}

extension TenantProfile {
    /// Opens what is stored of a tenant; what an earlier profile of the same life has opened is taken from there.
    fileprivate convenience init(
        _ tenant: Tenant,
        salt: [UInt8],
        credentials: [StoredCredential],
        keys: [APIKeyRecord],
        limits: LimitOverrides,
        version: Int64,
        after earlier: TenantProfile?,
        _ opener: DirectorySnapshot.Opener
    ) {
        let same = earlier?.salt == salt ? earlier : nil
        let stored = UpstreamKind.allCases.compactMap { kind in
            credentials.filter { $0.kind == kind }.max { $0.version < $1.version }
        }
        func opened<Credential>(
            _ kind: UpstreamKind,
            _ known: Credential?,
            _ open: (StoredCredential) -> Credential?
        ) -> Credential? {
            guard let one = stored.first(where: { $0.kind == kind }) else { return nil }
            if let known, same?.storedCredentials.contains(one) == true { return known }
            return open(one)
        }
        let pseudonymizer = same?.pseudonymizer ?? Pseudonymizer(auditKey: opener.auditKey, tenantSalt: salt)
        self.init(
            tenant: tenant,
            legacyCredential: opened(.legacy, same?.legacyCredential) {
                LegacyCredential(opening: $0, salt: salt, under: opener.masterKey)
            },
            v1Credential: opened(.v1, same?.v1Credential) {
                ServiceAccountCredential(opening: $0, salt: salt, under: opener.masterKey)
            },
            storedCredentials: stored,
            limits: opener.defaultLimits.overridden(by: limits),
            limitOverrides: limits,
            pseudonymizer: pseudonymizer,
            salt: salt,
            keys: keys,
            version: version,
            load: earlier?.load ?? TenantLoad()
        )
    }
}
