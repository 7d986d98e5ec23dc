import GatewayCore
import GatewayService
import GatewayStorage

extension AuditVerifyCommand {
    /// Checks an export instead of the store.
    ///
    /// - Parameter path: the export's file, or `-` for standard input.
    /// - Returns: what was found.
    /// - Throws: why it can't be checked.
    func verifyExport(_ path: String) async throws -> AuditFinding {
        let secrets = try await self.secretsAtHand()
        let publicKey = try self.publicKey?.key ?? secrets?.auditPublicKey()
        if secrets == nil { Self.remark("No master key and store: the seals on the chains' ends are not checked.") }
        if publicKey == nil { Self.remark("No key: the signatures are not checked.") }
        let sealer = secrets.map { AuditSealer(auditKey: $0.auditKey) }
        return AuditFinding(try AuditExportCheck(sealer: sealer, publicKey: publicKey).verify(path))
    }

    /// The store's secrets; `nil` without a master key or without its store, since an export is mostly checked elsewhere.
    private func secretsAtHand() async throws -> GatewaySecrets? {
        let configuration = try self.store.load()
        guard configuration.masterKey != nil,
            let database = try? SQLiteReadOnlyDatabase(path: configuration.databasePath)
        else { return nil }
        return try await configuration.secrets(of: database)
    }
}
