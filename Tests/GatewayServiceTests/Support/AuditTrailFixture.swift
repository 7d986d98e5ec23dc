import Foundation
import GatewayCore
import GatewayStorage
import GatewayTestKit
import Logging

@testable import GatewayService

/// A store whose audit is written as by a gateway, with checkpoints, under a clock that tests move.
struct AuditTrailFixture {
    let path: String
    let clock = ManualClock()
    let database: SQLiteDatabase
    let store: SQLAuditStore
    let sealer = AuditSealer(auditKey: .sample("audit"))
    let signer: AuditSigner
    let checkpointer: AuditCheckpointer

    init(_ directory: TemporaryDirectory) async throws {
        self.path = "\(directory.path)/gateway.sqlite"
        self.database = try SQLiteDatabase(path: self.path)
        self.store = SQLAuditStore(database: self.database)
        self.signer = try AuditSigner(signingKey: .sample("signing"))
        self.checkpointer = Self.checkpointer(self.store, self.signer, self.sealer, self.clock)
        _ = try await self.checkpointer.prepare()
    }

    static var logger: Logger { Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }) }

    private static func checkpointer(
        _ store: SQLAuditStore,
        _ signer: AuditSigner,
        _ sealer: AuditSealer,
        _ clock: ManualClock
    ) -> AuditCheckpointer {
        AuditCheckpointer(
            store: store,
            signer: signer,
            sealer: sealer,
            clock: clock,
            keptCount: 0,
            logger: self.logger
        )
    }

    /// A record of this moment.
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

    /// Adds records to a chain, so many a day, and moves the clock on by as many days.
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

    /// What the whole store verifies as.
    func verify(evidence: AuditEvidence = AuditEvidence(), isLive: Bool = true) async throws -> AuditVerifier.Verdict {
        try await AuditVerifier(
            store: self.store,
            sealer: self.sealer,
            publicKey: self.signer.publicKey,
            evidence: evidence
        )
        .verify(isLive: isLive)
    }

    /// Removes what is older than so many days, as a gateway that has just started.
    func retain(days: Int) async -> Int {
        (try? await self.retaining(days: days) { await $0.pass() }) ?? -1
    }

    /// Runs a body with a service that removes what is older than so many days.
    ///
    /// - Parameters:
    ///   - days: how many.
    ///   - store: where it removes; by default from the store itself.
    ///   - told: takes the record of what was removed.
    ///   - body: what to do with it.
    /// - Returns: what the body returns.
    /// - Throws: what the body throws.
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
            clock: self.clock,
            retention: .seconds(days * 86_400),
            logger: Self.logger
        )
        return try await audit.whileRunning { try await body(service) }
    }

    /// A feeder of a sink.
    func feeder(_ sink: any AuditSink) -> AuditSinkFeeder {
        AuditSinkFeeder(
            sink: sink,
            store: self.store,
            publicKey: self.signer.publicKey,
            logger: Self.logger
        )
    }
}
