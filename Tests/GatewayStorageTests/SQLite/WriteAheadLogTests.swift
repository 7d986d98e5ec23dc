import Dispatch
import Foundation
import GRDB
import GatewayCore
import MetricsTestKit
import Testing

@testable import GatewayStorage

struct WriteAheadLogTests {
    private static let limit = 256 * 1024

    private static func size(of path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path + "-wal")
        return try #require(attributes[.size] as? Int)
    }

    /// Writes somewhat more than the log's limit.
    private static func write(to database: SQLiteDatabase) async throws {
        for _ in 0..<80 {
            try await database.write { try $0.execute(sql: "INSERT INTO filler VALUES (randomblob(4000))") }
        }
    }

    @Test("A checkpoint is due after every thousand pages, whether the log was restarted or not")
    func checkpoints() {
        var state = WriteAheadLog.State(dueSize: 0)
        func due(_ pages: some Sequence<Int>) -> [Int] {
            pages.filter { count in
                state.note(pages: count)
                return state.takeCheckpoint()
            }
        }
        #expect(due(stride(from: 7, through: 3_500, by: 7)) == [1_001, 2_002, 3_003])
        #expect(due(stride(from: 4, through: 2_500, by: 4)) == [1_000, 2_000])
    }

    @Test("The log is emptied even if scans overlap without a gap")
    func overlappingScans() async throws {
        try await withStorePath { path in
            let factory = TestMetrics()
            let database = try SQLiteDatabase(
                path: path,
                metrics: StoreMetrics(store: "sqlite", GatewayMetrics(factory: factory)),
                logLimit: Self.limit
            )
            try await database.write { try $0.execute(sql: "CREATE TABLE filler (value BLOB)") }
            let (began, begun) = AsyncStream.makeStream(of: Int.self)
            // Each scan begins while the one before it is still reading.
            var ends: [DispatchSemaphore] = []
            var sizes: [Int] = []
            try await withThrowingTaskGroup(of: Int.self) { group in
                var starts = began.makeAsyncIterator()
                for number in 0..<6 {
                    let end = DispatchSemaphore(value: 0)
                    group.addTask {
                        try await database.read(.listing, scope: .tenant("tenant \(number)")) { db in
                            let rows = try db.first("SELECT count(*) FROM filler") { try $0.int(0) } ?? 0
                            begun.yield(number)
                            end.wait()
                            return rows
                        }
                    }
                    // The first scan is alone; each later one waits until the one before it has ended.
                    if let elder = ends.last { elder.signal() }
                    _ = await starts.next()
                    sizes.append(try Self.size(of: path))
                    ends.append(end)
                    try await Self.write(to: database)
                    // Other reads continue meanwhile.
                    #expect(try await database.read { try Int.fetchOne($0, sql: "SELECT 1") } == 1)
                }
                ends.last?.signal()
                for try await _ in group {}
            }
            #expect(sizes.allSatisfy { $0 <= 4 * Self.limit }, "\(sizes)")
            let shown = try factory.expectMeter("fcmgw_store_wal_bytes", [("store", "sqlite")]).values
            #expect(shown.contains { $0 > Double(Self.limit) })
            // The first log also contains the schema's pages.
            #expect(shown.max() ?? .infinity <= Double(5 * Self.limit))
            try database.close()
        }
    }
}
