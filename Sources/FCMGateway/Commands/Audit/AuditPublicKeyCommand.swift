import ArgumentParser
import GatewayCore
import GatewayService
import GatewayStorage

/// `audit public-key`: prints what the audit's checkpoints can be checked with.
struct AuditPublicKeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "public-key",
        abstract: "Print the key that the audit's checkpoints can be checked with.",
        discussion: """
            Reads the store directly and needs the master key. The key is no secret: keep it where those who run the \
            gateway can't change it, and give it to audit verify --public-key.
            """
    )

    @OptionGroup var store: AuditStoreOptions

    func run() async throws {
        let configuration = try self.store.load()
        try ConfigOptions.reporting { () throws(ConfigurationProblems) in
            if configuration.masterKey == nil { throw GatewayConfiguration.missingMasterKey }
        }
        try await GatewayError.reporting {
            let database = try SQLiteReadOnlyDatabase(path: configuration.databasePath)
            guard let secrets = try await configuration.secrets(of: database) else { return }
            try CommandOutput(secrets.auditSigner().publicKey.base64).write()
        }
    }
}
