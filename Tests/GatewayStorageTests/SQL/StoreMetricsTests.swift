import GRDB
import GatewayCore
import MetricsTestKit
import Testing

@testable import GatewayStorage

@Suite("StoreMetrics")
struct StoreMetricsTests {
    private let factory = TestMetrics()

    private func up() throws -> Double {
        try #require(try self.factory.expectMeter("fcmgw_store_up", [("store", "sqlite")]).lastValue)
    }

    private func calls(_ operation: String) throws -> Int {
        try self.factory.expectTimer("fcmgw_store_call_duration_seconds", [("op", operation), ("store", "sqlite")])
            .values.count
    }

    @Test("A store is down after a failed call, until a call of the same kind succeeds")
    func unavailable() throws {
        let metrics = StoreMetrics(store: "sqlite", GatewayMetrics(factory: self.factory))
        #expect(try self.up() == 1)
        let gone = GatewayError(.storeUnavailable, "The store's disk is full")
        metrics.ended(.write, gone, in: .milliseconds(2))
        #expect(try self.up() == 0)
        metrics.ended(.read, nil, in: .milliseconds(1))
        #expect(try self.up() == 0, "a read does not show that the disk is no longer full")
        metrics.ended(.read, gone, in: .zero)
        metrics.ended(.write, nil, in: .zero)
        #expect(try self.up() == 0)
        metrics.ended(.read, nil, in: .zero)
        #expect(try self.up() == 1)
        #expect(try self.calls("read") == 3)
        #expect(try self.calls("write") == 2)
    }

    @Test("A store that refuses a call is up", arguments: [GatewayError.Code.conflict, .invalid, .notFound])
    func refusals(code: GatewayError.Code) throws {
        let metrics = StoreMetrics(store: "sqlite", GatewayMetrics(factory: self.factory))
        metrics.ended(.write, GatewayError(code, "no"), in: .zero)
        #expect(try self.up() == 1)
        metrics.ended(.write, GatewayError(.storeUnavailable, "gone"), in: .zero)
        metrics.ended(.write, GatewayError(code, "no"), in: .zero)
        #expect(try self.up() == 1)
    }

    @Test("A cancelled call leaves the store's state unchanged")
    func cancelled() throws {
        let metrics = StoreMetrics(store: "sqlite", GatewayMetrics(factory: self.factory))
        metrics.ended(.read, GatewayError(.cancelled, "given up"), in: .zero)
        #expect(try self.up() == 1)
        metrics.ended(.read, GatewayError(.storeUnavailable, "gone"), in: .zero)
        metrics.ended(.read, GatewayError(.cancelled, "given up"), in: .zero)
        #expect(try self.up() == 0)
    }

    @Test("Every call of a database is measured, and a failing call marks the store as down")
    func database() async throws {
        try await withTemporaryDirectory { directory in
            let metrics = StoreMetrics(store: "sqlite", GatewayMetrics(factory: self.factory))
            let database = try SQLiteDatabase(path: directory + "/gateway.db", metrics: metrics)
            #expect(try self.calls("write") == 0)
            let value = try await database.write { db in
                try db.execute(sql: "CREATE TABLE probe (value)")
                try db.execute(sql: "INSERT INTO probe VALUES (7)")
                return 7
            }
            #expect(try await database.read { try Int.fetchOne($0, sql: "SELECT value FROM probe") } == value)
            #expect(try self.calls("write") == 1)
            #expect(try self.calls("read") == 1)
            #expect(try self.up() == 1)

            await expectError(.storeUnavailable) {
                try await database.read { try Int.fetchOne($0, sql: "SELECT value FROM missing") }
            }
            #expect(try self.up() == 0)
            #expect(try self.calls("read") == 2)
            _ = try await database.read { try Int.fetchOne($0, sql: "SELECT value FROM probe") }
            #expect(try self.up() == 1)
            try database.close()
        }
    }
}
