import Foundation
import GatewayCore
import GatewayStorage
import Logging

extension Micro {
    /// Verifies an audit of a million records: chains, seals, checkpoints, and what look-ups need.
    ///
    /// - Returns: rows of the table.
    static func verifying(_ record: AuditRecord) async throws -> [String] {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fcm-gateway-micro-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("gateway.sqlite").path
        let sealer = AuditSealer(auditKey: Secret(randomBytes: 32))
        let signer = try AuditSigner(signingKey: Secret(randomBytes: 32))
        let database = try SQLiteDatabase(path: path)
        try await Self.fill(database, record: record, records: 1_000_000, sealer: sealer, signer: signer)
        try database.close()

        let reading = try SQLiteReadOnlyDatabase(path: path)
        let verifier = AuditVerifier(
            store: SQLAuditStore(database: reading),
            sealer: sealer,
            publicKey: signer.publicKey
        )
        let start = ContinuousClock.now
        guard case .intact(let count) = try await verifier.verify(isLive: false) else { return [] }
        let elapsed = ContinuousClock.now - start
        try reading.close()
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        return [
            "| verify an audit record, of \(count) | \(Int(seconds * 1e9 / Double(count))) ns (elapsed) |",
            "| audit records verified in a second | \(Int(Double(count) / seconds)) |",
        ]
    }

    private static func fill(
        _ database: SQLiteDatabase,
        record: AuditRecord,
        records: Int,
        sealer: AuditSealer,
        signer: AuditSigner
    ) async throws {
        let store = SQLAuditStore(database: database)
        let checkpointer = AuditCheckpointer(
            store: store,
            signer: signer,
            sealer: sealer,
            clock: SystemWallClock(),
            logger: Logger(label: "micro", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        _ = try await checkpointer.prepare()
        let batch = 500
        var chain = AuditChain(writer: 1)
        var record = record
        for number in 1...records / batch {
            let isLast = number == records / batch
            let chained = (0..<batch)
                .map { _ in
                    // Ten thousand records a second, as a busy gateway writes them: look-ups are by time.
                    record.time = record.time.advanced(by: .microseconds(100))
                    return chain.append(record)
                }
            try await store.append(chained, head: sealer.head(of: chain, state: isLast ? .closed : .open))
            if number.isMultiple(of: 10) || isLast { _ = await checkpointer.checkpoint() }
        }
    }
}
