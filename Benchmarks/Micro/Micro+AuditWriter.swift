import Foundation
import GatewayCore
import GatewayStorage

extension Micro {
    /// The address of a PostgreSQL's database that `fcm-gateway store migrate` has made, as the gateway's user.
    private static let storeVariable = "MICRO_STORE_URL"

    /// Chains audit records and writes them to PostgreSQL, one batch after the other, so that one connection carries all.
    ///
    /// - Returns: rows of the table: how many go in a second by the clock on the wall, the median of several rounds.
    static func writing(_ record: AuditRecord) async throws -> [String] {
        let what = "audit records written to PostgreSQL in a second"
        guard let url = ProcessInfo.processInfo.environment[Self.storeVariable] else {
            return ["| \(what) | not measured: \(Self.storeVariable) names no database |"]
        }
        let database = try await PostgreSQLDatabase(PostgreSQLSettings(url: url))
        defer { database.close() }
        let store = SQLAuditStore(database: database)
        let sealer = AuditSealer(auditKey: Secret(randomBytes: 32))
        var rows: [String] = []
        for batch in [100, 500, 2_000] {
            var rates: [Double] = []
            for _ in 0..<5 { rates.append(try await Self.rate(of: record, in: batch, to: store, sealer: sealer)) }
            rates.sort()
            rows.append("| \(what), \(batch) at a time | \(Int(rates[rates.count / 2])) |")
        }
        return rows
    }

    /// Writes a chain of its own, and tells how many records that was a second.
    private static func rate(
        of record: AuditRecord,
        in batch: Int,
        to store: SQLAuditStore,
        sealer: AuditSealer
    ) async throws -> Double {
        let count = 40_000
        var chain = AuditChain(writer: Int.random(in: 1..<1 << 48))
        var record = record
        let start = ContinuousClock.now
        for _ in 0..<count / batch {
            var records: [ChainedAuditRecord] = []
            records.reserveCapacity(batch)
            for _ in 0..<batch {
                record.time.microseconds += 1
                records.append(chain.append(record))
            }
            try await store.append(records, head: sealer.head(of: chain, state: .open))
        }
        return Double(count) / ((ContinuousClock.now - start) / .seconds(1))
    }
}
