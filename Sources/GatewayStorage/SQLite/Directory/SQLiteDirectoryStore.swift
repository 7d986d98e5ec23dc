import GRDB
package import GatewayCore

/// Tenants and what belongs to them, in the gateway's own file.
package struct SQLiteDirectoryStore: DirectoryStore {
    private let database: SQLiteDatabase
    private let sealer: RowSealer

    /// A directory in an open database.
    ///
    /// - Parameters:
    ///   - database: holds the rows.
    ///   - sealer: seals them; rows that another one sealed are refused.
    package init(database: SQLiteDatabase, sealer: RowSealer) {
        self.database = database
        self.sealer = sealer
    }

    /// Everything, as one consistent picture: tenants and keys by rising id.
    ///
    /// - Throws: `storeUnavailable`, also for stored values that this version does not understand.
    package func load() async throws(GatewayError) -> DirectoryContents {
        let sealer = self.sealer
        return try await self.database.read { try DirectoryRows(db: $0, sealer: sealer).contents() }
    }

    /// Makes one change in one transaction, and reads what there is of its tenant then.
    ///
    /// - Throws: `notFound` where the tenant or key that the change needs is not there, `conflict` where it would
    ///   add a key of a known id, replace another tenant's key or the same or a later version of a credential, or change
    ///   a tenant whose row is refused, `storeUnavailable`.
    @discardableResult
    package func apply(_ change: DirectoryChange) async throws(GatewayError) -> DirectoryContents {
        let sealer = self.sealer
        let contents = try await self.database.write { try DirectoryWriter(db: $0, sealer: sealer).apply(change) }
        switch change {
        case .deleteTenant, .putCredential:
            // Salts and sealed secrets are meant to be gone.
            await self.database.eraseDeleted()
        case .putTenant, .addKey, .putKey, .rotateKey, .removeKey, .putLimits:
            break
        }
        return contents
    }
}
