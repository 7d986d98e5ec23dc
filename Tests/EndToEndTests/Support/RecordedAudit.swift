import Foundation
import GatewayCore
import GatewayStorage
import GatewayTestKit
import Logging
import ProcessTestKit
import Testing

@testable import FCMGateway
@testable import GatewayService

/// A store whose audit the gateway's own parts wrote, in four chains over more days than records are kept. It has
/// checkpoints, truncations and a second sink.
struct RecordedAudit {
    let data: String
    /// The second sink's file.
    let sink: String
    /// The key that checks its checkpoints, in base64.
    let publicKey: String
    let key: AuditPublicKey
    let sealer: AuditSealer
    /// A genuine head of the last chain, from when the chain was half as long.
    let earlier: AuditHead

    /// The variables that let commands read the store.
    var environment: [String: String] {
        ["GATEWAY_DATA_DIR": self.data, "GATEWAY_MASTER_KEY": RunningGateway.masterKey()]
    }

    static func make(in directory: PrivateDirectory) async throws -> RecordedAudit {
        let path = directory.path("data/gateway.sqlite")
        let database = try SQLiteDatabase(path: path)
        let key = try #require(MasterKey(Secret(bytes: [UInt8](repeating: 7, count: 32))))
        let secrets = try await GatewaySecrets(store: SQLSecretStore(database: database), masterKey: key)
        let signer = try secrets.auditSigner()
        let store = SQLAuditStore(database: database)
        let clock = ManualClock()
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let sealer = AuditSealer(auditKey: secrets.auditKey)
        let checkpointer = AuditCheckpointer(
            store: store,
            signer: signer,
            sealer: sealer,
            clock: clock,
            logger: logger
        )
        let sink = directory.path("data/audit.jsonl")
        let feeder = AuditSinkFeeder(
            sink: AuditSinkFile(path: sink, name: "gateway"),
            name: "gateway",
            store: store,
            publicKey: signer.publicKey,
            clock: clock,
            logger: logger
        )
        var earlier: AuditHead?
        for run in 1...4 {
            let number = try await checkpointer.prepare()
            var chain = AuditChain(writer: run)
            for day in 0..<4 {
                var records = (0..<3).map { Self.record($0, tenant: "tenant-\($0 % 2)", at: clock.now()) }
                if day == 0 { records.insert(Self.opening(number, at: clock.now()), at: 0) }
                let isLast = day == 3
                if isLast { records.append(Self.own("audit.closed", at: clock.now())) }
                let chained = records.map { chain.append($0) }
                let head = sealer.head(of: chain, state: isLast ? .closed : .open)
                if run == 4, day == 1 { earlier = head }
                try await store.append(chained, head: head)
                _ = await checkpointer.checkpoint()
                await feeder.deliver()
                clock.advance(by: .seconds(86_400 + 60))
            }
        }
        // Six days are kept: the first two chains are removed, and the third loses its first records.
        let audit = AuditLog.sample(store: TestDatabase().auditStore)
        let service = AuditRetentionService(
            store: store,
            signer: signer,
            sealer: sealer,
            audit: audit,
            checkpointer: checkpointer,
            clock: clock,
            retention: .seconds(6 * 86_400),
            logger: logger
        )
        _ = try await audit.whileRunning { await service.pass() }
        _ = await checkpointer.checkpoint()
        await feeder.deliver()
        try database.close()
        return RecordedAudit(
            data: directory.path("data"),
            sink: sink,
            publicKey: signer.publicKey.base64,
            key: signer.publicKey,
            sealer: sealer,
            earlier: try #require(earlier)
        )
    }

    /// The key that verification uses, if any.
    enum Way: CaseIterable {
        case masterKey
        case publicKey
        case nothing
    }

    /// Returns the verdict of `audit verify` on a copy, without starting a process.
    func verdict(_ data: String, by way: Way = .masterKey) async throws -> AuditVerifier.Verdict {
        try await self.verifying(data, by: way) { try await $0.verify(isLive: false) }
    }

    /// Returns the verdict of a gateway's start on a copy.
    func verdictOnEnds(_ data: String) async throws -> AuditVerifier.Verdict? {
        try await self.verifying(data, by: .nothing) { try await $0.verifyEnds() }
    }

    private func verifying<Result>(
        _ data: String,
        by way: Way,
        _ body: (AuditVerifier) async throws -> Result
    ) async throws -> Result {
        let database = try SQLiteReadOnlyDatabase(path: "\(data)/gateway.sqlite")
        let verifier = AuditVerifier(
            store: SQLAuditStore(database: database),
            sealer: way == .masterKey ? self.sealer : nil,
            publicKey: way == .nothing ? nil : self.key
        )
        let result = try await body(verifier)
        try database.close()
        return result
    }

    /// Expects `audit verify` to find a change with either key and without one.
    func expectChanged(_ data: String, _ comment: String) async throws {
        for way in Way.allCases {
            var environment = ["GATEWAY_DATA_DIR": data]
            if way == .masterKey { environment = self.environment.merging(environment) { $1 } }
            let key = way == .publicKey ? ["--public-key", self.publicKey] : []
            let outcome = try await Program.gateway(["audit", "verify"] + key, environment: environment)
            #expect(outcome.end == .code(1), "\(comment), by \(way): \(outcome.output)\(outcome.errors)")
            #expect(outcome.output.contains("First bad record: "), "\(comment), by \(way): \(outcome.output)")
        }
    }

    /// Runs `audit verify` on the store or on a copy.
    func verify(_ data: String? = nil, _ arguments: [String] = []) async throws -> Program.Outcome {
        var environment = self.environment
        if let data { environment["GATEWAY_DATA_DIR"] = data }
        return try await Program.gateway(["audit", "verify"] + arguments, environment: environment)
    }

    private static func own(_ action: String, at time: Timestamp) -> AuditRecord {
        AuditRecord(time: time, tenant: nil, principal: "gateway", action: action, outcome: .done, requestID: "")
    }

    private static func opening(_ number: Int, at time: Timestamp) -> AuditRecord {
        var record = self.own("audit.opened", at: time)
        record.afterCheckpoint = number
        return record
    }

    private static func record(_ number: Int, tenant: String, at time: Timestamp) -> AuditRecord {
        var record = AuditRecord(
            time: time.advanced(by: .seconds(number)),
            tenant: tenant,
            principal: "key:abc",
            action: "message.send",
            outcome: .accepted,
            requestID: "request-\(number)"
        )
        record.targetKind = "token"
        record.targets = Array(repeating: UInt8(number), count: Pseudonym.byteCount)
        return record
    }
}
