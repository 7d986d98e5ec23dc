/// An immutable snapshot of the directory, with everything that a request needs opened and compiled.
package final class DirectorySnapshot: Sendable {
    /// The keys and defaults by which rows are opened and compiled.
    struct Opener: Sendable {
        let masterKey: MasterKey
        let auditKey: Secret
        var defaultLimits: LimitPolicies
    }

    private struct Parts {
        var version: Directory.Version
        /// The later versions of single tenants, which this replica has changed.
        var ahead: [TenantID: Int64] = [:]
        var tenants: [TenantID: TenantProfile] = [:]
        var principals: [String: Principal] = [:]
        var unservedKeys: [String: APIKey.Record] = [:]
        var refused: Set<Directory.RefusedRow> = []
        var isExpired = false

        mutating func remove(_ ids: Set<TenantID>) {
            for id in ids {
                for key in self.tenants.removeValue(forKey: id)?.keys ?? [] { self.principals[key.id] = nil }
            }
            self.refused = self.refused.filter { $0.tenant.map(ids.contains) != true }
            self.unservedKeys = self.unservedKeys.filter { !ids.contains($0.value.tenant) }
        }

        mutating func insert(_ profile: TenantProfile) {
            self.tenants[profile.id] = profile
            for key in profile.keys { self.principals[key.id] = Principal(profile: profile, key: key) }
        }

        /// Opens and compiles the rows that an earlier profile has not opened. A tenant whose credential does not open
        /// under the master key has none: its sends answer `upstream_credentials`.
        mutating func insert(
            _ rows: Directory.Contents,
            after earlier: [TenantID: TenantProfile],
            _ opener: Opener
        ) async {
            self.refused.formUnion(rows.refused)
            let credentials = Dictionary(grouping: rows.credentials, by: \.tenant)
            var keys = Dictionary(grouping: rows.keys, by: \.tenant)
            for (index, tenant) in rows.tenants.enumerated() {
                // Thousands of rows take a while, and other tasks need the thread.
                if index % 64 == 63 { await Task.yield() }
                let profile = TenantProfile(
                    tenant,
                    salt: rows.salts[tenant.id] ?? [],
                    credentials: credentials[tenant.id] ?? [],
                    keys: keys.removeValue(forKey: tenant.id) ?? [],
                    limits: rows.limits[tenant.id] ?? LimitOverrides(),
                    after: earlier[tenant.id],
                    opener
                )
                self.insert(profile)
                for stored in profile.storedCredentials where !profile.hasOpened(stored.kind) {
                    self.refused.insert(Directory.RefusedRow(.credential, stored.kind.rawValue, of: tenant.id))
                }
            }
            for key in keys.values.joined() { self.unservedKeys[key.id] = key }
        }
    }

    private let parts: Parts

    /// Every change up to this version is shown.
    var version: Directory.Version { self.parts.version }
    package var tenants: [TenantID: TenantProfile] { self.parts.tenants }
    /// The keys by id with their tenants, revoked ones included.
    package var principals: [String: Principal] { self.parts.principals }
    /// The keys by id of tenants whose rows this version can't read.
    var unservedKeys: [String: APIKey.Record] { self.parts.unservedKeys }
    package var refused: Set<Directory.RefusedRow> { self.parts.refused }
    /// True if the store could not be read for too long, so that no key is accepted.
    package var isExpired: Bool { self.parts.isExpired }

    private init(_ parts: Parts) { self.parts = parts }

    /// Opens and compiles all rows of a store; tenants' loads, and what is opened already, are carried over.
    convenience init(_ rows: Directory.Contents, after previous: DirectorySnapshot? = nil, _ opener: Opener) async {
        var parts = Parts(version: rows.version)
        await parts.insert(rows, after: previous?.tenants ?? [:], opener)
        self.init(parts)
    }

    package func profile(of id: TenantID) throws(GatewayError) -> TenantProfile {
        guard let profile = self.tenants[id] else { throw GatewayError(.notFound, "There is no such tenant") }
        return profile
    }

    func key(_ id: String, of tenant: TenantID) throws(GatewayError) -> APIKey.Record {
        guard let key = self.principals[id]?.key, key.tenant == tenant else {
            throw GatewayError(.notFound, "The tenant has no such key")
        }
        return key
    }

    /// Returns the version up to which a tenant is shown, or shown to be absent.
    package func version(of tenant: TenantID) -> Directory.Version {
        Directory.Version(max(self.version.number, self.parts.ahead[tenant] ?? 0), in: self.version.origin)
    }

    /// Replaces tenants by their rows, as far as those are newer than what is shown.
    ///
    /// If the rows are complete, they hold all changes that are neither shown nor later. Besides the tenants that are
    /// replaced, two dictionaries are copied, which takes well under a millisecond for 10,000 tenants.
    func replacing(
        _ tenants: Set<TenantID>,
        with rows: Directory.Contents,
        isComplete: Bool,
        _ opener: Opener
    ) async -> DirectorySnapshot {
        guard rows.version.origin == self.version.origin else { return self }
        let number = rows.version.number
        let newer = tenants.filter { self.version(of: $0).number < number }
        guard isComplete || !newer.isEmpty else { return self }
        var parts = self.parts
        parts.remove(newer)
        await parts.insert(newer.count == tenants.count ? rows : rows.of(newer), after: self.tenants, opener)
        if isComplete {
            parts.version.number = max(parts.version.number, number)
            parts.ahead = parts.ahead.filter { $0.value > parts.version.number }
        } else {
            for tenant in newer { parts.ahead[tenant] = number }
        }
        return DirectorySnapshot(parts)
    }

    /// Returns the same under other default limits.
    func limited(_ opener: Opener) -> DirectorySnapshot {
        var parts = self.parts
        for profile in self.tenants.values {
            let limited = TenantProfile(
                profile.tenant,
                salt: profile.salt,
                credentials: profile.storedCredentials,
                keys: profile.keys,
                limits: profile.limitOverrides,
                after: profile,
                opener
            )
            parts.insert(limited)
        }
        return DirectorySnapshot(parts)
    }

    func expired(_ isExpired: Bool) -> DirectorySnapshot {
        var parts = self.parts
        parts.isExpired = isExpired
        return DirectorySnapshot(parts)
    }

    /// True if the snapshot shows the effect of a change. Each addition has a random part or its own time, so no other
    /// change looks the same.
    func shows(_ change: Directory.Change) -> Bool {
        switch change {
        case .putTenant(var tenant, let salt):
            guard let profile = self.tenants[tenant.id] else { return false }
            // The store alone decides this.
            tenant.prefixesGroups = profile.tenant.prefixesGroups
            return profile.tenant == tenant && profile.salt == salt
        case .deleteTenant(let id):
            return self.tenants[id] == nil && !self.refused.contains(Directory.RefusedRow(.tenant, id.text, of: id))
        case .putCredential(let credential):
            return self.tenants[credential.tenant]?.storedCredentials.contains(credential) == true
        case .deleteCredential(let kind, let tenant):
            return self.tenants[tenant]?.storedCredentials.contains { $0.kind == kind } == false
        case .addKey(let key), .putKey(let key), .rotateKey(new: let key, old: _):
            return self.principals[key.id]?.key == key
        case .removeKey(let id, let tenant):
            return self.principals[id]?.key.tenant != tenant
                && !self.refused.contains(Directory.RefusedRow(.key, id, of: tenant))
        case .putLimits(let tenant, let limits):
            return self.tenants[tenant]?.limitOverrides == limits
        }
    }
}

extension TenantProfile {
    /// Opens a tenant's rows, except those that an earlier profile of the same life has opened.
    fileprivate convenience init(
        _ tenant: Tenant,
        salt: [UInt8],
        credentials: [StoredCredential],
        keys: [APIKey.Record],
        limits: LimitOverrides,
        after earlier: TenantProfile?,
        _ opener: DirectorySnapshot.Opener
    ) {
        let same = earlier?.salt == salt ? earlier : nil
        let stored = UpstreamKind.allCases.compactMap { kind in
            credentials.filter { $0.kind == kind }.max { $0.version < $1.version }
        }
        func opened<Credential: TenantCredential>(_ known: Credential?) -> Credential? {
            guard let row = stored.first(where: { $0.kind == Credential.kind }) else { return nil }
            if let known, same?.storedCredentials.contains(row) == true { return known }
            return Credential(opening: row, salt: salt, under: opener.masterKey)
        }
        let pseudonymizer = same?.pseudonymizer ?? Pseudonymizer(auditKey: opener.auditKey, tenantSalt: salt)
        self.init(
            tenant: tenant,
            legacyCredential: opened(same?.legacyCredential),
            v1Credential: opened(same?.v1Credential),
            storedCredentials: stored,
            limits: opener.defaultLimits.overridden(by: limits),
            limitOverrides: limits,
            pseudonymizer: pseudonymizer,
            salt: salt,
            keys: keys,
            load: earlier?.load ?? LoadShedder.TenantLoad()
        )
    }
}
