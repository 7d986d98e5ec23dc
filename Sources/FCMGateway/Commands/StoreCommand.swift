import ArgumentParser
import GatewayCore
import GatewayService
import GatewayStorage
import StrictJSON

/// `store`: verbs for the database.
struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Manage the store's database.",
        subcommands: [StoreMigrateCommand.self, StoreCopyCommand.self, StoreRenewEpochCommand.self]
    )
}

/// `store migrate`: migrates PostgreSQL's schema, as the owner of its tables.
struct StoreMigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Bring PostgreSQL's schema up to date.",
        discussion: """
            Connects to store.url as the user who owns the tables, or will own them, and applies all missing steps or \
            none. Creates missing roles (fcmgw_tenant, fcmgw_gateway); a user who may not create roles needs an \
            administrator to do so first. Repeating the command is safe, and two commands at once run one after the \
            other. For SQLite, fcm-gateway serve migrates the schema.

            Exit codes: 0 the schema is up to date; 1 refused or failed, and nothing was changed.

            Example:
              fcm-gateway store migrate --config gateway.yaml
            """
    )

    @OptionGroup var options: ConfigOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let configuration = try self.options.load()
        try await FailureReport.reporting {
            guard let settings = configuration.postgreSQL else {
                throw GatewayError(.invalid, "store.url names no PostgreSQL; fcm-gateway serve migrates SQLite")
            }
            let steps = try await PostgreSQLDatabase.migrate(
                settings,
                whenUnreachable: GatewayConfiguration.reportWaiting
            )
            try Self.answer(steps, json: self.output.isJSON).write()
        }
    }

    static func answer(_ steps: [String], json: Bool) -> CommandOutput {
        guard !json else { return .json { $0.member("applied", steps) } }
        guard !steps.isEmpty else { return CommandOutput("The schema was already up to date.") }
        return CommandOutput("Applied \(steps.joined(separator: ", ")); the schema is up to date.")
    }
}

/// `store copy`: copies a stopped gateway's store from SQLite to PostgreSQL.
struct StoreCopyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "copy",
        abstract: "Copy a SQLite store into an empty PostgreSQL store.",
        discussion: """
            Stop the source's gateway cleanly first; the copy locks the source's file. The target is an unused \
            database, prepared by fcm-gateway store migrate. Connect as the owner of the target's tables, with the \
            password from GATEWAY_STORE_PASSWORD or its …_FILE. GATEWAY_MASTER_KEY, or its …_FILE, is the master key \
            of the source and of the copy.

            One transaction copies everything. Before the commit, the copied audit is verified as by fcm-gateway audit \
            verify. With --dry-run nothing is committed, so that you can measure the time; the source may then be a \
            backup, whose last chain is open. A copy from PostgreSQL to SQLite is not possible.

            Exit codes: 0 everything is copied and verified; 1 refused or failed, and the target is still empty. If \
            the commit's answer was lost, the message says so, and the target may hold the copy.

            Example:
              fcm-gateway store copy --from sqlite:gateway.sqlite --to postgres://fcm_owner@db/fcm_gateway
            """
    )

    @Option(name: .long, help: "The store to copy: sqlite: and a path, relative to dataDir.") var from: String
    @Option(name: .long, help: "The empty store: a postgres:// address, as libpq accepts it.") var to: String
    @Flag(name: .long, help: "Do everything except the commit, and leave the target empty.") var dryRun = false
    @OptionGroup var options: ConfigOptions
    @OptionGroup var progress: ProgressOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        for (option, address) in [("--from", self.from), ("--to", self.to)] {
            guard let problem = ConfigurationTable.storeProblem(address) else { continue }
            throw ValidationError("\(option): \(problem).")
        }
        guard !PostgreSQLSettings.isAddress(self.from), PostgreSQLSettings.isAddress(self.to) else {
            throw ValidationError("A store can only be copied from sqlite: to postgres://.")
        }
    }

    func run() async throws {
        let configuration = try self.options.load()
        try await FailureReport.reporting {
            guard let masterKey = configuration.masterKey else { throw GatewayConfiguration.missingMasterKey }
            let key = try MasterKey(masterKey, previous: configuration.previousMasterKey)
            var (from, to) = (configuration, configuration)
            (from.storeURL, to.storeURL) = (self.from, self.to)
            guard let settings = to.postgreSQL else { throw GatewayError(.invalid, "--to names no PostgreSQL") }
            let source = try SQLiteDatabase(joining: from.databasePath)
            let result: Swift.Result<StoreCopy.Outcome, any Error>
            do {
                let copy = StoreCopy(from: source, to: settings, masterKey: key, isDryRun: self.dryRun)
                result = .success(try await self.copy(copy))
            } catch let verdict as AuditVerifier.Verdict {
                let finding = AuditFinding(verdict).text.plain
                result = .failure(GatewayError(.invalid, "\(finding) Nothing was copied"))
            } catch {
                result = .failure(error)
            }
            try? source.close()
            try self.answer(try result.get()).write()
        }
    }

    private func copy(_ copy: StoreCopy) async throws -> StoreCopy.Outcome {
        let reporters = Dictionary(
            uniqueKeysWithValues: StoreCopy.Work.allCases.map { ($0, self.progress.reporter($0.rawValue)) }
        )
        defer { for reporter in reporters.values { reporter.finish() } }
        return try await copy.run { reporters[$0]?.report($1, of: $2) }
    }

    private func answer(_ outcome: StoreCopy.Outcome) -> CommandOutput {
        guard !self.output.isJSON else {
            return .json { writer in
                writer.member("committed", !self.dryRun)
                writer.member("rows", outcome.rows)
                writer.member("tenants", outcome.tenants)
                writer.member("audit_records", outcome.auditRecords)
            }
        }
        let tenants = "\(outcome.tenants) tenant\(outcome.tenants == 1 ? "" : "s")"
        let (verb, end) = self.dryRun ? ("Could copy", "would be") : ("Copied", "is")
        return CommandOutput(
            "\(verb) \(outcome.rows) rows, with \(tenants); the audit \(end) intact there: \(outcome.auditRecords) records."
        )
    }
}

/// `store renew-epoch`: makes a store that was restored in place another one.
struct StoreRenewEpochCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "renew-epoch",
        abstract: "Pause all batches, and end all cursors of retired tokens.",
        discussion: """
            Run it before the first start of a store that was restored in place, such as a snapshot of a disk or of a \
            virtual machine. The gateway can't recognise such a store by itself. The store lacks what was sent after the \
            snapshot, so its batches are paused until you resume or cancel them. Repeating the command is safe.

            Exit codes: 0 the store has another epoch; 1 refused or failed, and nothing was changed.

            Example:
              fcm-gateway store renew-epoch --config gateway.yaml
            """
    )

    @OptionGroup var options: ConfigOptions

    func run() async throws {
        let configuration = try self.options.load()
        try await FailureReport.reporting {
            guard try !configuration.isStoreServed() else {
                throw GatewayError(.conflict, "A gateway serves this store; stop it first")
            }
            let store = try await configuration.joinStore(sealingBy: "")
            defer { store.close() }
            try await store.database.write(scope: .gateway, isolation: .serializable) { try StoreEpoch.renew($0) }
            try CommandOutput("The store has another epoch. Its batches are paused.").write()
        }
    }
}
