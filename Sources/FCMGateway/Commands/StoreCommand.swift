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
        subcommands: [StoreMigrateCommand.self, StoreCopyCommand.self]
    )
}

/// `store migrate`: migrates PostgreSQL's schema, as the owner of its tables.
struct StoreMigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Bring PostgreSQL's schema up to date.",
        discussion: """
            Connects to store.url as the user who owns the tables, or will own them, and applies all missing steps or \
            none. Creates the roles fcmgw_tenant and fcmgw_gateway if they are missing; this needs a user who may \
            create roles, else an administrator creates them first. The command may be repeated, and two at once run \
            one after the other. serve migrates SQLite's schema.

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
                throw GatewayError(.invalid, "store.url names no PostgreSQL; serve brings SQLite's schema up to date")
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
        abstract: "Copy a store of SQLite into an empty one of PostgreSQL.",
        discussion: """
            Stop the source's gateway first, in order; its file is locked during the copy. The target is an unused \
            database after store migrate. Connect to it as the owner of its tables, with the password from \
            GATEWAY_STORE_PASSWORD or its …_FILE. GATEWAY_MASTER_KEY, or its …_FILE, is the key of the source and of \
            the copy.

            Everything is copied in one transaction, and the audit is verified in the copy, as by audit verify, before \
            the commit. With --dry-run nothing is committed, and the source may be a backup, whose last chain is open: \
            use it to measure the time. A copy from PostgreSQL to SQLite is not possible.

            Exit codes: 0 everything is copied and verified; 1 refused or failed, and the target is still empty; the \
            message says so if the commit's answer was lost.

            Example:
              fcm-gateway store copy --from sqlite:gateway.sqlite --to postgres://fcm_owner@db/fcm_gateway
            """
    )

    @Option(name: .long, help: "The store to copy: sqlite: and a path, relative to dataDir.") var from: String
    @Option(name: .long, help: "The empty store: postgres:// and what libpq takes.") var to: String
    @Flag(name: .long, help: "Do everything but the last step, and leave the target empty.") var dryRun = false
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
