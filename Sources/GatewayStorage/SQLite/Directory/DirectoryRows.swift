import GRDB
import GatewayCore

/// Reads the directory's tables.
enum DirectoryRows {
    static func readTenants(_ db: Database, into contents: inout DirectoryContents) throws {
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT id, display_name, upstream, project_id, sender_id, is_disabled, client_names, salt,
                    created_at, updated_at
                FROM tenants ORDER BY id
                """
        )
        while let row = try rows.next() {
            let reader = RowReader(row, of: "tenants")
            let tenant = Tenant(
                id: try reader.parsed("id") { TenantID($0) },
                displayName: try reader.value("display_name"),
                upstream: try reader.parsed("upstream") { UpstreamKind(rawValue: $0) },
                projectID: try reader.optional("project_id"),
                senderID: try reader.optional("sender_id"),
                isDisabled: try reader.value("is_disabled"),
                clientNames: try reader.parsed("client_names") { Self.clientNames($0) },
                createdAt: try reader.time("created_at"),
                updatedAt: try reader.time("updated_at")
            )
            contents.tenants.append(tenant)
            contents.salts[tenant.id] = try reader.bytes("salt")
        }
    }

    /// The names in a JSON array; `nil` where one is none, since without it the tenant could ask for nothing.
    private static func clientNames(_ json: String) -> [ClientName]? {
        guard let texts = StoredJSON.decode([String].self, from: json) else { return nil }
        let names = texts.compactMap { ClientName($0) }
        return names.count == texts.count ? names : nil
    }

    static func credentials(_ db: Database) throws -> [StoredCredential] {
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT tenant, kind, version, wrapped_key, sealed, endpoint, fingerprint, created_at
                FROM credentials ORDER BY tenant, kind
                """
        )
        var credentials: [StoredCredential] = []
        while let row = try rows.next() {
            let reader = RowReader(row, of: "credentials")
            credentials.append(
                StoredCredential(
                    tenant: try reader.parsed("tenant") { TenantID($0) },
                    kind: try reader.parsed("kind") { UpstreamKind(rawValue: $0) },
                    version: try reader.value("version"),
                    envelope: try reader.envelope(),
                    endpoint: try reader.optional("endpoint"),
                    fingerprint: try reader.value("fingerprint"),
                    createdAt: try reader.time("created_at")
                )
            )
        }
        return credentials
    }

    static func keys(_ db: Database) throws -> [APIKeyRecord] {
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT id, tenant, name, digest, scopes, topic_prefixes, created_at, expires_at, revoked_at
                FROM api_keys ORDER BY id
                """
        )
        var keys: [APIKeyRecord] = []
        while let row = try rows.next() {
            let reader = RowReader(row, of: "api_keys")
            // A scope that this version does not know gives no right.
            let scopes = try reader.parsed("scopes") { StoredJSON.decode([String].self, from: $0) }
            keys.append(
                APIKeyRecord(
                    id: try reader.value("id"),
                    tenant: try reader.parsed("tenant") { TenantID($0) },
                    name: try reader.value("name"),
                    digest: try reader.bytes("digest"),
                    scopes: Set(scopes.compactMap(Scope.init(rawValue:))),
                    topicPrefixes: try reader.parsed("topic_prefixes") { StoredJSON.decode([String].self, from: $0) },
                    createdAt: try reader.time("created_at"),
                    expiresAt: try reader.optionalTime("expires_at"),
                    revokedAt: try reader.optionalTime("revoked_at")
                )
            )
        }
        return keys
    }

    static func limits(_ db: Database) throws -> [TenantID: LimitOverrides] {
        let rows = try Row.fetchCursor(db, sql: "SELECT tenant, scope, policies FROM limits")
        var limits: [TenantID: LimitOverrides] = [:]
        while let row = try rows.next() {
            let reader = RowReader(row, of: "limits")
            let tenant = try reader.parsed("tenant") { TenantID($0) }
            let scope = try reader.parsed("scope") { LimitScope(rawValue: $0) }
            let policies = try reader.parsed("policies") { StoredPolicy.decode($0) }
            limits[tenant, default: LimitOverrides()][scope] = policies
        }
        return limits
    }
}
