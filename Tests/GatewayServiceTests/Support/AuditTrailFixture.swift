import Foundation
import GatewayCore
import GatewayStorage
import GatewayTestKit
import Logging

@testable import GatewayService

/// A store with an audit and checkpoints as a gateway writes them, and a manual clock.
struct AuditTrailFixture {
    let directory: TemporaryDirectory
    /// The store's path.
    let path: String
    let clock = ManualClock()
    let database: SQLiteDatabase
    let store: SQLAuditStore
    let sealer = AuditSealer(auditKey: .sample("audit"))
    let signer: AuditSigner
    let checkpointer: AuditCheckpointer

    /// Runs a body with a store in its own directory, and closes the store afterwards.
    static func with(_ body: (AuditTrailFixture) async throws -> Void) async throws {
        try await TemporaryDirectory.with { directory in
            let fixture = try await AuditTrailFixture(directory)
            try await body(fixture)
            try fixture.database.close()
        }
    }

    init(_ directory: TemporaryDirectory) async throws {
        self.directory = directory
        self.path = "\(directory.path)/gateway.sqlite"
        self.database = try SQLiteDatabase(path: self.path)
        self.store = SQLAuditStore(database: self.database)
        self.signer = try AuditSigner(signingKey: .sample("signing"))
        self.checkpointer = AuditCheckpointer(
            store: self.store,
            signer: self.signer,
            sealer: self.sealer,
            clock: self.clock,
            logger: Self.logger
        )
        _ = try await self.checkpointer.prepare()
    }

    static var logger: Logger { Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }) }

    /// A record of the clock's current time.
    func record(_ action: String = "message.send", tenant: String? = "acme") -> AuditRecord {
        var record = AuditRecord(
            time: self.clock.now(),
            tenant: tenant,
            principal: "key:a\"b\\\u{1F600}\n",
            action: action,
            outcome: .accepted,
            requestID: "request"
        )
        record.targetKind = "token"
        record.targets = (0..<32).map { UInt8($0) }
        record.recipients = 2
        return record
    }

    /// Adds a number of records per day to a chain, and advances the clock by the days.
    func write(
        _ records: Int,
        to chain: inout AuditChain,
        days: Int = 0,
        state: AuditHead.State = .open,
        tenant: String? = "acme"
    ) async throws {
        for day in 0...days {
            var chained = (0..<records).map { _ in chain.append(self.record(tenant: tenant)) }
            if state == .closed, day == days { chained.append(chain.append(self.record("audit.closed", tenant: nil))) }
            let isOpen = state == .open || day < days
            try await self.store.append(chained, head: self.sealer.head(of: chain, state: isOpen ? .open : state))
            if days > 0 { self.clock.advance(by: .seconds(86_400)) }
        }
    }

    /// Verifies the whole store.
    func verify(evidence: AuditEvidence = AuditEvidence(), isLive: Bool = true) async throws -> AuditVerifier.Verdict {
        let key = self.signer.publicKey
        let verifier = AuditVerifier(store: self.store, sealer: self.sealer, publicKey: key, evidence: evidence)
        return try await verifier.verify(isLive: isLive)
    }

    /// Verifies a sink's files without the store; throws the change that it finds.
    func read(_ paths: String...) throws -> AuditSinkVerifier {
        var verifier = AuditSinkVerifier(publicKey: self.signer.publicKey)
        for path in paths { try verifier.read(path) }
        if let failure = verifier.finding { throw failure }
        return verifier
    }

    func lines(_ path: String) throws -> [String] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    func write(_ lines: [String], to path: String) throws {
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(filePath: path))
    }

    /// Removes records older than a number of days, as a gateway that has just started.
    func retain(days: Int) async -> Int {
        (try? await self.retaining(days: days) { await $0.pass() }) ?? -1
    }

    /// Runs a body with a service that removes old records from this store or `store`, and records that in `told`.
    func retaining<Result: Sendable>(
        days: Int,
        store: (any AuditStore)? = nil,
        told: InMemoryAuditStore = InMemoryAuditStore(),
        _ body: @Sendable (AuditRetentionService) async throws -> Result
    ) async throws -> Result {
        let audit = AuditLog.sample(store: told)
        let service = AuditRetentionService(
            store: store ?? self.store,
            signer: self.signer,
            sealer: self.sealer,
            audit: audit,
            checkpointer: self.checkpointer,
            clock: self.clock,
            retention: .seconds(days * 86_400),
            logger: Self.logger
        )
        return try await audit.whileRunning { try await body(service) }
    }

    func feeder(
        _ sink: any AuditSink,
        name: String = "gateway",
        metrics: GatewayMetrics = GatewayMetrics()
    ) -> AuditSinkFeeder {
        AuditSinkFeeder(
            sink: sink,
            name: name,
            store: self.store,
            publicKey: self.signer.publicKey,
            clock: self.clock,
            metrics: metrics,
            logger: Self.logger
        )
    }
}
