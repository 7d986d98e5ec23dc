import GRDB
package import GatewayCore

/// Device groups in the gateway's own file.
package struct SQLiteGroupStore: GroupStore {
    /// By how many of its last keys a group is known.
    private static let keptKeys = 1_000

    private let database: SQLiteDatabase

    /// Device groups in an open database.
    package init(database: SQLiteDatabase) {
        self.database = database
    }

    /// A tenant's group of a name.
    ///
    /// - Throws: `storeUnavailable`, also for stored values that this version does not understand.
    package func group(named name: String, of tenant: TenantID) async throws(GatewayError) -> DeviceGroup? {
        try await self.database.read { db in
            try Self.group(db, named: name, of: tenant)
        }
    }

    /// A tenant's group that has or had exactly this key.
    ///
    /// - Throws: `storeUnavailable`, also for stored values that this version does not understand.
    package func group(withKey key: String, of tenant: TenantID) async throws(GatewayError) -> DeviceGroup? {
        try await self.database.read { db in
            let name = try String.fetchOne(
                db,
                sql: "SELECT name FROM device_group_keys WHERE tenant = ? AND notification_key = ?",
                arguments: [tenant.text, key]
            )
            return try name.flatMap { try Self.group(db, named: $0, of: tenant) }
        }
    }

    /// Every key by which a group is known.
    ///
    /// - Throws: `storeUnavailable`, also for stored values that this version does not understand.
    package func keys() async throws(GatewayError) -> [(tenant: TenantID, key: String)] {
        try await self.database.read { db in
            let rows = try Row.fetchCursor(db, sql: "SELECT tenant, notification_key FROM device_group_keys")
            var keys: [(tenant: TenantID, key: String)] = []
            while let row = try rows.next() {
                let reader = RowReader(row, of: "device_group_keys")
                keys.append((try reader.parsed("tenant") { TenantID($0) }, try reader.value("notification_key")))
            }
            return keys
        }
    }

    /// Stores a group in place of the version that it was made from.
    ///
    /// - Returns: its new version.
    /// - Throws: `conflict`, `notFound` for a tenant that is not there, `storeUnavailable`.
    package func save(_ group: DeviceGroup) async throws(GatewayError) -> Int {
        try await self.database.write { db in
            try Self.requireTenant(db, group)
            if group.version == 0 {
                try Self.insert(db, group)
            } else {
                try Self.update(db, group)
            }
            guard db.changesCount > 0 else { throw Self.conflict }
            try Self.noteKey(db, group)
            return group.version + 1
        }
    }

    /// Forgets a group.
    ///
    /// - Throws: `conflict`, `notFound` for a tenant that is not there, `storeUnavailable`.
    package func remove(_ group: DeviceGroup) async throws(GatewayError) {
        try await self.database.write { db in
            try Self.requireTenant(db, group)
            try db.execute(
                sql: "DELETE FROM device_groups WHERE tenant = ? AND name = ? AND version = ?",
                arguments: [group.tenant.text, group.name, group.version]
            )
            guard db.changesCount > 0 else { throw Self.conflict }
        }
    }

    /// Names of a tenant's groups in the order of their bytes.
    ///
    /// - Throws: `storeUnavailable`.
    package func names(
        of tenant: TenantID,
        after name: String?,
        limit: Int
    ) async throws(GatewayError) -> [String] {
        try await self.database.read { db in
            // The empty text is before every name, and none.
            try String.fetchAll(
                db,
                sql: "SELECT name FROM device_groups WHERE tenant = ? AND name > ? ORDER BY name LIMIT ?",
                arguments: [tenant.text, name ?? "", limit]
            )
        }
    }

    // MARK: Rows

    private static func group(_ db: Database, named name: String, of tenant: TenantID) throws -> DeviceGroup? {
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT name, upstream_name, notification_key, members, is_complete, version,
                    device_groups.updated_at, created_at
                FROM device_groups JOIN tenants ON id = tenant WHERE tenant = ? AND name = ?
                """,
            arguments: [tenant.text, name]
        )
        guard let row else { return nil }
        let reader = RowReader(row, of: "device_groups")
        return DeviceGroup(
            tenant: tenant,
            tenantCreatedAt: try reader.time("created_at"),
            name: try reader.value("name"),
            upstreamName: try reader.value("upstream_name"),
            key: try reader.optional("notification_key"),
            members: try reader.parsed("members") { StoredMember.decode($0) },
            isComplete: try reader.value("is_complete"),
            version: try reader.value("version"),
            updatedAt: try reader.time("updated_at")
        )
    }

    /// A group belongs to one life of its tenant: what an earlier one began is not carried into the next.
    private static func requireTenant(_ db: Database, _ group: DeviceGroup) throws {
        let hasTenant = try Bool.fetchOne(
            db,
            sql: "SELECT EXISTS (SELECT 1 FROM tenants WHERE id = ? AND created_at = ?)",
            arguments: [group.tenant.text, group.tenantCreatedAt.microseconds]
        )
        guard hasTenant == true else { throw GatewayError(.notFound, "There is no tenant \(group.tenant.text)") }
    }

    private static func insert(_ db: Database, _ group: DeviceGroup) throws {
        try db.execute(
            sql: """
                INSERT INTO device_groups
                    (tenant, name, upstream_name, notification_key, members, is_complete, version, updated_at)
                VALUES (?, ?, ?, ?, ?, ?, 1, ?)
                ON CONFLICT (tenant, name) DO NOTHING
                """,
            arguments: [
                group.tenant.text, group.name, group.upstreamName, group.key, try StoredMember.encode(group.members),
                group.isComplete, group.updatedAt.microseconds,
            ]
        )
    }

    private static func update(_ db: Database, _ group: DeviceGroup) throws {
        try db.execute(
            sql: """
                UPDATE device_groups SET
                    notification_key = ?, members = ?, is_complete = ?, version = version + 1, updated_at = ?
                WHERE tenant = ? AND name = ? AND version = ?
                """,
            arguments: [
                group.key, try StoredMember.encode(group.members), group.isComplete, group.updatedAt.microseconds,
                group.tenant.text, group.name, group.version,
            ]
        )
    }

    /// Adds to the keys that the group is known by; the oldest beyond a bound are forgotten.
    private static func noteKey(_ db: Database, _ group: DeviceGroup) throws {
        guard let key = group.key else { return }
        try db.execute(
            sql: """
                INSERT OR REPLACE INTO device_group_keys (tenant, notification_key, name, version)
                VALUES (?, ?, ?, ?)
                """,
            arguments: [group.tenant.text, key, group.name, group.version + 1]
        )
        try db.execute(
            sql: """
                DELETE FROM device_group_keys WHERE tenant = :tenant AND name = :name AND version <= (
                    SELECT version FROM device_group_keys WHERE tenant = :tenant AND name = :name
                    ORDER BY version DESC LIMIT 1 OFFSET :kept)
                """,
            arguments: ["tenant": group.tenant.text, "name": group.name, "kept": Self.keptKeys]
        )
    }

    private static var conflict: GatewayError {
        GatewayError(.conflict, "The device group was changed meanwhile")
    }
}
