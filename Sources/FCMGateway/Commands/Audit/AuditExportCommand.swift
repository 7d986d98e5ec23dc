import ArgumentParser
import Foundation
import GatewayCore
import GatewayService
import GatewayStorage

/// `audit export`: writes the audit in a form that others can check without the store.
struct AuditExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write the audit trail so that others can read and check it.",
        discussion: """
            Reads the store directly, whether or not a gateway serves it. One JSON object a line: first what the export \
            is, then checkpoints, how each chain ends, records in order, last how many there are. With --tenant, \
            --from or --to, the records come as stretches: of each chain those parts between two checkpoints in which \
            there is something to show. All else in them, the gateway's own records included, is there as bare hashes, \
            so that audit verify --export can check it. For a chain whose oldest records were removed by age, there is \
            the signed word of that.

            What is written is checked; seals and signatures too where the master key is at hand.

            Exit codes: 0 written, 1 the store was tampered with and the first bad record is named, 66 it could \
            not be read or no tenant ever had the name, 73 the output could not be written.

            Example:
              fcm-gateway audit export --config gateway.yaml > audit.ndjson
            """
    )

    enum Format: String, CaseIterable, ExpressibleByArgument {
        case jsonl
    }

    @Option(name: .long, help: "Only this tenant's records, and hashes of others between them.") var tenant: TenantID?
    @Option(name: .long, help: "Only records from then on, as in 2026-01-31T12:00:00Z.") var from: Timestamp?
    @Option(name: .long, help: "Only records before then.") var to: Timestamp?
    @Option(name: .long, help: "The form.") var format = Format.jsonl
    @Option(name: .long, help: "The file to write, instead of standard output; it must not be there yet.")
    var outputFile: String?
    @OptionGroup var store: AuditStoreOptions

    /// `EX_NOINPUT` and `EX_CANTCREAT` of sysexits.
    private static let unreadable = ExitCode(66)
    private static let unwritable = ExitCode(73)

    func run() async throws {
        let configuration: GatewayConfiguration
        do {
            configuration = try self.store.load()
        } catch let code as ExitCode where code == .failure {
            // 1 would mean that somebody changed the trail.
            throw Self.unreadable
        }
        let handle = try self.output()
        do {
            let summary = try await self.export(configuration, to: handle)
            if self.outputFile != nil {
                try handle.synchronize()
                let after = summary.removed > 0 ? ", after \(summary.removed) that were removed by age" : ""
                CommandOutput.remark("\(summary.records) records, and the hashes of \(summary.hidden) others\(after)")
            }
        } catch {
            // Half an export is none.
            if let path = self.outputFile { try? FileManager.default.removeItem(atPath: path) }
            throw Self.report(error)
        }
    }

    private func output() throws -> FileHandle {
        guard let path = self.outputFile else { return .standardOutput }
        // POSIX takes the path as a pointer, valid during the call.
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let reason = errno == EEXIST ? "is there already" : "can't be made"
            CommandOutput.remark("fcm-gateway: \(path) \(reason)")
            throw Self.unwritable
        }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    private func export(
        _ configuration: GatewayConfiguration,
        to handle: FileHandle
    ) async throws -> AuditExportSummary {
        // Asked first, as by `audit verify`.
        let isLive = try configuration.isStoreServed()
        let database = try await configuration.openStoreForReading()
        if let tenant = self.tenant?.text, try await !SQLSecretStore(database: database).hasHeard(of: tenant) {
            throw GatewayError(.notFound, "There is no tenant \(tenant), nor a record of one of that name")
        }
        let secrets = try await configuration.secrets(of: database)
        let store = SQLAuditStore(database: database)
        let exporter = AuditExporter(
            store: store,
            sealer: secrets.map { AuditSealer(auditKey: $0.auditKey) },
            publicKey: try secrets?.auditPublicKey()
        )
        var head = AuditExportHead(tenant: self.tenant?.text, from: self.from, to: self.to, isLive: isLive)
        head.liveWriters = try await store.liveWriters().sorted()
        let output = LineOutput(handle)
        let summary = try await exporter.export(head) { try output.write($0.text) }
        try output.flush()
        return summary
    }

    private static func report(_ error: any Error) -> ExitCode {
        switch error {
        case let verdict as AuditVerifier.Verdict:
            CommandOutput.remark(AuditFinding(verdict).text.plain)
            return .failure
        case let error as GatewayError:
            FailureReport.write(error)
            return Self.unreadable
        default:
            CommandOutput.remark("fcm-gateway: the output can't be written")
            return Self.unwritable
        }
    }
}
