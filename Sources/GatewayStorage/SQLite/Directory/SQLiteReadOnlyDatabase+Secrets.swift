import GRDB
package import GatewayCore

extension SQLiteReadOnlyDatabase {
    /// The sealed secrets of the gateway itself, as far as they are stored.
    ///
    /// - Throws: `storeUnavailable`.
    package func gatewaySecrets() async throws(GatewayError) -> [GatewaySecret: Envelope] {
        try await self.read { db in
            var stored: [GatewaySecret: Envelope] = [:]
            for row in try Row.fetchAll(db, sql: "SELECT name, wrapped_key, sealed FROM gateway_secrets") {
                guard let secret = (row["name"] as String?).flatMap(GatewaySecret.init(rawValue:)) else { continue }
                stored[secret] = try RowReader(row, of: "gateway_secrets").envelope()
            }
            return stored
        }
    }
}
