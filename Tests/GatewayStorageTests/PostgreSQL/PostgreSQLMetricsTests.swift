import FCMModel
import GatewayCore
import MetricsTestKit
import Synchronization
import Testing

@testable import GatewayStorage

/// The PostgreSQL driver's metrics of transactions.
struct PostgreSQLMetricsTests {
    private let factory = TestMetrics()

    /// Random text, which PostgreSQL can't compress much in an index.
    private static func unpredictable(_ length: Int) -> String {
        String((0..<length).compactMap { _ in "abcdefghijklmnopqrstuvwxyz0123456789".randomElement() })
    }

    private func count(_ name: String, _ labels: [(String, String)] = []) throws -> Int64 {
        try self.factory.expectCounter(name, labels).totalValue
    }

    @Test(
        "Retried transactions are counted by reason",
        arguments: [("40001", "serialization", "deadlock"), ("40P01", "deadlock", "serialization")]
    )
    func retries(state: String, reason: String, other: String) async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let database = try await PostgreSQLDatabase(settings, metrics: GatewayMetrics(factory: self.factory))
            defer { database.close() }
            let attempts = Attempts()
            try await database.write(scope: .gateway, isolation: .serializable) { db in
                guard attempts.next() < 3 else { return }
                try db.execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '\(state)'; END $$")
            }
            #expect(try self.count("fcmgw_store_retries_total", [("reason", reason)]) == 2)
            #expect(try self.count("fcmgw_store_retries_total", [("reason", other)]) == 0)
            #expect(try self.count("fcmgw_store_commits_unknown_total") == 0)
        }
    }

    @Test(
        "A value that PostgreSQL rejects is the request's fault, and the store stays up",
        arguments: [
            ("INSERT INTO device_group_leases VALUES ('demo', $1, 'o', 0)", "a\u{0}b"),
            ("INSERT INTO gateway_secrets VALUES ($1, NULL, '')", "a"),
            ("INSERT INTO gateway_secrets VALUES ($1, '', '')", Self.unpredictable(9_000)),
        ]
    )
    func values(sql: String, text: String) async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let metrics = GatewayMetrics(factory: self.factory)
            let database = try await PostgreSQLDatabase(settings, metrics: metrics)
            defer { database.close() }
            let error = await #expect(throws: GatewayError.self) {
                try await database.write(scope: .gateway, isolation: .serializable) { db in
                    try db.execute(sql, [.text(text)])
                }
            }
            #expect(error?.code == .invalid)
            #expect(error.map { Refusal($0).code.isRetryable } == false)
            let up = try self.factory.expectMeter("fcmgw_store_up", [("store", "postgresql")])
            #expect(up.values.allSatisfy { $0 == 1 })
        }
    }

    @Test("A COMMIT whose outcome is unknown is counted")
    func unknown() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            try PostgreSQLFixture.endConnectionAtCommit(in: settings)
            var settings = settings
            // The server is not asked for the outcome, as if it did not return in time.
            settings.outageTimeout = .zero
            let database = try await PostgreSQLDatabase(settings, metrics: GatewayMetrics(factory: self.factory))
            defer { database.close() }
            let error = await #expect(throws: GatewayError.self) {
                try await database.write(scope: .gateway, isolation: .serializable) { db in
                    let sql = "INSERT INTO audit_checkpoints (number, content, signature) VALUES ($1, $2, $3)"
                    try db.execute(sql, [.int(1), .blob([1]), .blob([2])])
                }
            }
            #expect(error?.cause is CommitOutcomeUnknown)
            #expect(try self.count("fcmgw_store_commits_unknown_total") == 1)
        }
    }
}

/// Counts how often a closure runs.
private final class Attempts: Sendable {
    private let count = Atomic(0)

    func next() -> Int { self.count.wrappingAdd(1, ordering: .relaxed).newValue }
}
