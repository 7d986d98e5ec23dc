import ArgumentParser
import FCMModel
import Foundation
import GatewayCore
import GatewayService
import GatewayStorage
import NIOCore
import NIOFoundationCompat
import StrictJSON

/// The options of audit verbs that read the store directly, even while a gateway serves it.
struct AuditStoreOptions: ParsableArguments {
    @OptionGroup var options: ConfigOptions

    @Option(
        name: .long,
        help: "The data directory to use; the secrets of fcm-gateway-dev are found there.",
        completion: .directory
    )
    var dataDir: String?

    /// The configuration in force; prints its problems and throws `ExitCode.failure` if there are any.
    func load() throws -> GatewayConfiguration {
        var environment = ProcessInfo.processInfo.environment
        if let dataDir = self.dataDir {
            environment["GATEWAY_DATA_DIR"] = dataDir
            let keyFile = "\(dataDir)/master.key"
            let isGiven = environment["GATEWAY_MASTER_KEY"] != nil || environment["GATEWAY_MASTER_KEY_FILE"] != nil
            if !isGiven, FileManager.default.fileExists(atPath: keyFile) {
                environment["GATEWAY_MASTER_KEY_FILE"] = keyFile
            }
        }
        return try self.options.load(environment: environment)
    }
}

extension GatewayConfiguration {
    /// The gateway's own secrets in a store; `nil` without a master key. Throws `invalid` if the key is not the
    /// store's.
    func secrets(of database: any SQLDatabase) async throws -> GatewaySecrets? {
        guard let key = self.masterKey else { return nil }
        let masterKey = try MasterKey(key, previous: self.previousMasterKey)
        let stored = try await SQLSecretStore(database: database).gatewaySecrets()
        return try GatewaySecrets(stored: stored, masterKey: masterKey)
    }
}

extension AuditChainReader {
    /// Calls a closure with each stored record, chain by chain.
    fileprivate func forEachRecord(_ body: (ChainedAuditRecord) throws -> Void) async throws {
        for writer in try await self.writersWithRecords() {
            var last = 0
            while true {
                let records = try await self.records(of: writer, after: last, limit: 1_000)
                for record in records { try body(record) }
                guard let end = records.last?.sequence, end > last else { break }
                last = end
            }
        }
    }
}

/// `audit export`: writes all records of the store as JSON lines.
struct AuditExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write the whole audit trail as lines of JSON.",
        discussion: """
            Reads the store directly, even while a gateway serves it. Writes one record per line, chain by chain, with \
            its place (writer and seq) and hash. The file alone proves nothing: fcm-gateway audit verify checks the \
            store, and the second sink (audit.sink) is signed.

            Example:
              fcm-gateway audit export --config gateway.yaml > audit.ndjson
            """
    )

    @OptionGroup var store: AuditStoreOptions

    func run() async throws {
        let configuration = try self.store.load()
        try await FailureReport.reporting {
            let store = SQLAuditStore(database: try await configuration.openStoreForReading())
            let output = LineOutput(.standardOutput)
            try await store.forEachRecord { record in
                guard !record.hash.isEmpty else {
                    throw GatewayError(
                        .invalid,
                        "Record \(record.sequence) of writer \(record.writer) can't be read; "
                            + "run fcm-gateway audit verify"
                    )
                }
                try output.write(AuditLine.record(record).text)
            }
            try output.flush()
        }
    }
}

/// `audit intents`: lists intents without a recorded outcome.
struct AuditIntentsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "intents",
        abstract: "Print intents without an outcome.",
        discussion: """
            Reads the store directly. In strict mode, each send leaves two records: an intent and an outcome. In \
            any mode, each change by an operator does the same. An intent alone means that the gateway was killed in \
            between; a message may have been sent. Prints one record per line, oldest first; with --output json, each \
            line is JSON. While a gateway serves the store, the list includes sends under way.

            Example:
              fcm-gateway audit intents --config gateway.yaml
            """
    )

    @OptionGroup var store: AuditStoreOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let configuration = try self.store.load()
        try await FailureReport.reporting {
            let store = SQLAuditStore(database: try await configuration.openStoreForReading())
            var intents = AuditIntents()
            try await store.forEachRecord { intents.take($0) }
            for record in intents.withoutOutcome {
                let line = try JSONDocument(parsing: AuditLine.record(record).text, limits: .trusted).root
                var output = CommandOutput(self.output.isJSON ? line.canonicalText : AuditTrail.line(line))
                output.isContinued = true
                try output.write()
            }
        }
    }
}

/// `audit pseudonym`: prints the audit's pseudonym of a token or topic.
struct AuditPseudonymCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pseudonym",
        abstract: "Print the audit's pseudonym of a token or topic.",
        discussion: """
            Reads the store directly and needs the master key. Pseudonyms differ between tenants. A deleted \
            tenant's pseudonyms can no longer be computed, because the tenant's salt is gone.

            Tokens come from a file or, with -, from standard input, one per line; the pseudonyms have the same order.

            Example:
              fcm-gateway audit pseudonym shop --token-file tokens.txt --config gateway.yaml
            """
    )

    @Argument(help: "The tenant.") var tenant: TenantID
    @Option(name: .long, help: "A file with one token a line, or - for standard input.") var tokenFile: String?
    @Option(name: .long, help: "A topic, or the name of a device group.") var topic: String?
    @OptionGroup var store: AuditStoreOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (self.tokenFile == nil) != (self.topic == nil) else {
            throw ValidationError("Name either --token-file or --topic.")
        }
    }

    func run() async throws {
        let configuration = try self.store.load()
        let texts = try self.texts()
        try await FailureReport.reporting {
            guard configuration.masterKey != nil else { throw GatewayConfiguration.missingMasterKey }
            let database = try await configuration.openStoreForReading()
            guard let salt = try await SQLSecretStore(database: database).salt(of: self.tenant),
                let secrets = try await configuration.secrets(of: database)
            else {
                throw GatewayError(
                    .notFound,
                    "There is no tenant \(self.tenant); a deleted tenant's pseudonyms can't be computed any more"
                )
            }
            let pseudonymizer = Pseudonymizer(auditKey: secrets.auditKey, tenantSalt: salt)
            let pseudonyms = texts.map { pseudonymizer.pseudonym(of: $0).description }
            let answer = CommandOutput(pseudonyms.joined(separator: "\n"))
            try (self.output.isJSON ? .json { $0.member("pseudonyms", pseudonyms) } : answer).write()
        }
    }

    private func texts() throws(CommandFailure) -> [String] {
        guard let topic = self.topic else { return try InputFile.readTokens(self.tokenFile ?? "-") }
        let prefix = TopicName.legacyPrefix
        return [topic.hasPrefix(prefix) ? String(topic.dropFirst(prefix.count)) : topic]
    }
}

/// `audit public-key`: prints the key that verifies the audit's checkpoints.
struct AuditPublicKeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "public-key",
        abstract: "Print the key that verifies the audit's checkpoints.",
        discussion: """
            Reads the store directly and needs the master key. The printed key is not secret. Keep it where the \
            operators of the gateway can't change it, and pass it to fcm-gateway audit verify --public-key.

            Example:
              fcm-gateway audit public-key --config gateway.yaml
            """
    )

    @OptionGroup var store: AuditStoreOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let configuration = try self.store.load()
        try await FailureReport.reporting {
            guard configuration.masterKey != nil else { throw GatewayConfiguration.missingMasterKey }
            let database = try await configuration.openStoreForReading()
            guard let secrets = try await configuration.secrets(of: database) else { return }
            let key = try secrets.auditSigner().publicKey.base64
            try (self.output.isJSON ? .json { $0.member("public_key", key) } : CommandOutput(key)).write()
        }
    }
}

/// Writes many lines in batches.
final class LineOutput {
    struct Unwritable: Error, CustomStringConvertible {
        let cause: any Error

        var description: String { "the output can't be written: \(SystemError.text(self.cause))" }
    }

    private static let capacity = 1 << 16

    private let handle: FileHandle
    private var waiting = ByteBuffer()

    init(_ handle: FileHandle) {
        self.handle = handle
    }

    func write(_ line: ByteBuffer) throws(Unwritable) {
        self.waiting.writeImmutableBuffer(line)
        self.waiting.writeInteger(UInt8(ascii: "\n"))
        if self.waiting.readableBytes >= Self.capacity { try self.flush() }
    }

    func flush() throws(Unwritable) {
        guard self.waiting.readableBytes > 0 else { return }
        do {
            try self.handle.write(contentsOf: Data(buffer: self.waiting))
        } catch {
            throw Unwritable(cause: error)
        }
        self.waiting.clear()
    }
}
