import ArgumentParser
import GatewayCore
import GatewayService
import GatewayStorage

/// `audit verify`: checks all chains and checkpoints of the store, and a second sink. A gateway may serve the store
/// meanwhile.
struct AuditVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check that the audit trail was not changed.",
        discussion: """
            Reads the store directly; a gateway may write to the trail meanwhile. Exit codes: 0 the trail is intact; 1 \
            the trail was changed, and the first bad record is named; 2 a gateway ended uncleanly and has not been \
            started again; 66 the trail could not be checked, or the result could not be written.

            With the master key, the seals on the chains' ends and all signatures are checked too. With --public-key, \
            only the signatures are. Without a key, the chains and checkpoints are only compared with each other.

            With --sink, the second sink is checked too, and compared with the store. Only this comparison reveals a \
            store that was replaced by an older copy.

            Example:
              fcm-gateway audit verify --config gateway.yaml
            """
    )

    @OptionGroup var store: AuditStoreOptions
    @Option(name: .long, help: "The output of fcm-gateway audit public-key, or a file with it.")
    var publicKey: AuditPublicKey?
    @Option(name: .long, help: "A file of the second sink; may be repeated for its parts, oldest first.")
    var sink: [String] = []
    @Flag(name: .long, help: "Check the second sink by itself, without a store.")
    var sinkOnly = false
    @OptionGroup var progress: ProgressOptions
    @OptionGroup var output: OutputOptions

    /// A gateway that starts during an attempt makes the attempt fail. The next attempt fails only if that gateway
    /// ends again.
    private static let maxAttempts = 5
    /// The trail could not be read, so nothing is known of its content: `EX_NOINPUT` of sysexits.
    private static let unreadable = ExitCode(66)

    func validate() throws {
        if self.sinkOnly, self.sink.isEmpty { throw ValidationError("--sink-only needs --sink.") }
    }

    func run() async throws {
        let finding: AuditFinding
        do {
            finding = try await self.finding()
        } catch let failure as AuditSinkVerifier.Failure {
            finding = AuditFinding(failure)
        } catch let code as ExitCode where code == .failure {
            // 1 would mean that the trail was changed; the reason has been printed.
            throw Self.unreadable
        } catch {
            FailureReport.write(error)
            throw Self.unreadable
        }
        try finding.report(json: self.output.isJSON)
    }

    // MARK: Checking

    private func finding() async throws -> AuditFinding {
        if self.sinkOnly { return try self.verifySinkAlone() }
        let configuration = try self.store.load()
        for _ in 1..<Self.maxAttempts {
            do {
                return try await self.verify(configuration)
            } catch let error as GatewayError where error.cause is SQLiteReadOnlyDatabase.ServedMeanwhile {
                continue
            }
        }
        return try await self.verify(configuration)
    }

    private func verify(_ configuration: GatewayConfiguration) async throws -> AuditFinding {
        let database = try await configuration.openStoreForReading()
        let store = SQLAuditStore(database: database)
        let signatures = try await store.signatures()
        if signatures.isInUse, try await SQLSecretStore(database: database).gatewaySecrets()[.auditSigningKey] == nil {
            // The store's first secrets include the signing key, so the key was removed.
            return AuditFinding(.checkpointTampered(number: 1, reason: "the key that signed it is gone from the store"))
        }
        let secrets = try await configuration.secrets(of: database)
        let publicKey = try self.publicKey ?? secrets?.auditPublicKey()
        if secrets == nil { CommandOutput.remark("No master key: the seals on the chains' ends are not checked.") }
        if secrets == nil, publicKey == nil {
            CommandOutput.remark("No key: the checkpoints' signatures are not checked.")
        }
        var evidence = AuditEvidence()
        if !self.sink.isEmpty {
            // Read before the sink's file. A delivery in between then only adds lines to the file.
            let sinks = try await store.sinks()
            let sink = try self.readSink(publicKey)
            evidence = sink.evidence
            // A file that names no sink must contain as much as the least advanced sink.
            evidence.required = sink.name.map { sinks[$0] ?? 0 } ?? sinks.values.min() ?? 0
            if let name = sink.name, sinks[name] == nil {
                CommandOutput.remark(
                    "The store has no delivery position of the sink \(name): the sink's newest lines may be missing."
                )
            }
        }
        let verifier = AuditVerifier(
            store: store,
            sealer: secrets.map { AuditSealer(auditKey: $0.auditKey) },
            publicKey: publicKey,
            evidence: evidence
        )
        let reporter = self.progress.reporter("audit records")
        defer { reporter.finish() }
        let isLive = try configuration.isStoreServed()
        let report = try await verifier.report(
            isLive: isLive,
            progress: { reporter.report($0, of: $1) },
            liveWriters: { () async throws(GatewayError) -> Set<Int> in try await store.liveWriters() }
        )
        switch report.verdict {
        case .intact, .unclean: return try await self.spoolFinding(configuration, secrets) ?? AuditFinding(report)
        case .tampered, .checkpointTampered: return AuditFinding(report)
        }
    }

    /// The finding on a spool that a gateway left for its next start; `nil` if the spool was not changed.
    private func spoolFinding(
        _ configuration: GatewayConfiguration,
        _ secrets: GatewaySecrets?
    ) async throws -> AuditFinding? {
        let directory = configuration.spoolDirectory
        guard let secrets, let file = try SpoolFile(reading: directory) else { return nil }
        let found = try await AuditSpool(file: file, auditKey: secrets.auditKey, maxBytes: 0).inspect()
        // A running gateway checks its spool itself. While it runs, the spool's content may be in any state.
        guard try !configuration.isDataDirectoryServed() else { return nil }
        if found.isDamaged { return AuditFinding(spool: "\(directory)/\(SpoolFile.name)", intact: found.records) }
        if found.records > 0 {
            CommandOutput.remark(
                "The spool holds \(found.records) records that the store may lack; the next start adds them."
            )
        }
        return nil
    }

    /// Reads the sink; throws `AuditSinkVerifier.Failure` if the sink was changed.
    private func readSink(_ publicKey: AuditPublicKey?) throws -> AuditSinkVerifier {
        var verifier = AuditSinkVerifier(publicKey: publicKey)
        for path in self.sink {
            do {
                try verifier.read(path)
            } catch let failure as AuditSinkVerifier.Failure {
                throw failure
            } catch {
                throw GatewayError(.notFound, "The sink can't be read: \(path)", cause: error)
            }
        }
        if let failure = verifier.finding { throw failure }
        if let torn = verifier.warning {
            CommandOutput.remark(
                "Line \(torn.line) of \(torn.file) is incomplete: it is being written, or its write was interrupted."
            )
        }
        return verifier
    }

    private func verifySinkAlone() throws -> AuditFinding {
        if self.publicKey == nil { CommandOutput.remark("No key: the checkpoints' signatures are not checked.") }
        let sink = try self.readSink(self.publicKey)
        return AuditFinding(sinkRecords: sink.records, latest: sink.evidence.latest)
    }
}
