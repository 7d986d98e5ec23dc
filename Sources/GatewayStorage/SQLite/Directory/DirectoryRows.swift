import GRDB
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads the directory's tables, and leaves out rows whose seal is not the gateway's.
///
/// A tenant's seal covers its row and its limits, a key's its row and the salt of its tenant: what belonged to an earlier
/// tenant of the same id is refused.
struct DirectoryRows {
    private static let tenantColumns = """
        id, display_name, upstream, project_id, sender_id, prefixes_groups, is_disabled, client_names, salt,
        created_at, updated_at
        """
    private static let keyColumns =
        "id, tenant, name, digest, scopes, topic_prefixes, created_at, expires_at, revoked_at"

    let db: Database
    /// `nil` to take every row as it is, for those who only look.
    let sealer: RowSealer?

    /// All tenants, or one of them, with what belongs to them.
    ///
    /// - Throws: ``DamagedValue`` for a sealed row that this version does not understand.
    func contents(of tenant: TenantID? = nil) throws -> DirectoryContents {
        var contents = DirectoryContents()
        let limits = try self.limits(of: tenant)
        for row in try self.rows("\(Self.tenantColumns), seal FROM tenants", "id", tenant) {
            let reader = RowReader(row, of: "tenants")
            let id: String = try reader.value("id")
            let own = limits[id] ?? []
            guard try self.isGenuine(row, "tenants", boundTo: own.flatMap(Self.columns)) else {
                contents.refused.append(RefusedRow(.tenant, id, of: TenantID(id)))
                continue
            }
            let tenant = try Self.tenant(reader)
            contents.tenants.append(tenant)
            contents.salts[tenant.id] = try reader.bytes("salt")
            if !own.isEmpty { contents.limits[tenant.id] = try Self.limits(own) }
        }
        let credentials = try self.credentials(of: tenant)
        contents.credentials = credentials.known.filter { contents.salts[$0.tenant] != nil }
        contents.refused += credentials.unknown
        for row in try self.rows("\(Self.keyColumns), seal FROM api_keys", "tenant", tenant) {
            let reader = RowReader(row, of: "api_keys")
            let owner = TenantID(try reader.value("tenant", as: String.self))
            // Those of a refused tenant are not served either, and say nothing new.
            guard let salt = owner.flatMap({ contents.salts[$0] }) else { continue }
            guard try self.isGenuine(row, "api_keys", boundTo: [salt]) else {
                contents.refused.append(RefusedRow(.key, try reader.value("id"), of: owner))
                continue
            }
            contents.keys.append(try Self.key(reader))
        }
        return contents
    }

    /// The credentials of all tenants, or of one, with or without a tenant that is served; their envelopes are their
    /// seals.
    func credentials(of tenant: TenantID? = nil) throws -> (known: [StoredCredential], unknown: [RefusedRow]) {
        var (known, unknown): ([StoredCredential], [RefusedRow]) = ([], [])
        let columns = "tenant, kind, version, wrapped_key, sealed, endpoint, fingerprint, created_at"
        for row in try self.rows("\(columns) FROM credentials", "tenant", tenant) {
            let reader = RowReader(row, of: "credentials")
            let (owner, kind): (String, String) = (try reader.value("tenant"), try reader.value("kind"))
            guard let tenant = TenantID(owner), let upstream = UpstreamKind(rawValue: kind) else {
                unknown.append(RefusedRow(.credential, kind, of: TenantID(owner)))
                continue
            }
            known.append(
                StoredCredential(
                    tenant: tenant,
                    kind: upstream,
                    version: try reader.value("version"),
                    envelope: try reader.envelope(),
                    endpoint: try reader.optional("endpoint"),
                    fingerprint: try reader.value("fingerprint"),
                    createdAt: try reader.time("created_at")
                )
            )
        }
        return (known, unknown)
    }

    /// The salts of all tenants, served or not.
    func salts() throws -> [String: [UInt8]] {
        try Row.fetchAll(self.db, sql: "SELECT id, salt FROM tenants")
            .reduce(into: [:]) { salts, row in
                let reader = RowReader(row, of: "tenants")
                salts[try reader.value("id")] = try reader.bytes("salt")
            }
    }

    // MARK: Seals

    /// Seals a tenant's row and limits as they are now.
    func sealTenant(_ id: TenantID) throws {
        guard let row = try self.rows("\(Self.tenantColumns) FROM tenants", "id", id).first else { return }
        let limits = try self.limits(of: id)[id.text] ?? []
        try self.db.execute(
            sql: "UPDATE tenants SET seal = ? WHERE id = ?",
            arguments: [Data(self.seal(row, "tenants", boundTo: limits.flatMap(Self.columns))), id.text]
        )
    }

    /// Seals a key's row as it is now.
    func sealKey(_ id: String, salt: [UInt8]) throws {
        let sql = "SELECT \(Self.keyColumns) FROM api_keys WHERE id = ?"
        guard let row = try Row.fetchOne(self.db, sql: sql, arguments: [id]) else { return }
        try self.db.execute(
            sql: "UPDATE api_keys SET seal = ? WHERE id = ?",
            arguments: [Data(self.seal(row, "api_keys", boundTo: [salt])), id]
        )
    }

    private func seal(_ row: Row, _ table: String, boundTo others: [[UInt8]?]) -> [UInt8] {
        self.sealer?.seal(of: Self.columns(row) + others, in: table) ?? []
    }

    /// Whether a row, whose last column is its seal, is as the gateway left it.
    private func isGenuine(_ row: Row, _ table: String, boundTo others: [[UInt8]?]) throws -> Bool {
        guard let sealer = self.sealer else { return true }
        let seal = try RowReader(row, of: table).bytes("seal")
        return sealer.isGenuine(seal, of: Array(Self.columns(row).dropLast()) + others, in: table)
    }

    private static func columns(_ row: Row) -> [[UInt8]?] {
        row.databaseValues.map { value in
            switch value.storage {
            case .null: nil
            case .int64(let number): Array(String(number).utf8)
            case .double(let number): Array(String(number).utf8)
            case .string(let text): Array(text.utf8)
            case .blob(let data): [UInt8](data)
            }
        }
    }

    // MARK: Rows

    /// The rows of a table in the order of its key, or only those of a tenant.
    private func rows(_ selection: String, _ column: String, _ tenant: TenantID?) throws -> [Row] {
        guard let tenant else { return try Row.fetchAll(self.db, sql: "SELECT \(selection) ORDER BY 1, 2") }
        return try Row.fetchAll(
            self.db,
            sql: "SELECT \(selection) WHERE \(column) = ? ORDER BY 1, 2",
            arguments: [tenant.text]
        )
    }

    private static func tenant(_ reader: RowReader) throws -> Tenant {
        Tenant(
            id: try reader.parsed("id") { TenantID($0) },
            displayName: try reader.value("display_name"),
            upstream: try reader.parsed("upstream") { UpstreamKind(rawValue: $0) },
            projectID: try reader.optional("project_id"),
            senderID: try reader.optional("sender_id"),
            prefixesGroups: try reader.value("prefixes_groups"),
            isDisabled: try reader.value("is_disabled"),
            clientNames: try reader.parsed("client_names") { Self.clientNames($0) },
            createdAt: try reader.time("created_at"),
            updatedAt: try reader.time("updated_at")
        )
    }

    /// The names in a JSON array; `nil` where one is none, since without it the tenant could ask for nothing.
    private static func clientNames(_ json: String) -> [ClientName]? {
        guard let texts = StoredJSON.decode([String].self, from: json) else { return nil }
        let names = texts.compactMap { ClientName($0) }
        return names.count == texts.count ? names : nil
    }

    private static func key(_ reader: RowReader) throws -> APIKeyRecord {
        // A scope that this version does not know gives no right.
        let scopes = try reader.parsed("scopes") { StoredJSON.decode([String].self, from: $0) }
        return APIKeyRecord(
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
    }

    /// The rows of limits by tenant.
    private func limits(of tenant: TenantID?) throws -> [String: [Row]] {
        try Dictionary(grouping: self.rows("tenant, scope, policies FROM limits", "tenant", tenant)) { row in
            try RowReader(row, of: "limits").value("tenant")
        }
    }

    private static func limits(_ rows: [Row]) throws -> LimitOverrides {
        var limits = LimitOverrides()
        for row in rows {
            let reader = RowReader(row, of: "limits")
            let scope = try reader.parsed("scope") { LimitScope(rawValue: $0) }
            limits[scope] = try reader.parsed("policies") { StoredPolicy.decode($0) }
        }
        return limits
    }
}
