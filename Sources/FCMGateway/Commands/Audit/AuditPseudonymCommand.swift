import ArgumentParser
import Foundation
import GatewayCore
import GatewayService
import GatewayStorage

/// `audit pseudonym`: tells by which pseudonym the audit names a token or topic.
struct AuditPseudonymCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pseudonym",
        abstract: "Print the pseudonym under which the audit keeps a token or topic.",
        discussion: """
            Reads the store directly and needs the master key. Pseudonyms differ from tenant to tenant, and nobody can \
            compute those of a tenant that was deleted: its salt is gone.

            Tokens come from a file or, with -, from standard input, one a line; each answer is a line, in the same order.
            """
    )

    @Argument(help: "The tenant.") var tenant: TenantArgument
    @Option(name: .long, help: "The file with the tokens; - reads standard input.") var tokenFile: String?
    @Option(name: .long, help: "A topic, or the name of a device group.") var topic: String?
    @OptionGroup var store: AuditStoreOptions

    func validate() throws {
        guard (self.tokenFile == nil) != (self.topic == nil) else {
            throw ValidationError("Name either --token-file or --topic.")
        }
    }

    func run() async throws {
        let configuration = try self.store.load()
        guard configuration.masterKey != nil else {
            return try ConfigOptions.reporting { () throws(ConfigurationProblems) -> Void in
                throw GatewayConfiguration.missingMasterKey
            }
        }
        let texts = try self.texts()
        try await GatewayError.reporting {
            let database = try SQLiteReadOnlyDatabase(path: configuration.databasePath)
            guard let tenant = TenantID(self.tenant.name),
                let salt = try await SQLSecretStore(database: database).salt(of: tenant),
                let secrets = try await configuration.secrets(of: database)
            else {
                throw GatewayError(
                    .notFound,
                    "There is no tenant \(self.tenant.name); the pseudonyms of a deleted one can't be computed any more"
                )
            }
            let pseudonymizer = Pseudonymizer(auditKey: secrets.auditKey, tenantSalt: salt)
            for text in texts {
                try CommandOutput(pseudonymizer.pseudonym(of: text).description).write()
            }
        }
    }

    private func texts() throws -> [String] {
        if let topic = self.topic {
            let prefix = "/topics/"
            return [topic.hasPrefix(prefix) ? String(topic.dropFirst(prefix.count)) : topic]
        }
        let path = self.tokenFile ?? "-"
        guard let text = String(bytes: try InputFile.read(path), encoding: .utf8) else {
            throw CommandFailure("\(path) is not UTF-8")
        }
        let tokens = text.split(whereSeparator: \.isNewline).map(String.init)
        guard !tokens.isEmpty else { throw CommandFailure("\(path) holds no token") }
        return tokens
    }
}
