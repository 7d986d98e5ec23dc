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
        let stored = try await SQLSecretStore(database: database).gatewaySecrets()
        return try GatewaySecrets(stored: stored, masterKey: masterKey)
    }
}
