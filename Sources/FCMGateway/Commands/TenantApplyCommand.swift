import ArgumentParser
import GatewayCore
import GatewayService
import StrictJSON

/// `tenant apply`: changes the gateway's tenants to what a file declares.
struct TenantApplyCommand: AdminVerb {
    static let configuration = CommandConfiguration(
        commandName: "apply",
        abstract: "Change tenants, credentials, limits and keys to what a file declares.",
        discussion: """
            The YAML file holds one list, under the key tenants. Each element has tenant (the name) and may have the \
            settings display_name, upstream, project_id, sender_id, disabled and client_names. It may also have limits \
            (for each scope a list of policies such as 180/60s:60), credentials (legacy: server_key_file, endpoint; \
            v1: service_account_file, endpoint) and keys (name, scopes, topic_prefixes, expires_at, key_file). File \
            names are relative to the YAML file. Limits, credentials and keys that the file omits stay unchanged.

            Everything is read and checked before the first change. Applying a file again changes nothing. The gateway \
            creates the keys without key_file, and the command prints each of them once.

            SIGINT, SIGTERM and SIGHUP stop the command between two changes: the running call ends, new keys are \
            printed, and the remaining changes are listed.

            Exit codes: 0 done, or with --dry-run nothing to do; 1 refused or failed (completed changes are \
            printed); 2 changes are needed (only with --dry-run); 128 plus the signal's number (SIGHUP 129, SIGINT \
            130, SIGTERM 143) if a signal stopped the command.

            Example:
              fcm-gateway tenant apply -f tenants.yaml --dry-run
            """
    )

    @Option(
        name: .shortAndLong,
        help: "The YAML file that declares the tenants.",
        completion: .file(extensions: ["yaml", "yml"])
    )
    var file: String
    @Flag(name: .long, help: "Show the changes without making them.") var dryRun = false
    @Flag(name: .long, help: "Delete the tenants that the file does not name.") var prune = false
    @Flag(name: .long, help: "With --prune: do not ask for confirmation.") var yes = false
    @OptionGroup var progress: ProgressOptions
    @OptionGroup var admin: AdminOptions

    func validate() throws {
        if self.yes, !self.prune { throw ValidationError("--yes needs --prune.") }
    }

    func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
        let declared = try TenantsFile(path: self.file).tenants
        let plan = try await TenantPlan(comparing: declared, with: client, isPruning: self.prune, self.progress)
        guard plan.conflicts.isEmpty else {
            throw CommandFailure("nothing was changed: \(plan.conflicts.joined(separator: "\n"))")
        }
        guard !self.dryRun else {
            try self.show(plan, print)
            if !plan.changes.isEmpty { throw ExitCode(2) }
            return
        }
        try self.confirm(plan.deletedTenants)
        try await self.apply(plan, client, print)
    }

    private func show(_ plan: TenantPlan, _ print: (CommandOutput) throws -> Void) throws {
        guard !self.wantsJSON else {
            let output = CommandOutput.json { writer in
                writer.member("dry_run", true)
                writer.array("changes", plan.changes) { $1.write(to: &$0) }
                writer.member("remarks", plan.remarks + plan.unnamedRemarks)
            }
            return try print(output)
        }
        let count = plan.changes.count
        let summary = count == 0 ? "nothing to change" : "\(TenantPlan.count(count)) to make; nothing was changed"
        let remark = (plan.remarks + plan.unnamedRemarks + [summary]).joined(separator: "\n")
        try print(CommandOutput(StyledText(lines: plan.changes.map(\.lines)), remark: remark))
    }

    private func confirm(_ tenants: [TenantID]) throws {
        guard !tenants.isEmpty, !self.yes else { return }
        let names = tenants.map(\.text).joined(separator: ", ")
        try ConfirmationOptions.ask(
            "Delete \(names), with keys, credentials and limits, for good?",
            orTell: "--prune would delete \(names). There is no terminal to ask on: give --yes to confirm."
        )
    }

    private func apply(
        _ plan: TenantPlan,
        _ client: AdminClient,
        _ print: (CommandOutput) throws -> Void
    ) async throws {
        let reporter = self.progress.reporter("changes made")
        try await StopSignals.trapped { signals in
            try await TenantApplication(plan: plan, isJSON: self.wantsJSON)
                .run(reporter: reporter, stop: { signals.first }, print: print) { change in
                    try await client.call(change.method, change.path, body: change.body?.revealed)
                }
        }
    }
}

/// `tenant diff`: compares a gateway's tenants with a file; changes nothing.
struct TenantDiffCommand: AdminVerb {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Compare the gateway's tenants with what a file declares.",
        discussion: """
            Prints the changes that fcm-gateway tenant apply --prune would make, and the keys in force, credentials \
            and limits that only the gateway has. Changes nothing. To keep gateways with separate stores equal, run \
            the command against each of them.

            Example:
              fcm-gateway tenant diff tenants.yaml --admin-url http://gateway-2:8081

            Exit codes: 0 the gateway and the file are equal; 1 refused or failed; 2 they differ.
            """
    )

    @Argument(help: "The YAML file that declares the tenants.", completion: .file(extensions: ["yaml", "yml"]))
    var file: String
    @OptionGroup var progress: ProgressOptions
    @OptionGroup var admin: AdminOptions

    func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
        let declared = try TenantsFile(path: self.file).tenants
        let plan = try await TenantPlan(comparing: declared, with: client, isPruning: true, self.progress)
        let count = plan.changes.count + plan.unnamed.count + plan.conflicts.count
        try print(self.output(plan, count))
        if count > 0 { throw ExitCode(2) }
    }

    private func output(_ plan: TenantPlan, _ count: Int) -> CommandOutput {
        guard !self.wantsJSON else {
            return .json { writer in
                writer.member("equal", count == 0)
                writer.array("changes", plan.changes) { $1.write(to: &$0) }
                writer.member("unnamed", plan.unnamed)
                writer.member("conflicts", plan.conflicts)
                writer.member("remarks", plan.remarks)
            }
        }
        let summary = count == 0 ? "no difference" : count == 1 ? "1 difference" : "\(count) differences"
        let others =
            plan.unnamed.map { StyledText("- \($0.printable)", .bad) }
            + plan.conflicts.map { StyledText("! \($0.printable)", .caution) }
        return CommandOutput(
            StyledText(lines: plan.changes.map(\.lines) + others),
            remark: (plan.remarks + [summary]).joined(separator: "\n")
        )
    }
}

extension TenantPlan {
    /// Reads a gateway's tenants, and compares them with the declared tenants.
    fileprivate init(
        comparing declared: [DeclaredTenant],
        with client: AdminClient,
        isPruning: Bool,
        _ progress: ProgressOptions
    ) async throws {
        let reporter = progress.reporter("tenants compared")
        defer { reporter.finish() }
        let all = try await client.list(["tenants"], member: "tenants")
        let names = Set(declared.map(\.id))
        var present: [PresentTenant] = []
        for (index, json) in all.enumerated() {
            var tenant = try PresentTenant(json)
            if names.contains(tenant.id) { try await tenant.readAll(client) }
            present.append(tenant)
            reporter.report(index + 1, of: all.count)
        }
        if TenantPlan.asksWhoseKeys(declared, present) {
            for index in present.indices where present[index].keys.isEmpty {
                try await present[index].readKeys(client)
            }
        }
        self.init(declared, present: present, isPruning: isPruning, now: SystemWallClock().now())
    }
}
