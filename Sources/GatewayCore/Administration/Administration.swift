import FCMModel

/// What operators do to the directory: each change is recorded before it takes effect and once it has.
package struct Administration: Sendable {
    /// The most that the body of one change may have, in bytes.
    package static let maxBodyBytes = 64 * 1024

    let directory: Directory
    let store: any DirectoryStore
    let audit: AuditLog
    private let masterKey: MasterKey
    private let pepper: KeyPepper
    let clock: any WallClock

    /// An administration over these parts.
    package init(
        directory: Directory,
        store: any DirectoryStore,
        audit: AuditLog,
        masterKey: MasterKey,
        pepper: KeyPepper,
        clock: any WallClock
    ) {
        self.directory = directory
        self.store = store
        self.audit = audit
        self.masterKey = masterKey
        self.pepper = pepper
        self.clock = clock
    }

    // MARK: Tenants

    /// The tenants by rising id.
    package var tenants: [Tenant] {
        self.directory.snapshot.tenants.values.map(\.tenant).sorted { $0.id < $1.id }
    }

    /// A tenant with everything that belongs to it.
    ///
    /// - Throws: `notFound`.
    package func profile(of id: TenantID) throws(GatewayError) -> TenantProfile {
        guard let profile = self.directory.snapshot.tenants[id] else {
            throw GatewayError(.notFound, "There is no such tenant")
        }
        return profile
    }

    /// Makes a tenant or replaces what is known of it.
    ///
    /// - Returns: the tenant, and whether it is new.
    /// - Throws: `auditUnavailable`, `storeUnavailable`.
    package func put(
        _ draft: TenantDraft,
        id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (Tenant, isNew: Bool) {
        let now = self.clock.now()
        let existing = self.directory.snapshot.tenants[id]?.tenant
        let tenant = Tenant(
            id: id,
            displayName: draft.displayName,
            upstream: draft.upstream,
            projectID: draft.projectID,
            senderID: draft.senderID,
            isDisabled: draft.isDisabled,
            clientNames: draft.clientNames,
            createdAt: existing?.createdAt ?? now,
            updatedAt: now
        )
        let salt = Secret(randomBytes: 32).revealBytes()
        try await self.perform(
            .putTenant(tenant, salt: salt),
            action: .tenantPut,
            tenant: id,
            object: Self.auditObject(tenant, replacing: existing),
            origin: origin
        )
        return (tenant, existing == nil)
    }

    /// What the audit says of a change of a tenant: whom it is about, and who may use its keys where that changes.
    private static func auditObject(_ tenant: Tenant, replacing existing: Tenant?) -> String {
        guard tenant.clientNames != existing?.clientNames ?? [] else { return tenant.id.text }
        let names = tenant.clientNames.map(\.text).joined(separator: " ")
        return "\(tenant.id.text) client names: \(names.isEmpty ? "none" : names)"
    }

    /// Removes a tenant with its credentials, keys, limits and the salt of its pseudonyms.
    ///
    /// - Throws: `notFound`, `auditUnavailable`, `storeUnavailable`.
    package func deleteTenant(_ id: TenantID, origin: RequestOrigin) async throws(GatewayError) {
        _ = try self.profile(of: id)
        try await self.perform(
            .deleteTenant(id),
            action: .tenantDelete,
            tenant: id,
            object: id.text,
            origin: origin
        )
    }

    // MARK: Credentials

    /// Seals a legacy server key for a tenant; the next send uses it.
    ///
    /// - Throws: `notFound`, `auditUnavailable`, `storeUnavailable`.
    package func putLegacyCredential(
        _ credential: LegacyCredential,
        tenant id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> StoredCredential {
        try await self.put(.legacy, tenant: id, origin: origin) { version throws(GatewayError) in
            try StoredCredential(
                sealing: credential,
                tenant: id,
                version: version,
                under: self.masterKey,
                at: self.clock.now()
            )
        }
    }

    /// Seals a service account for a tenant; the next send uses it.
    ///
    /// - Throws: `notFound`, `auditUnavailable`, `storeUnavailable`.
    package func putServiceAccount(
        _ credential: ServiceAccountCredential,
        tenant id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> StoredCredential {
        try await self.put(.v1, tenant: id, origin: origin) { version throws(GatewayError) in
            try StoredCredential(
                sealing: credential,
                tenant: id,
                version: version,
                under: self.masterKey,
                at: self.clock.now()
            )
        }
    }

    /// Stores the next version of a credential.
    private func put(
        _ kind: UpstreamKind,
        tenant id: TenantID,
        origin: RequestOrigin,
        _ seal: (_ version: Int) throws(GatewayError) -> StoredCredential
    ) async throws(GatewayError) -> StoredCredential {
        let earlier = try self.profile(of: id).storedCredentials.first { $0.kind == kind }
        let stored = try seal((earlier?.version ?? 0) + 1)
        try await self.perform(
            .putCredential(stored),
            action: .credentialPut,
            tenant: id,
            object: "\(kind.rawValue) version \(stored.version) \(stored.fingerprint)",
            origin: origin
        )
        return stored
    }

    // MARK: Keys

    /// A tenant's keys, oldest first.
    ///
    /// - Throws: `notFound`.
    package func keys(of id: TenantID) throws(GatewayError) -> [APIKeyRecord] {
        _ = try self.profile(of: id)
        return self.directory.snapshot.principals.values.lazy.map(\.key)
            .filter { $0.tenant == id }
            .sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }
    }

    /// Makes a key.
    ///
    /// - Returns: the key in clear, for the one time it is shown, and its record.
    /// - Throws: `notFound`, `auditUnavailable`, `storeUnavailable`.
    package func createKey(
        _ draft: APIKeyDraft,
        tenant id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (APIKey, APIKeyRecord) {
        _ = try self.profile(of: id)
        let (key, record) = self.makeKey(draft, tenant: id)
        try await self.perform(
            .addKey(record),
            action: .keyCreate,
            tenant: id,
            object: record.id,
            origin: origin
        )
        return (key, record)
    }

    /// Accepts a key that exists already, so that gateways with stores of their own can accept the same key.
    ///
    /// To import a key again as it is changes nothing, and nothing is recorded. Of two who import it at once, the later
    /// finds out on the way: then its intent is recorded, and that it is done.
    ///
    /// - Returns: the key's record, and whether the key is new here.
    /// - Throws: `notFound`; `conflict` for a key that was revoked here, that differs from the draft, or whose id is
    ///   that of another key; `auditUnavailable`, `storeUnavailable`.
    package func importKey(
        _ key: APIKey,
        as draft: APIKeyDraft,
        tenant id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (APIKeyRecord, isNew: Bool) {
        _ = try self.profile(of: id)
        let record = self.record(of: key, draft, tenant: id)
        if let known = self.directory.snapshot.principals[key.id]?.key {
            try Self.requireSame(known, as: record)
            return (known, isNew: false)
        }
        var rival: APIKeyRecord?
        try await self.perform(
            .addKey(record),
            action: .keyImport,
            tenant: id,
            object: record.id,
            origin: origin
        ) { refusal throws(GatewayError) in
            guard refusal.code == .conflict else { throw refusal }
            try await self.directory.reload()
            guard let known = self.directory.snapshot.principals[key.id]?.key else { throw refusal }
            try Self.requireSame(known, as: record)
            rival = known
        }
        return rival.map { ($0, isNew: false) } ?? (record, isNew: true)
    }

    private static func requireSame(_ known: APIKeyRecord, as record: APIKeyRecord) throws(GatewayError) {
        guard known.tenant == record.tenant, known.digest == record.digest else {
            throw GatewayError(.conflict, "Another key has this id here; keys of one id can't live side by side")
        }
        guard known.revokedAt == nil else {
            throw GatewayError(.conflict, "The key was revoked here, which is for good; make another one")
        }
        guard
            (known.name, known.scopes, Set(known.topicPrefixes), known.expiresAt)
                == (record.name, record.scopes, Set(record.topicPrefixes), record.expiresAt)
        else {
            throw GatewayError(
                .conflict,
                "The tenant has this key with another name, scopes, topic prefixes or expiry; a key never changes"
            )
        }
    }

    /// Makes a key like another and lets the other live on for a while.
    ///
    /// - Parameters:
    ///   - keyID: the old key's id.
    ///   - id: the tenant, which must own that key.
    ///   - overlapSeconds: how long the old key stays valid, at least 0.
    ///   - origin: the request to record.
    /// - Returns: the new key in clear and its record.
    /// - Throws: `notFound`, `conflict` for a key that is dead already, `auditUnavailable`, `storeUnavailable`.
    package func rotateKey(
        _ keyID: String,
        tenant id: TenantID,
        overlapSeconds: Int,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (APIKey, APIKeyRecord) {
        let now = self.clock.now()
        var old = try self.key(keyID, of: id)
        guard old.isAlive(at: now) else {
            throw GatewayError(.conflict, "The key is revoked or expired; make a new one instead")
        }
        let draft = APIKeyDraft(
            name: old.name,
            scopes: old.scopes,
            topicPrefixes: old.topicPrefixes,
            expiresAt: old.expiresAt
        )
        let (key, record) = self.makeKey(draft, tenant: id)
        let end = now.advanced(by: .seconds(overlapSeconds))
        old.expiresAt = min(old.expiresAt ?? end, end)
        try await self.perform(
            .rotateKey(new: record, old: old),
            action: .keyRotate,
            tenant: id,
            object: "\(old.id) to \(record.id)",
            origin: origin
        )
        return (key, record)
    }

    /// Revokes a key at once and for good.
    ///
    /// - Throws: `notFound`, `auditUnavailable`, `storeUnavailable`.
    package func revokeKey(_ keyID: String, tenant id: TenantID, origin: RequestOrigin) async throws(GatewayError) {
        var record = try self.key(keyID, of: id)
        guard record.revokedAt == nil else { return }
        record.revokedAt = self.clock.now()
        try await self.perform(
            .putKey(record),
            action: .keyRevoke,
            tenant: id,
            object: keyID,
            origin: origin
        )
    }

    private func key(_ keyID: String, of id: TenantID) throws(GatewayError) -> APIKeyRecord {
        guard let record = self.directory.snapshot.principals[keyID]?.key, record.tenant == id else {
            throw GatewayError(.notFound, "The tenant has no such key")
        }
        return record
    }

    private func makeKey(_ draft: APIKeyDraft, tenant: TenantID) -> (APIKey, APIKeyRecord) {
        let key = APIKey.generate()
        return (key, self.record(of: key, draft, tenant: tenant))
    }

    private func record(of key: APIKey, _ draft: APIKeyDraft, tenant: TenantID) -> APIKeyRecord {
        APIKeyRecord(
            id: key.id,
            tenant: tenant,
            name: draft.name,
            digest: self.pepper.digest(of: key),
            scopes: draft.scopes,
            topicPrefixes: draft.topicPrefixes,
            createdAt: self.clock.now(),
            expiresAt: draft.expiresAt
        )
    }

    // MARK: Limits

    /// Replaces a tenant's own limits.
    ///
    /// - Throws: `notFound`, `auditUnavailable`, `storeUnavailable`.
    package func putLimits(
        _ limits: LimitOverrides,
        tenant id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) {
        _ = try self.profile(of: id)
        try await self.perform(
            .putLimits(id, limits),
            action: .limitsPut,
            tenant: id,
            object: id.text,
            origin: origin
        )
    }
}
