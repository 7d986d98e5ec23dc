import ArgumentParser
import GatewayCore
import GatewayService
import GatewayStorage
import StrictJSON

/// `credential rewrap`: reseals everything sealed in the store with the new master key.
struct CredentialRewrapCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rewrap",
        abstract: "Reseal all secrets with the new master key.",
        discussion: """
            Works on the store directly. GATEWAY_MASTER_KEY holds the new key, GATEWAY_PREVIOUS_MASTER_KEY the old \
            key; …_FILE variables work too. Gateways that serve the store at the same time must have been started with \
            both keys. A stopped gateway needs only the new key afterwards.

            The first step reseals all present secrets, or none. Further steps reseal the secrets that a gateway \
            changes meanwhile. Repeating the command is safe. Exit codes: 0 everything is sealed with the new key; 1 \
            refused or failed. The message says that nothing was changed, or that the store kept changing and how many \
            secrets were resealed. In the second case, repeat the command.

            Example:
              fcm-gateway credential rewrap --config gateway.yaml
            """
    )

    /// A gateway that serves the store may replace secrets between passes, but not this often.
    private static let maxPasses = 5

    @OptionGroup var options: ConfigOptions
    @OptionGroup var progress: ProgressOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let configuration = try self.options.load()
        try await FailureReport.reporting {
            guard let masterKey = configuration.masterKey else { throw GatewayConfiguration.missingMasterKey }
            let key = try MasterKey(masterKey, previous: configuration.previousMasterKey)
            let store = try await configuration.joinStore(sealingBy: key.fingerprint)
            defer { store.close() }
            let outcome = try await self.rewrap(store, under: key)
            try Self.answer(outcome, json: self.output.isJSON).write()
        }
    }

    struct Outcome: Equatable {
        var moved = 0
        var current = 0
        var fingerprint: String
    }

    private func rewrap(
        _ store: GatewayConfiguration.JoinedStore,
        under masterKey: MasterKey
    ) async throws -> Outcome {
        let secrets = SQLSecretStore(database: store.database)
        var outcome = Outcome(fingerprint: masterKey.fingerprint)
        let reporter = self.progress.reporter("sealed secrets")
        defer { reporter.finish() }
        for pass in 1...Self.maxPasses {
            let all = try await secrets.all()
            let plan = Rewrapping(all, under: masterKey) { reporter.report($0, of: all.count) }
            guard plan.unopened.isEmpty else { throw Self.refusal(plan.unopened, of: all, masterKey) }
            if pass == 1 { outcome.current = plan.currentCount }
            guard !plan.exchanges.isEmpty else { return outcome }
            let auditKey = try Self.auditKey(all, masterKey)
            let fingerprint = masterKey.fingerprint
            outcome.moved += try await secrets.apply(
                plan.exchanges,
                requireMasterKey: store.requireMasterKey,
                record: { Self.record($0, fingerprint) },
                sealer: AuditSealer(auditKey: auditKey)
            )
        }
        throw GatewayError(
            .conflict,
            "The store keeps changing: \(outcome.moved) secrets were resealed, and the rest is still sealed by the "
                + "previous key. Repeat the command"
        )
    }

    private static func auditKey(_ all: [SealedSecret], _ masterKey: MasterKey) throws(GatewayError) -> Secret {
        var own: [GatewaySecret: Envelope] = [:]
        for secret in all {
            if case .gateway(let name) = secret.place { own[name] = secret.envelope }
        }
        return try GatewaySecrets(stored: own, masterKey: masterKey).auditKey
    }

    private static func record(_ count: Int, _ fingerprint: String) -> AuditRecord {
        var record = AuditRecord(
            time: SystemWallClock().now(),
            tenant: nil,
            principal: "command",
            action: AuditRecord.Action.credentialRewrap.rawValue,
            outcome: .done,
            requestID: ""
        )
        record.object = "\(count) secrets to master key \(fingerprint)"
        return record
    }

    static func refusal(_ unopened: [SealedSecret], of all: [SealedSecret], _ masterKey: MasterKey) -> GatewayError {
        if unopened.count == all.count {
            let reason =
                masterKey.hasPrevious
                ? "The store opens neither with GATEWAY_MASTER_KEY nor with GATEWAY_PREVIOUS_MASTER_KEY"
                : "The store does not open with GATEWAY_MASTER_KEY; set GATEWAY_PREVIOUS_MASTER_KEY to the old key"
            return GatewayError(.invalid, "\(reason). Nothing was changed")
        }
        let names = unopened.prefix(20).map(\.name).joined(separator: ", ")
        let more = unopened.count > 20 ? " and \(unopened.count - 20) more" : ""
        return GatewayError(
            .invalid,
            "Nothing was changed, because not everything opens with the given keys: \(names)\(more). "
                + "Store these credentials again, or give the right previous key"
        )
    }

    static func answer(_ outcome: Outcome, json: Bool) throws -> CommandOutput {
        let text = JSONWriter.object { writer in
            writer.member("moved", outcome.moved)
            writer.member("already_current", outcome.current)
            writer.member("master_key", outcome.fingerprint)
        }
        let object = try JSONDocument(parsing: text).root
        var output = CommandOutput.object(object, columns: ["moved", "already_current", "master_key"], json: json)
        output.remark =
            outcome.moved == 0
            ? "everything was already sealed with this master key"
            : "everything is sealed with the new master key; the previous key is no longer needed"
        return output
    }
}
