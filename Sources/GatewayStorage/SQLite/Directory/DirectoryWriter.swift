import GRDB
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes changes of the directory within a transaction.
struct DirectoryWriter {
    let db: Database
    let sealer: RowSealer

    private var rows: DirectoryRows { DirectoryRows(db: self.db, sealer: self.sealer) }

    /// Makes a change, and reads what there is of its tenant then.
    ///
    /// A row is only changed as long as it is the gateway's own: a new seal must not make good what somebody else wrote.
    ///
    /// - Throws: `notFound` and `conflict` as the change demands, and what the database throws.
    func apply(_ change: DirectoryChange) throws -> DirectoryContents {
        switch change {
        case .putTenant(let tenant, let salt):
            try self.put(tenant, salt: salt)
        case .deleteTenant(let id):
            try self.db.execute(sql: "DELETE FROM tenants WHERE id = ?", arguments: [id.text])
            guard self.db.changesCount > 0 else { throw Self.noTenant(id) }
        case .putCredential(let credential):
            _ = try self.salt(of: credential.tenant)
            try self.put(credential)
        case .addKey(let key):
            try self.insert(key, salt: self.salt(of: key.tenant))
        case .putKey(let key):
            try self.put(key, salt: self.salt(of: key.tenant))
        case .rotateKey(let new, let old):
            let salt = try self.salt(of: new.tenant)
            try self.shorten(old, salt: salt)
            try self.insert(new, salt: salt)
        case .removeKey(let id, let tenant):
            try self.db.execute(
                sql: "DELETE FROM api_keys WHERE id = ? AND tenant = ?",
                arguments: [id, tenant.text]
            )
            guard self.db.changesCount > 0 else { throw Self.noKey(id) }
        case .putLimits(let tenant, let limits):
            _ = try self.salt(of: tenant)
            try self.put(limits, of: tenant)
        }
        return try self.rows.contents(of: change.tenant)
    }

    /// What is stored of a tenant; nothing where there is none.
    ///
    /// - Throws: `conflict` for a row that is refused.
    private func stored(_ id: TenantID) throws -> DirectoryContents {
        let contents = try self.rows.contents(of: id)
        guard contents.refused.contains(RefusedRow(.tenant, id.text, of: id)) else { return contents }
        throw GatewayError(
            .conflict,
            "The tenant's row in the store is not as the gateway left it; go back to a backup, or delete the tenant"
        )
    }

    private func salt(of id: TenantID) throws -> [UInt8] {
        guard let salt = try self.stored(id).salts[id] else { throw Self.noTenant(id) }
        return salt
    }

    private static func noTenant(_ id: TenantID) -> GatewayError {
        GatewayError(.notFound, "There is no tenant \(id.text)")
    }

    private static func noKey(_ id: String) -> GatewayError {
        GatewayError(.notFound, "There is no key \(id)")
    }

    // MARK: Tenants

    private func put(_ tenant: Tenant, salt: [UInt8]) throws {
        let prefixesGroups = try self.prefixesGroups(tenant, replacing: self.stored(tenant.id).tenants.first)
        // The salt is missing from the update: with another one, old pseudonyms would no longer match.
        try self.db.execute(
            sql: """
                INSERT INTO tenants
                    (id, display_name, upstream, project_id, sender_id, prefixes_groups, is_disabled, client_names,
                    salt, created_at, updated_at, seal)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, x'')
                ON CONFLICT (id) DO UPDATE SET
                    display_name = excluded.display_name, upstream = excluded.upstream,
                    project_id = excluded.project_id, sender_id = excluded.sender_id,
                    prefixes_groups = excluded.prefixes_groups,
                    is_disabled = excluded.is_disabled, client_names = excluded.client_names,
                    created_at = excluded.created_at, updated_at = excluded.updated_at
                """,
            arguments: [
                tenant.id.text, tenant.displayName, tenant.upstream.rawValue, tenant.projectID, tenant.senderID,
                prefixesGroups, tenant.isDisabled, try StoredJSON.encode(tenant.clientNames.map(\.text)), Data(salt),
                tenant.createdAt.microseconds, tenant.updatedAt.microseconds,
            ]
        )
        try self.rows.sealTenant(tenant.id)
    }

    /// Whether a tenant's groups need names that can't meet another's: as it was as long as it has the same sender id.
    private func prefixesGroups(_ tenant: Tenant, replacing existing: Tenant?) throws -> Bool {
        guard let sender = tenant.senderID else { return false }
        if let existing, existing.senderID == sender { return existing.prefixesGroups }
        return try Bool.fetchOne(
            self.db,
            sql: "SELECT EXISTS (SELECT 1 FROM tenants WHERE sender_id = ? AND id <> ?)",
            arguments: [sender, tenant.id.text]
        ) ?? false
    }

    private func put(_ limits: LimitOverrides, of tenant: TenantID) throws {
        try self.db.execute(sql: "DELETE FROM limits WHERE tenant = ?", arguments: [tenant.text])
        for scope in LimitScope.allCases {
            // No policies at all is something else than the default ones, so an empty list is stored.
            guard let policies = limits[scope] else { continue }
            try self.db.execute(
                sql: "INSERT INTO limits (tenant, scope, policies) VALUES (?, ?, ?)",
                arguments: [tenant.text, scope.rawValue, try StoredPolicy.encode(policies)]
            )
        }
        try self.rows.sealTenant(tenant)
    }

    // MARK: Credentials

    private func put(_ credential: StoredCredential) throws {
        try self.db.execute(
            sql: """
                INSERT INTO credentials
                    (tenant, kind, version, wrapped_key, sealed, endpoint, fingerprint, created_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (tenant, kind) DO UPDATE SET
                    version = excluded.version, wrapped_key = excluded.wrapped_key, sealed = excluded.sealed,
                    endpoint = excluded.endpoint, fingerprint = excluded.fingerprint, created_at = excluded.created_at
                WHERE excluded.version > credentials.version
                """,
            arguments: [
                credential.tenant.text, credential.kind.rawValue, credential.version, credential.envelope.wrappedKey,
                credential.envelope.sealed, credential.endpoint, credential.fingerprint,
                credential.createdAt.microseconds,
            ]
        )
        guard self.db.changesCount > 0 else {
            throw GatewayError(.conflict, "This version of the credential, or a later one, is there already")
        }
    }

    // MARK: Keys

    private func put(_ key: APIKeyRecord, salt: [UInt8]) throws {
        try self.db.execute(
            sql: """
                INSERT INTO api_keys
                    (id, tenant, name, digest, scopes, topic_prefixes, created_at, expires_at, revoked_at, seal)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, x'')
                ON CONFLICT (id) DO UPDATE SET
                    name = excluded.name, digest = excluded.digest, scopes = excluded.scopes,
                    topic_prefixes = excluded.topic_prefixes, created_at = excluded.created_at,
                    expires_at = excluded.expires_at, revoked_at = excluded.revoked_at
                WHERE excluded.tenant = api_keys.tenant
                """,
            arguments: try Self.arguments(key)
        )
        guard self.db.changesCount > 0 else { throw Self.keyIsTaken }
        try self.rows.sealKey(key.id, salt: salt)
    }

    private func insert(_ key: APIKeyRecord, salt: [UInt8]) throws {
        try self.db.execute(
            sql: """
                INSERT INTO api_keys
                    (id, tenant, name, digest, scopes, topic_prefixes, created_at, expires_at, revoked_at, seal)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, x'')
                ON CONFLICT (id) DO NOTHING
                """,
            arguments: try Self.arguments(key)
        )
        guard self.db.changesCount > 0 else { throw Self.keyIsTaken }
        try self.rows.sealKey(key.id, salt: salt)
    }

    /// Never lengthens: a key that was revoked or shortened in the meantime stays so.
    private func shorten(_ key: APIKeyRecord, salt: [UInt8]) throws {
        guard try self.stored(key.tenant).keys.contains(where: { $0.id == key.id }) else { throw Self.noKey(key.id) }
        try self.db.execute(
            sql: """
                UPDATE api_keys SET
                    expires_at = CASE
                        WHEN :expiry IS NULL THEN expires_at
                        ELSE min(ifnull(expires_at, :expiry), :expiry)
                    END,
                    revoked_at = ifnull(revoked_at, :revocation)
                WHERE id = :id AND tenant = :tenant
                """,
            arguments: [
                "expiry": key.expiresAt?.microseconds, "revocation": key.revokedAt?.microseconds,
                "id": key.id, "tenant": key.tenant.text,
            ]
        )
        try self.rows.sealKey(key.id, salt: salt)
    }

    private static func arguments(_ key: APIKeyRecord) throws -> StatementArguments {
        [
            key.id, key.tenant.text, key.name, Data(key.digest),
            try StoredJSON.encode(key.scopes.map(\.rawValue).sorted()), try StoredJSON.encode(key.topicPrefixes),
            key.createdAt.microseconds, key.expiresAt?.microseconds, key.revokedAt?.microseconds,
        ]
    }

    private static var keyIsTaken: GatewayError {
        GatewayError(.conflict, "There is a key of this id already")
    }
}
