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

    /// - Throws: `notFound` and `conflict` as the change demands, and what the database throws.
    func apply(_ change: DirectoryChange) throws {
        switch change {
        case .putTenant(let tenant, let salt):
            try self.put(tenant, salt: salt)
        case .deleteTenant(let id):
            try self.db.execute(sql: "DELETE FROM tenants WHERE id = ?", arguments: [id.text])
            guard self.db.changesCount > 0 else { throw Self.noTenant(id) }
        case .putCredential(let credential):
            try self.requireTenant(credential.tenant)
            try self.put(credential)
        case .addKey(let key):
            try self.requireTenant(key.tenant)
            try self.insert(key)
        case .putKey(let key):
            try self.requireTenant(key.tenant)
            try self.put(key)
        case .rotateKey(let new, let old):
            try self.requireTenant(new.tenant)
            try self.shorten(old)
            try self.insert(new)
        case .putLimits(let tenant, let limits):
            try self.requireTenant(tenant)
            try self.put(limits, of: tenant)
        }
    }

    private func requireTenant(_ id: TenantID) throws {
        let isThere = try Bool.fetchOne(
            self.db,
            sql: "SELECT EXISTS (SELECT 1 FROM tenants WHERE id = ?)",
            arguments: [id.text]
        )
        guard isThere == true else { throw Self.noTenant(id) }
    }

    private static func noTenant(_ id: TenantID) -> GatewayError {
        GatewayError(.notFound, "There is no tenant \(id.text)")
    }

    // MARK: Tenants

    private func put(_ tenant: Tenant, salt: [UInt8]) throws {
        // The salt is missing from the update: with another one, old pseudonyms would no longer match.
        try self.db.execute(
            sql: """
                INSERT INTO tenants
                    (id, display_name, upstream, project_id, sender_id, is_disabled, client_names, salt,
                    created_at, updated_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET
                    display_name = excluded.display_name, upstream = excluded.upstream,
                    project_id = excluded.project_id, sender_id = excluded.sender_id,
                    is_disabled = excluded.is_disabled, client_names = excluded.client_names,
                    created_at = excluded.created_at, updated_at = excluded.updated_at
                """,
            arguments: [
                tenant.id.text, tenant.displayName, tenant.upstream.rawValue, tenant.projectID, tenant.senderID,
                tenant.isDisabled, try StoredJSON.encode(tenant.clientNames.map(\.text)), Data(salt),
                tenant.createdAt.microseconds, tenant.updatedAt.microseconds,
            ]
        )
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
                WHERE excluded.version >= credentials.version
                """,
            arguments: [
                credential.tenant.text, credential.kind.rawValue, credential.version, credential.envelope.wrappedKey,
                credential.envelope.sealed, credential.endpoint, credential.fingerprint,
                credential.createdAt.microseconds,
            ]
        )
        guard self.db.changesCount > 0 else {
            throw GatewayError(.conflict, "A later version of the credential is there already")
        }
    }

    // MARK: Keys

    private func put(_ key: APIKeyRecord) throws {
        try self.db.execute(
            sql: """
                INSERT INTO api_keys
                    (id, tenant, name, digest, scopes, topic_prefixes, created_at, expires_at, revoked_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET
                    name = excluded.name, digest = excluded.digest, scopes = excluded.scopes,
                    topic_prefixes = excluded.topic_prefixes, created_at = excluded.created_at,
                    expires_at = excluded.expires_at, revoked_at = excluded.revoked_at
                WHERE excluded.tenant = api_keys.tenant
                """,
            arguments: try Self.arguments(key)
        )
        guard self.db.changesCount > 0 else { throw Self.keyIsTaken }
    }

    private func insert(_ key: APIKeyRecord) throws {
        try self.db.execute(
            sql: """
                INSERT INTO api_keys
                    (id, tenant, name, digest, scopes, topic_prefixes, created_at, expires_at, revoked_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (id) DO NOTHING
                """,
            arguments: try Self.arguments(key)
        )
        guard self.db.changesCount > 0 else { throw Self.keyIsTaken }
    }

    /// Never lengthens: a key that was revoked or shortened in the meantime stays so.
    private func shorten(_ key: APIKeyRecord) throws {
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
        guard self.db.changesCount > 0 else { throw GatewayError(.notFound, "There is no key \(key.id)") }
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
