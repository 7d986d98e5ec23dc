import Foundation
package import GatewayCore

/// Tenants with their credentials, keys and limits, in sealed rows (decision 0038).
///
/// A tenant's seal covers its row and its limits. A key's seal covers its row and its tenant's salt, so that rows of an
/// earlier tenant with the same id are refused.
package struct SQLDirectoryStore: DirectoryStore {
    private let database: any SQLDatabase
    private let sealer: RowSealer

    package init(database: any SQLDatabase, sealer: RowSealer) {
        self.database = database
        self.sealer = sealer
    }

    package func load() async throws(GatewayError) -> Directory.Contents {
        try await self.database.read(scope: .gateway) { db in
            let rows = DirectoryRows(db: db, sealer: self.sealer)
            return try rows.contents(at: self.version(rows))
        }
    }

    package func changes(since seen: Directory.Version) async throws(GatewayError) -> Directory.News {
        try await self.database.read(scope: .gateway) { db in
            let rows = DirectoryRows(db: db, sealer: self.sealer)
            let version = try self.version(rows)
            // A backup was restored, or a standby that lacks changes took over and has made others since.
            if version.origin != seen.origin || version.number < seen.number {
                return .all(try rows.contents(at: version))
            }
            if version == seen { return .none }
            let tenants = try db.rows(
                "SELECT tenant FROM directory_changes WHERE version > $1",
                [.int(seen.number)]
            ) { TenantID($0.name(0)) }
            return .tenants(
                Set(tenants.compactMap(\.self)),
                try rows.contents(of: .changed(since: seen.number), at: version)
            )
        }
    }

    package func apply(
        _ change: Directory.Change,
        plannedAt version: Directory.Version
    ) async throws(GatewayError) -> Directory.Contents? {
        let contents = try await self.database.write(scope: .gateway, isolation: .readCommitted) {
            db -> Directory.Contents? in
            let writer = Writer(db: db, sealer: self.sealer)
            try writer.awaitTurn()
            let seen = try self.version(writer.rows)
            guard seen.origin == version.origin, try !writer.hasChange(of: change.tenant, since: version.number) else {
                return nil
            }
            try writer.apply(change)
            let made = Directory.Version(seen.number + 1, in: seen.origin)
            return try writer.rows.contents(of: .one(change.tenant), at: made)
        }
        guard contents != nil else { return nil }
        switch change {
        case .deleteTenant, .putCredential, .deleteCredential:
            // Erases salts and sealed secrets for good.
            await self.database.eraseDeleted()
        case .putTenant, .addKey, .putKey, .rotateKey, .removeKey, .putLimits:
            break
        }
        return contents
    }

    private func version(_ rows: DirectoryRows) throws -> Directory.Version {
        // If one process has the store to itself, no other changes it.
        Directory.Version(try rows.version(), in: self.database.isShared ? try rows.origin() : "")
    }
}

extension SQLConnection {
    /// True if this life of a tenant exists.
    func hasTenant(_ tenant: TenantID, createdAt: Timestamp) throws -> Bool {
        try self.exists("SELECT 1 FROM tenants WHERE id = $1 AND created_at = $2", [.text(tenant), .time(createdAt)])
    }
}

/// Reads the directory's tables. Leaves out rows whose seal is not genuine, and rows that this version can't read, such
/// as a later release's. Such a row hides no other tenant's changes.
struct DirectoryRows {
    fileprivate static let tenantColumns = """
        id, display_name, upstream, project_id, sender_id, prefixes_groups, is_disabled, client_names, salt,
        created_at, updated_at
        """
    fileprivate static let keyColumns =
        "id, tenant, name, digest, scopes, topic_prefixes, created_at, expires_at, revoked_at"

    /// The tenants to read.
    enum Selection {
        case all
        case one(TenantID)
        /// Tenants with a change after a version.
        case changed(since: Int64)
    }

    let db: any SQLConnection
    /// `nil` accepts every row.
    let sealer: RowSealer?

    /// The rows of the selected tenants, with all that belongs to them.
    func contents(
        of selection: Selection = .all,
        at version: Directory.Version = Directory.Version()
    ) throws -> Directory.Contents {
        var contents = Directory.Contents()
        contents.version = version
        let limits = try self.limits(of: selection)
        // Includes tenants that can't be read, so that their keys are told apart from wrong ones.
        var salts: [TenantID: [UInt8]] = [:]
        for row in try self.rows("\(Self.tenantColumns), seal FROM tenants", "id", selection) {
            let id = row.name(0)
            let own = limits[id] ?? []
            guard self.isGenuine(row, "tenants", boundTo: own.flatMap { Self.columns($0.values) }) else {
                contents.refused.append(Directory.RefusedRow(.tenant, id, of: TenantID(id)))
                continue
            }
            if let tenant = TenantID(id) { salts[tenant] = try? row.bytes(8) }
            guard let tenant = try? Self.tenant(row), let salt = salts[tenant.id], let limits = try? Self.limits(own)
            else {
                contents.refused.append(Directory.RefusedRow(.tenant, id, of: TenantID(id)))
                continue
            }
            contents.tenants.append(tenant)
            contents.salts[tenant.id] = salt
            if !own.isEmpty { contents.limits[tenant.id] = limits }
        }
        let credentials = try self.credentials(of: selection)
        contents.credentials = credentials.known.filter { contents.salts[$0.tenant] != nil }
        contents.refused += credentials.unknown
        for row in try self.rows("\(Self.keyColumns), seal FROM api_keys", "tenant", selection) {
            let owner = TenantID(row.name(1))
            // Keys of a tenant whose seal is not genuine are not served either, and are not reported again.
            guard let salt = owner.flatMap({ salts[$0] }) else { continue }
            guard self.isGenuine(row, "api_keys", boundTo: [salt]), let key = try? Self.key(row) else {
                contents.refused.append(Directory.RefusedRow(.key, row.name(0), of: owner))
                continue
            }
            contents.keys.append(key)
        }
        return contents
    }

    func origin() throws -> String { try self.db.first("SELECT gateway_origin()") { try $0.text(0) } ?? "" }

    /// The number of changes made, 0 before the first.
    func version() throws -> Int64 {
        try self.db.first("SELECT version FROM directory_version") { try $0.int64(0) } ?? 0
    }

    /// Credentials, also of tenants that are not served. Their envelopes are their seals.
    func credentials(of selection: Selection = .all) throws -> (
        known: [StoredCredential], unknown: [Directory.RefusedRow]
    ) {
        var (known, unknown): ([StoredCredential], [Directory.RefusedRow]) = ([], [])
        let columns = "tenant, kind, version, wrapped_key, sealed, endpoint, fingerprint, created_at"
        for row in try self.rows("\(columns) FROM credentials", "tenant", selection) {
            guard let credential = try? Self.credential(row) else {
                unknown.append(Directory.RefusedRow(.credential, row.name(1), of: TenantID(row.name(0))))
                continue
            }
            known.append(credential)
        }
        return (known, unknown)
    }

    // MARK: Seals

    /// Seals a tenant's row and limits in their current state.
    func sealTenant(_ id: TenantID) throws {
        guard let row = try self.rows("\(Self.tenantColumns) FROM tenants", "id", .one(id)).first else { return }
        let limits = try self.limits(of: .one(id))[id.text] ?? []
        let seal = self.seal(row, "tenants", boundTo: limits.flatMap { Self.columns($0.values) })
        try self.db.execute("UPDATE tenants SET seal = $2 WHERE id = $1", [.text(id), .bytes(seal)])
    }

    func sealKey(_ id: String, salt: [UInt8]) throws {
        let row = try self.db.first("SELECT \(Self.keyColumns) FROM api_keys WHERE id = $1", [.text(id)]) { $0 }
        guard let row else { return }
        let seal = self.seal(row, "api_keys", boundTo: [salt])
        try self.db.execute("UPDATE api_keys SET seal = $2 WHERE id = $1", [.text(id), .bytes(seal)])
    }

    private func seal(_ row: SQLRow, _ table: String, boundTo others: [[UInt8]?]) -> [UInt8] {
        self.sealer?.seal(of: Self.columns(row.values) + others, in: table) ?? []
    }

    /// True if a row is as the gateway wrote it. Its last column is its seal.
    private func isGenuine(_ row: SQLRow, _ table: String, boundTo others: [[UInt8]?]) -> Bool {
        guard let sealer = self.sealer else { return true }
        guard let seal = try? row.bytes(row.values.count - 1) else { return false }
        return sealer.isGenuine(seal, of: Self.columns(row.values.dropLast()) + others, in: table)
    }

    private static func columns(_ values: some Sequence<SQLValue>) -> [[UInt8]?] {
        values.map { value in
            switch value {
            case .null: nil
            case .integer(let number): Array(String(number).utf8)
            case .double(let number): Array(String(number).utf8)
            case .string(let text): Array(text.utf8)
            case .blob(let bytes): bytes
            }
        }
    }

    // MARK: Rows

    /// The rows of a table whose column names a selected tenant, in the order of the table's key.
    private func rows(_ table: String, _ column: String, _ selection: Selection) throws -> [SQLRow] {
        let (condition, values): (String, [SQLValue]) =
            switch selection {
            case .all: ("", [])
            case .one(let tenant): ("WHERE \(column) = $1", [.text(tenant)])
            case .changed(let version):
                ("WHERE \(column) IN (SELECT tenant FROM directory_changes WHERE version > $1)", [.int(version)])
            }
        return try self.db.rows("SELECT \(table) \(condition) ORDER BY 1, 2", values) { $0 }
    }

    private static func tenant(_ row: SQLRow) throws -> Tenant {
        Tenant(
            id: try row.tenant(0),
            displayName: try row.text(1),
            upstream: try row.parsed(2) { UpstreamKind(rawValue: $0) },
            projectID: try row.optionalText(3),
            senderID: try row.optionalText(4),
            prefixesGroups: try row.bool(5),
            isDisabled: try row.bool(6),
            clientNames: try row.parsed(7) { Self.clientNames($0) },
            createdAt: try row.time(9),
            updatedAt: try row.time(10)
        )
    }

    /// The names in a JSON array. `nil` if one is invalid: without it the tenant would lose a client name.
    private static func clientNames(_ json: String) -> [ClientName]? {
        guard let texts = StoredJSON.decode([String].self, from: json) else { return nil }
        let names = texts.compactMap { ClientName($0) }
        return names.count == texts.count ? names : nil
    }

    private static func credential(_ row: SQLRow) throws -> StoredCredential {
        StoredCredential(
            tenant: try row.tenant(0),
            kind: try row.parsed(1) { UpstreamKind(rawValue: $0) },
            version: try row.int(2),
            envelope: try row.envelope(3),
            endpoint: try row.optionalText(5),
            fingerprint: try row.text(6),
            createdAt: try row.time(7)
        )
    }

    private static func key(_ row: SQLRow) throws -> APIKey.Record {
        // A scope that is unknown to this version grants nothing.
        let scopes = try row.parsed(4) { StoredJSON.decode([String].self, from: $0) }
        return APIKey.Record(
            id: try row.text(0),
            tenant: try row.tenant(1),
            name: try row.text(2),
            digest: try row.bytes(3),
            scopes: Set(scopes.compactMap(Scope.init(rawValue:))),
            topicPrefixes: try row.parsed(5) { StoredJSON.decode([String].self, from: $0) },
            createdAt: try row.time(6),
            expiresAt: try row.optionalTime(7),
            revokedAt: try row.optionalTime(8)
        )
    }

    private func limits(of selection: Selection) throws -> [String: [SQLRow]] {
        let rows = try self.rows("tenant, scope, policies FROM limits", "tenant", selection)
        return Dictionary(grouping: rows) { $0.name(0) }
    }

    private static func limits(_ rows: [SQLRow]) throws -> LimitOverrides {
        var limits = LimitOverrides()
        for row in rows {
            let scope = try row.parsed(1) { LimitScope(rawValue: $0) }
            limits[scope] = try row.parsed(2) { StoredPolicy.decode($0) }
        }
        return limits
    }
}

extension SQLDirectoryStore {
    private struct Writer {
        let db: any SQLConnection
        let sealer: RowSealer

        var rows: DirectoryRows { DirectoryRows(db: self.db, sealer: self.sealer) }

        /// Waits for other replicas' changes of any tenant. This row's lock orders the changes, and later statements
        /// see all earlier ones. A serializable transaction would fail after the wait.
        func awaitTurn() throws {
            try self.db.execute(
                """
                INSERT INTO directory_version (id, version) VALUES (1, 0)
                ON CONFLICT (id) DO UPDATE SET version = directory_version.version
                """
            )
        }

        /// True if a tenant was created, changed or deleted after a version.
        func hasChange(of tenant: TenantID, since version: Int64) throws -> Bool {
            try self.db.exists(
                "SELECT 1 FROM directory_changes WHERE tenant = $1 AND version > $2",
                [.text(tenant), .int(version)]
            )
        }

        /// Makes a change.
        ///
        /// A row is changed only if its seal is genuine: a new seal must not make a forged row genuine.
        func apply(_ change: Directory.Change) throws {
            switch change {
            case .putTenant(let tenant, let salt):
                try self.put(tenant, salt: salt)
            case .deleteTenant(let id):
                guard try self.db.execute("DELETE FROM tenants WHERE id = $1", [.text(id)]) > 0 else {
                    throw Self.noTenant(id)
                }
            case .putCredential(let credential):
                _ = try self.salt(of: credential.tenant)
                try self.put(credential)
            case .deleteCredential(let kind, let tenant):
                _ = try self.salt(of: tenant)
                let values: [SQLValue] = [.text(tenant), .text(kind.rawValue)]
                guard try self.db.execute("DELETE FROM credentials WHERE tenant = $1 AND kind = $2", values) > 0 else {
                    throw GatewayError(.notFound, "The tenant has no \(kind.rawValue) credential")
                }
            case .addKey(let key):
                try self.put(key, replacing: false, salt: self.salt(of: key.tenant))
            case .putKey(let key):
                try self.put(key, replacing: true, salt: self.salt(of: key.tenant))
            case .rotateKey(let new, let old):
                let salt = try self.salt(of: new.tenant)
                try self.shorten(old, salt: salt)
                try self.put(new, replacing: false, salt: salt)
            case .removeKey(let id, let tenant):
                let values: [SQLValue] = [.text(id), .text(tenant)]
                guard try self.db.execute("DELETE FROM api_keys WHERE id = $1 AND tenant = $2", values) > 0 else {
                    throw Self.noKey(id)
                }
            case .putLimits(let tenant, let limits):
                _ = try self.salt(of: tenant)
                try self.put(limits, of: tenant)
            }
            try self.raiseVersion(changing: change.tenant)
        }

        private func raiseVersion(changing tenant: TenantID) throws {
            try self.db.execute("UPDATE directory_version SET version = version + 1")
            try self.db.execute(
                """
                INSERT INTO directory_changes (tenant, version) SELECT CAST($1 AS TEXT), version FROM directory_version WHERE id = 1
                ON CONFLICT (tenant) DO UPDATE SET version = excluded.version
                """,
                [.text(tenant)]
            )
            _ = try self.db.exists("SELECT gateway_notify()")
        }

        /// The stored rows of a tenant. Empty if there is no such tenant.
        ///
        /// - Throws: `conflict` for a row that is refused.
        private func stored(_ id: TenantID) throws -> Directory.Contents {
            let contents = try self.rows.contents(of: .one(id))
            guard contents.refused.contains(Directory.RefusedRow(.tenant, id.text, of: id)) else { return contents }
            throw GatewayError(
                .conflict,
                "The tenant's row in the store is not as the gateway wrote it, or a later release wrote it; restore a "
                    + "backup, delete the tenant, or use the later release"
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
            // The update leaves the salt out: with another one, old pseudonyms would no longer match.
            try self.db.execute(
                """
                INSERT INTO tenants (\(DirectoryRows.tenantColumns), seal)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
                ON CONFLICT (id) DO UPDATE SET
                    display_name = excluded.display_name, upstream = excluded.upstream,
                    project_id = excluded.project_id, sender_id = excluded.sender_id,
                    prefixes_groups = excluded.prefixes_groups,
                    is_disabled = excluded.is_disabled, client_names = excluded.client_names,
                    created_at = excluded.created_at, updated_at = excluded.updated_at
                """,
                [
                    .text(tenant.id), .text(tenant.displayName), .text(tenant.upstream.rawValue),
                    .text(tenant.projectID),
                    .text(tenant.senderID), .bool(prefixesGroups), .bool(tenant.isDisabled),
                    .text(try StoredJSON.encode(tenant.clientNames.map(\.text))), .bytes(salt), .time(tenant.createdAt),
                    .time(tenant.updatedAt), .blob([]),
                ]
            )
            try self.rows.sealTenant(tenant.id)
        }

        /// True if a tenant's groups need names that can't collide with another tenant's. Unchanged while it keeps its
        /// sender id.
        private func prefixesGroups(_ tenant: Tenant, replacing existing: Tenant?) throws -> Bool {
            guard let sender = tenant.senderID else { return false }
            if let existing, existing.senderID == sender { return existing.prefixesGroups }
            return try self.db.exists(
                "SELECT 1 FROM tenants WHERE sender_id = $1 AND id <> $2",
                [.text(sender), .text(tenant.id)]
            )
        }

        private func put(_ limits: LimitOverrides, of tenant: TenantID) throws {
            try self.db.execute("DELETE FROM limits WHERE tenant = $1", [.text(tenant)])
            for scope in LimitScope.allCases {
                // An empty list means no policies, not the default ones, so it is stored.
                guard let policies = limits[scope] else { continue }
                try self.db.execute(
                    "INSERT INTO limits (tenant, scope, policies) VALUES ($1, $2, $3)",
                    [.text(tenant), .text(scope.rawValue), .text(try StoredPolicy.encode(policies))]
                )
            }
            try self.rows.sealTenant(tenant)
        }

        // MARK: Credentials and keys

        private func put(_ credential: StoredCredential) throws {
            let changes = try self.db.execute(
                """
                INSERT INTO credentials (tenant, kind, version, wrapped_key, sealed, endpoint, fingerprint, created_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                ON CONFLICT (tenant, kind) DO UPDATE SET
                    version = excluded.version, wrapped_key = excluded.wrapped_key, sealed = excluded.sealed,
                    endpoint = excluded.endpoint, fingerprint = excluded.fingerprint, created_at = excluded.created_at
                WHERE excluded.version > credentials.version
                """,
                [
                    .text(credential.tenant), .text(credential.kind.rawValue), .int(credential.version),
                    .bytes(credential.envelope.wrappedKey), .bytes(credential.envelope.sealed),
                    .text(credential.endpoint),
                    .text(credential.fingerprint), .time(credential.createdAt),
                ]
            )
            guard changes > 0 else {
                throw GatewayError(.conflict, "This version of the credential, or a later one, is there already")
            }
        }

        /// Adds a key, or replaces one of the same tenant.
        private func put(_ key: APIKey.Record, replacing: Bool, salt: [UInt8]) throws {
            let replacement = """
                DO UPDATE SET
                    name = excluded.name, digest = excluded.digest, scopes = excluded.scopes,
                    topic_prefixes = excluded.topic_prefixes, created_at = excluded.created_at,
                    expires_at = excluded.expires_at, revoked_at = excluded.revoked_at
                WHERE excluded.tenant = api_keys.tenant
                """
            let changes = try self.db.execute(
                """
                INSERT INTO api_keys (\(DirectoryRows.keyColumns), seal) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
                ON CONFLICT (id) \(replacing ? replacement : "DO NOTHING")
                """,
                [
                    .text(key.id), .text(key.tenant), .text(key.name), .bytes(key.digest),
                    .text(try StoredJSON.encode(key.scopes.map(\.rawValue).sorted())),
                    .text(try StoredJSON.encode(key.topicPrefixes)), .time(key.createdAt), .time(key.expiresAt),
                    .time(key.revokedAt), .blob([]),
                ]
            )
            guard changes > 0 else { throw GatewayError(.conflict, "A key with this id exists already") }
            try self.rows.sealKey(key.id, salt: salt)
        }

        /// Only shortens: a key that was revoked or shortened meanwhile stays so.
        private func shorten(_ key: APIKey.Record, salt: [UInt8]) throws {
            guard let stored = try self.stored(key.tenant).keys.first(where: { $0.id == key.id }) else {
                throw Self.noKey(key.id)
            }
            let expiry = [stored.expiresAt, key.expiresAt].compactMap { $0 }.min()
            try self.db.execute(
                "UPDATE api_keys SET expires_at = $3, revoked_at = $4 WHERE id = $1 AND tenant = $2",
                [.text(key.id), .text(key.tenant), .time(expiry), .time(stored.revokedAt ?? key.revokedAt)]
            )
            try self.rows.sealKey(key.id, salt: salt)
        }
    }
}

extension SQLRow {
    /// The name of a row, also of a damaged one.
    fileprivate func name(_ column: Int) -> String { (try? self.text(column)) ?? "?" }

    /// The sealed secret whose wrapped key is in a column, and the rest in the next.
    func envelope(_ column: Int) throws(DamagedValue) -> Envelope {
        Envelope(wrappedKey: Data(try self.bytes(column)), sealed: Data(try self.bytes(column + 1)))
    }
}

/// Small lists as JSON text in one column.
enum StoredJSON {
    /// `nil` for text that is not such a list.
    static func decode<T: Decodable>(_ type: T.Type, from text: String) -> T? {
        try? JSONDecoder().decode(type, from: Data(text.utf8))
    }

    /// Equal values give the same text.
    static func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }
}

/// A stored rate policy.
private struct StoredPolicy: Codable {
    private enum CodingKeys: String, CodingKey {
        case rate
        case periodSeconds = "period_s"
        case burst
    }

    let rate: Int
    let periodSeconds: Int
    let burst: Int

    /// `nil` for text that holds anything but valid policies.
    static func decode(_ text: String) -> [RatePolicy]? {
        guard let stored = StoredJSON.decode([StoredPolicy].self, from: text) else { return nil }
        let policies = stored.compactMap { RatePolicy(rate: $0.rate, periodSeconds: $0.periodSeconds, burst: $0.burst) }
        return policies.count == stored.count ? policies : nil
    }

    static func encode(_ policies: [RatePolicy]) throws -> String {
        try StoredJSON.encode(
            policies.map { StoredPolicy(rate: $0.rate, periodSeconds: $0.periodSeconds, burst: $0.burst) }
        )
    }
}
