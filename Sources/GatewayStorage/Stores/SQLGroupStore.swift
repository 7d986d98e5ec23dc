package import GatewayCore

/// Device groups. A group is read and written as a whole, and a write names the version that it changes.
package struct SQLGroupStore: GroupStore {
    /// A stored group member.
    private struct StoredMember: Codable {
        let token: String
        let standing: String

        /// `nil` for text that holds anything but members.
        static func decode(_ text: String) -> [DeviceGroup.Member]? {
            guard let stored = StoredJSON.decode([StoredMember].self, from: text) else { return nil }
            let members = stored.compactMap { member in
                DeviceGroup.Standing(rawValue: member.standing).map { DeviceGroup.Member(member.token, $0) }
            }
            return members.count == stored.count ? members : nil
        }

        static func encode(_ members: [DeviceGroup.Member]) throws -> String {
            try StoredJSON.encode(members.map { StoredMember(token: $0.token, standing: $0.standing.rawValue) })
        }
    }

    /// The number of its latest keys by which a group is known.
    private static let keptKeys = 1_000
    /// The most keys that one statement looks up.
    private static let maxKeys = 20

    private static let columns =
        """
        tenants.created_at, device_groups.name, upstream_name, device_groups.notification_key, members, is_complete,
        device_groups.version, device_groups.updated_at
        """

    private static let selectByKeys =
        """
        SELECT \(Self.columns), device_group_keys.notification_key
        FROM device_group_keys
        JOIN device_groups ON device_groups.tenant = device_group_keys.tenant
            AND device_groups.name = device_group_keys.name
        JOIN tenants ON tenants.id = device_groups.tenant
        WHERE device_group_keys.tenant = $1 AND device_group_keys.notification_key IN
            (\((2...Self.maxKeys + 1).map { "$\($0)" }.joined(separator: ", ")))
        """

    private let database: any SQLDatabase
    private let owner: String
    private let leases: LeaseTerms?

    /// A store for one replica, which holds ``Lease``s on the groups that it changes. A process without replicas has no
    /// terms.
    package init(database: any SQLDatabase, owner: ReplicaID = ReplicaID(text: ""), leases: LeaseTerms? = nil) {
        (self.database, self.owner, self.leases) = (database, owner.text, leases)
    }

    package func group(named name: String, of tenant: TenantID) async throws(GatewayError) -> DeviceGroup? {
        try await self.database.read(scope: .tenant(tenant.text)) { try Self.group(named: name, of: tenant, $0) }
    }

    package func groups(withKeys keys: [String], of tenant: TenantID) async throws(GatewayError) -> [DeviceGroup?] {
        precondition(keys.count <= Self.maxKeys, "\(keys.count) keys are looked up at once")
        // One text for any number of keys is prepared once.
        let values = keys.map { SQLValue.string($0) } + Array(repeating: .null, count: Self.maxKeys - keys.count)
        return try await self.database.read(scope: .tenant(tenant.text)) { db in
            let found = try db.rows(Self.selectByKeys, [.text(tenant)] + values) { row in
                (key: Array(try row.text(8).utf8), group: try Self.group(of: tenant, row))
            }
            let groups = Dictionary(found.map { ($0.key, $0.group) }) { $1 }
            return keys.map { groups[Array($0.utf8)] }
        }
    }

    package func keys(since bookmark: GroupKeys.Bookmark?) async throws(GatewayError) -> GroupKeys {
        try await self.database.read(scope: .gateway) { db in
            let epoch = try StoreEpoch.text(db)
            let horizon = bookmark?.epoch == epoch ? bookmark?.horizon : nil
            let keys = try db.rows(
                "SELECT tenant, notification_key FROM device_group_keys WHERE changed_in >= $1",
                [.int(horizon ?? .min)]
            ) { (tenant: try $0.tenant(0), key: try $0.text(1)) }
            let end = try db.first("SELECT gateway_change_horizon()") { try $0.int64(0) }
            return GroupKeys(keys: keys, bookmark: GroupKeys.Bookmark(epoch: epoch, horizon: end ?? 0))
        }
    }

    package func names(of tenant: TenantID, after name: String?, limit: Int) async throws(GatewayError) -> [String] {
        try await self.database.read(scope: .tenant(tenant.text)) { db in
            // The empty text precedes every name.
            try db.rows(
                "SELECT name FROM device_groups WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3",
                [.text(tenant), .text(name ?? ""), .int(limit)]
            ) { try $0.text(0) }
        }
    }

    package func save(_ group: DeviceGroup) async throws(GatewayError) -> Int {
        let owner = self.leases == nil ? nil : self.owner
        return try await self.database.write(scope: .tenant(group.tenant.text), isolation: .serializable) { db in
            try Self.requireTenant(group, db)
            try Self.requireLease(of: group, by: owner, db)
            let changes = try group.version == 0 ? Self.insert(group, db) : Self.update(group, db)
            guard changes > 0 else { throw Self.conflict }
            try Self.noteKey(group, db)
            return group.version + 1
        }
    }

    package func remove(_ group: DeviceGroup) async throws(GatewayError) {
        let owner = self.leases == nil ? nil : self.owner
        try await self.database.write(scope: .tenant(group.tenant.text), isolation: .serializable) { db in
            try Self.requireTenant(group, db)
            try Self.requireLease(of: group, by: owner, db)
            let changes = try db.execute(
                "DELETE FROM device_groups WHERE tenant = $1 AND name = $2 AND version = $3",
                [.text(group.tenant), .text(group.name), .int(group.version)]
            )
            guard changes > 0 else { throw Self.conflict }
        }
    }

    private static func group(named name: String, of tenant: TenantID, _ db: any SQLConnection) throws -> DeviceGroup? {
        try db.first(
            """
            SELECT \(Self.columns) FROM device_groups JOIN tenants ON tenants.id = device_groups.tenant
            WHERE device_groups.tenant = $1 AND device_groups.name = $2
            """,
            [.text(tenant), .text(name)]
        ) { try Self.group(of: tenant, $0) }
    }

    /// Reads a group from a row of ``columns``.
    private static func group(of tenant: TenantID, _ row: SQLRow) throws -> DeviceGroup {
        DeviceGroup(
            tenant: tenant,
            tenantCreatedAt: try row.time(0),
            name: try row.text(1),
            upstreamName: try row.text(2),
            key: try row.optionalText(3),
            members: try row.parsed(4) { StoredMember.decode($0) },
            isComplete: try row.bool(5),
            version: try row.int(6),
            updatedAt: try row.time(7)
        )
    }

    /// A group belongs to one life of its tenant: a change begun in an earlier life is refused.
    private static func requireTenant(_ group: DeviceGroup, _ db: any SQLConnection) throws {
        guard try db.hasTenant(group.tenant, createdAt: group.tenantCreatedAt) else {
            throw GatewayError(.notFound, "There is no tenant \(group.tenant.text)")
        }
    }

    /// If this replica was paused for too long, another one may have taken over its group.
    private static func requireLease(of group: DeviceGroup, by owner: String?, _ db: any SQLConnection) throws {
        guard let owner else { return }
        let isHeld = try db.exists(
            "SELECT 1 FROM device_group_leases WHERE tenant = $1 AND name = $2 AND owner = $3",
            [.text(group.tenant), .text(group.name), .text(owner)]
        )
        guard isHeld else { throw Self.conflict }
    }

    private static func insert(_ group: DeviceGroup, _ db: any SQLConnection) throws -> Int {
        try db.execute(
            """
            INSERT INTO device_groups
                (tenant, name, upstream_name, notification_key, members, is_complete, version, updated_at)
            VALUES ($1, $2, $3, $4, $5, $6, 1, $7)
            ON CONFLICT (tenant, name) DO NOTHING
            """,
            [
                .text(group.tenant), .text(group.name), .text(group.upstreamName), .text(group.key),
                .text(try StoredMember.encode(group.members)), .bool(group.isComplete), .time(group.updatedAt),
            ]
        )
    }

    private static func update(_ group: DeviceGroup, _ db: any SQLConnection) throws -> Int {
        try db.execute(
            """
            UPDATE device_groups SET
                notification_key = $4, members = $5, is_complete = $6, version = version + 1, updated_at = $7
            WHERE tenant = $1 AND name = $2 AND version = $3
            """,
            [
                .text(group.tenant), .text(group.name), .int(group.version), .text(group.key),
                .text(try StoredMember.encode(group.members)), .bool(group.isComplete), .time(group.updatedAt),
            ]
        )
    }

    /// Records the group's key, and deletes its oldest keys beyond the bound.
    private static func noteKey(_ group: DeviceGroup, _ db: any SQLConnection) throws {
        guard let key = group.key else { return }
        try db.execute(
            """
            INSERT INTO device_group_keys (tenant, notification_key, name, version, changed_in)
            VALUES ($1, $2, $3, $4, gateway_transaction())
            ON CONFLICT (tenant, notification_key) DO UPDATE SET
                name = excluded.name, version = excluded.version, changed_in = excluded.changed_in
            """,
            [.text(group.tenant), .text(key), .text(group.name), .int(group.version + 1)]
        )
        try db.execute(
            """
            DELETE FROM device_group_keys WHERE tenant = $1 AND name = $2 AND version <= (
                SELECT version FROM device_group_keys WHERE tenant = $1 AND name = $2
                ORDER BY version DESC LIMIT 1 OFFSET $3)
            """,
            [.text(group.tenant), .text(group.name), .int(Self.keptKeys)]
        )
    }

    private static var conflict: GatewayError {
        GatewayError(.conflict, "The device group was changed meanwhile")
    }
}

extension SQLGroupStore: GroupLeaseStore {
    package func acquire(_ name: String, of tenant: TenantID) async throws(GatewayError) -> GroupLeaseOutcome {
        let (owner, grace) = (self.owner, self.leases?.attemptTimeout() ?? .zero)
        let duration = self.leases?.duration ?? .zero
        // Each statement carries its condition, so that replicas that lock different groups never conflict.
        return try await self.database.write(scope: .tenant(tenant.text), isolation: .readCommitted) { db in
            guard try db.exists("SELECT 1 FROM tenants WHERE id = $1", [.text(tenant)]) else {
                throw GatewayError(.notFound, "There is no tenant \(tenant.text)")
            }
            let lease: [SQLValue] = [.text(tenant), .text(name), .text(owner), .microseconds(duration)]
            let isNew = try db.execute(
                """
                INSERT INTO device_group_leases (tenant, name, owner, lease_until)
                VALUES ($1, $2, $3, gateway_time() + $4) ON CONFLICT (tenant, name) DO NOTHING
                """,
                lease
            )
            if isNew > 0 { return .granted }
            let isTaken = try db.execute(
                """
                UPDATE device_group_leases SET owner = $3, lease_until = gateway_time() + $4
                WHERE tenant = $1 AND name = $2 AND (owner = $3 OR lease_until + $5 <= gateway_time())
                """,
                lease + [.microseconds(grace)]
            )
            // If the lease was released since, the next attempt gets it.
            return isTaken > 0 ? .takenOver : .held
        }
    }

    package func renew(_ name: String, of tenant: TenantID) async throws(GatewayError) -> Bool {
        let (owner, duration) = (self.owner, self.leases?.duration ?? .zero)
        return try await self.database.write(scope: .tenant(tenant.text), isolation: .readCommitted) { db in
            try db.execute(
                """
                UPDATE device_group_leases SET lease_until = gateway_time() + $4
                WHERE tenant = $1 AND name = $2 AND owner = $3
                """,
                [.text(tenant), .text(name), .text(owner), .microseconds(duration)]
            ) > 0
        }
    }

    package func release(_ name: String, of tenant: TenantID) async throws(GatewayError) {
        let owner = self.owner
        try await self.database.write(scope: .tenant(tenant.text), isolation: .readCommitted) { db in
            _ = try db.execute(
                "DELETE FROM device_group_leases WHERE tenant = $1 AND name = $2 AND owner = $3",
                [.text(tenant), .text(name), .text(owner)]
            )
        }
    }
}
