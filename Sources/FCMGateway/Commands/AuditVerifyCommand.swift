import ArgumentParser
import Foundation
import GatewayCore
import GatewayStorage

/// `audit verify`: checks every chain of the store, whether or not a gateway serves it.
struct AuditVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check that nobody changed the audit trail.",
        discussion: """
            Reads the store directly. Exit codes: 0 the trail is intact (a gateway that writes to it meanwhile is fine), \
            1 it was changed, and the first bad record is named, 2 a gateway ended uncleanly and has not been started \
            again since, 66 it could not be checked.

            With the master key, the seals on the chains' ends are checked too; without it, only the chains themselves.
            """
    )

    @OptionGroup var options: ConfigOptions
    @Option(name: .long, help: "The data directory, instead of the configured one; dev's secrets are found there.")
    var dataDir: String?

    /// The trail could not be read, which says nothing of what it holds: `EX_NOINPUT` of sysexits.
    private static let unreadable = ExitCode(66)

    func run() async throws {
        var environment = ProcessInfo.processInfo.environment
        if let dataDir = self.dataDir { self.adopt(dataDir, in: &environment) }
        var verdict: AuditVerifier.Verdict?
        do {
            let configuration = try self.options.load(environment: environment)
            try await GatewayError.reporting { verdict = try await self.verify(configuration) }
        } catch let code as ExitCode where code == .failure {
            // 1 would mean that somebody changed the trail; the reason has been printed.
            throw Self.unreadable
        }
        switch verdict {
        case .intact(let records):
            CommandOutput("The audit trail is intact: \(records) records.").write()
        case .tampered(let position, let reason):
            CommandOutput(
                "The audit trail was changed. First bad record: sequence \(position.sequence) of writer "
                    + "\(position.writer): \(reason)."
            )
            .write()
            throw ExitCode(1)
        case .unclean(let writer, let records):
            CommandOutput(
                "The audit trail holds (\(records) records), but writer \(writer) ended uncleanly; the next start of "
                    + "the gateway closes its chain."
            )
            .write()
            throw ExitCode(2)
        case nil:
            throw Self.unreadable
        }
    }

    private func verify(_ configuration: GatewayConfiguration) async throws -> AuditVerifier.Verdict {
        let path = configuration.databasePath
        // Asked before the store is read: a gateway that starts in between can only make the trail longer.
        let isLive = try StoreLock.isHeld(at: path)
        let database = try SQLiteReadOnlyDatabase(path: path)
        let verifier = AuditVerifier(
            reader: SQLiteAuditReader(database: database),
            sealer: try await self.sealer(configuration, database)
        )
        return try await verifier.verify(isLive: isLive)
    }

    private func sealer(
        _ configuration: GatewayConfiguration,
        _ database: SQLiteReadOnlyDatabase
    ) async throws -> AuditSealer? {
        guard let key = configuration.masterKey else {
            CommandOutput("", remark: "No master key: the seals on the chains' ends are not checked.").write()
            return nil
        }
        let masterKey = try MasterKey(key, previous: configuration.previousMasterKey)
        let stored = try await database.gatewaySecrets()
        return AuditSealer(auditKey: try GatewaySecrets(stored: stored, masterKey: masterKey).auditKey)
    }

    /// Reads another data directory, with the master key that `dev` keeps there unless another one is given.
    private func adopt(_ dataDir: String, in environment: inout [String: String]) {
        environment["GATEWAY_DATA_DIR"] = dataDir
        let keyFile = "\(dataDir)/master.key"
        let isGiven = environment["GATEWAY_MASTER_KEY"] != nil || environment["GATEWAY_MASTER_KEY_FILE"] != nil
        if !isGiven, FileManager.default.fileExists(atPath: keyFile) {
            environment["GATEWAY_MASTER_KEY_FILE"] = keyFile
        }
    }
}
