import GRDB
package import GatewayCore

extension SQLiteReadOnlyDatabase {
    /// The salt of a tenant's pseudonyms.
    ///
    /// - Returns: `nil` where there is no such tenant; with a tenant its salt goes.
    /// - Throws: `storeUnavailable`.
    package func salt(of tenant: TenantID) async throws(GatewayError) -> [UInt8]? {
        try await self.read { db in
            let row = try Row.fetchOne(db, sql: "SELECT salt FROM tenants WHERE id = ?", arguments: [tenant.text])
            return try row.map { try RowReader($0, of: "tenants").bytes("salt") }
        }
    }

    /// Whether there is a tenant of a name, or the audit has records of one that was deleted.
    ///
    /// - Throws: `storeUnavailable`.
    package func hasHeard(of tenant: String) async throws(GatewayError) -> Bool {
        try await self.read { db in
            let sql = """
                SELECT EXISTS (SELECT 1 FROM tenants WHERE id = :tenant)
                    OR EXISTS (SELECT 1 FROM audit_tenant_spans WHERE tenant = :tenant)
                """
            return try Bool.fetchOne(db, sql: sql, arguments: ["tenant": tenant]) ?? false
        }
    }
}
