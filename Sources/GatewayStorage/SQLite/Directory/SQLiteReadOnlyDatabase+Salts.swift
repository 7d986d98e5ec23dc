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
}
