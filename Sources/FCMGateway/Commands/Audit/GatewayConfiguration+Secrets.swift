import GatewayCore
import GatewayService
import GatewayStorage

extension GatewayConfiguration {
    /// The gateway's own secrets in a store.
    ///
    /// - Returns: `nil` without a master key.
    /// - Throws: `invalid` when the master key is another one than the store was made with; `storeUnavailable`.
    func secrets(of database: SQLiteReadOnlyDatabase) async throws -> GatewaySecrets? {
        guard let key = self.masterKey else { return nil }
        let masterKey = try MasterKey(key, previous: self.previousMasterKey)
        return try GatewaySecrets(stored: try await database.gatewaySecrets(), masterKey: masterKey)
    }
}
