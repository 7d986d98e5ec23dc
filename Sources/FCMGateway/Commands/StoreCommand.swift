import ArgumentParser
import GatewayCore
import GatewayService
import GatewayStorage
import StrictJSON

/// `store`: verbs for the database.
struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Look after the store's database.",
        subcommands: [StoreMigrateCommand.self, StoreCopyCommand.self]
    )
}

/// `store migrate`: migrates PostgreSQL's schema, as the owner of its tables.
struct StoreMigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Bring PostgreSQL's schema up to date.",
        discussion: """
            Connects to store.url, as the user who owns the tables or is to own them, and takes all steps that are \
            missing or none. Makes the roles fcmgw_tenant and fcmgw_gateway where they are missing: that user may make \
            roles, or an administrator has made them. To repeat it does no harm, and two at once take turns. SQLite's schema \
            is brought up to date by serve.

            Exit codes: 0 the schema is up to date, 1 refused or failed, and nothing was changed.

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
        guard !steps.isEmpty else { return CommandOutput("The schema was up to date.") }
        return CommandOutput("Took \(steps.joined(separator: ", ")); the schema is up to date.")
    }
}

/// `store copy`: copies a stopped gateway's store from SQLite to PostgreSQL.
struct StoreCopyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "copy",
        abstract: "Copy a store of SQLite into an empty one of PostgreSQL.",
        discussion: """
            The gateway that serves the source was stopped in order; its file is locked meanwhile. The target is a \
            database after store migrate that nothing was written to, and is connected to as the owner of its tables, \
            with the password from GATEWAY_STORE_PASSWORD or its …_FILE. GATEWAY_MASTER_KEY, or its …_FILE, is the key of \
            the source, and stays that of the copy.

            Everything is copied in one transaction, and the audit is verified there, as by audit verify, before it is \
            committed. With --dry-run it is not committed, and a backup may be the source, whose last chain is open: to \
            see how long it takes. Nothing is copied from PostgreSQL to SQLite.

            Exit codes: 0 all is there and verified, 1 refused or failed, and the target is as empty as it was; the message \
            says so where an answer was lost at the very end.

            Example:
              fcm-gateway store copy --from sqlite:gateway.sqlite --to postgres://fcm_owner@db/fcm_gateway
            """
    )

    @Option(name: .long, help: "The store to copy: sqlite: and a path, relative to dataDir.") var from: String
    @Option(name: .long, help: "The empty store: postgres:// and what libpq takes.") var to: String
    @Flag(name: .long, help: "Do all but the last step, and leave the target empty.") var dryRun = false
    @OptionGroup var options: ConfigOptions
    @OptionGroup var progress: ProgressOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        for (option, address) in [("--from", self.from), ("--to", self.to)] {
            guard let problem = ConfigurationTable.storeProblem(address) else { continue }
            throw ValidationError("\(option): \(problem).")
        }
        guard !PostgreSQLSettings.isAddress(self.from), PostgreSQLSettings.isAddress(self.to) else {
            throw ValidationError("A store is copied from sqlite: to postgres://, and not otherwise.")
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
