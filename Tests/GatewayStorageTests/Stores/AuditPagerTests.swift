import GRDB
import GatewayCore
import Testing

@testable import GatewayStorage

struct AuditPagerTests {
    private let fixtures = AuditFixtures()
    private static let count = 3 * AuditPager.step + 100

    /// Runs a body with one writer's records over four steps; every thousandth is another tenant's.
    private func withStore(_ body: (SQLiteDatabase, SQLAuditStore) async throws -> Void) async throws {
        try await withSQLiteDatabase { database in
            let store = SQLAuditStore(database: database)
            var chain = AuditChain(writer: 1)
            for start in stride(from: 1, through: Self.count, by: 3_000) {
                let records = (start..<min(start + 3_000, Self.count + 1))
                    .map { number in
                        AuditFixtures.record(number, tenant: number.isMultiple(of: 1_000) ? "rare" : "acme")
                    }
                try await self.fixtures.write(records, to: &chain, in: store)
            }
            try await body(database, store)
        }
    }

    @Test("A time range is found across the border of two steps")
    func timeRange() async throws {
        try await self.withStore { _, store in
            var query = AuditQuery(limit: 20)
            query.from = AuditFixtures.record(AuditPager.step - 2).time
            query.to = AuditFixtures.record(AuditPager.step + 3).time
            let page = try await store.page(query)
            #expect(page.records.map(\.sequence) == [4_098, 4_097, 4_096, 4_095, 4_094])
            #expect(page.next == nil)
        }
    }

    @Test("A page whose time is up has read one step, and returns a cursor to continue")
    func boundedWork() async throws {
        try await self.withStore { database, _ in
            var query = AuditQuery(limit: 5)
            query.target = AuditFixtures.pseudonym(10_000_000)
            query.messageID = "no such message"
            let (records, pages) = try await Self.pages(of: query, in: database)
            #expect(records.isEmpty)
            #expect(pages == 4)
        }
    }

    @Test("Pages whose time is up neither skip nor repeat a record", arguments: [nil, "rare"])
    func interruptedPages(tenant: String?) async throws {
        try await self.withStore { database, _ in
            var query = AuditQuery(limit: 500)
            query.tenant = tenant
            query.from = AuditFixtures.record(1_500).time
            query.outcome = .accepted
            let (records, _) = try await Self.pages(of: query, in: database)
            let numbers = (1_500...Self.count).filter { $0.isMultiple(of: tenant == nil ? 2 : 1_000) }
            #expect(records == numbers.reversed())
        }
    }

    @Test("A tenant's pages omit an earlier tenant's records, and their number does not reveal that there were any")
    func lives() async throws {
        try await withSQLiteDatabase { database in
            let store = SQLAuditStore(database: database)
            var chain = AuditChain(writer: 1)
            let records = (1...AuditPager.step + 10)
                .map { number in
                    var record = AuditFixtures.record(number)
                    // The same time for both tenants, and a late record of the first among the second's.
                    record.time = AuditFixtures.record(1).time
                    record.tenantUID = number <= AuditPager.step || number == AuditPager.step + 7 ? .max : 2
                    return record
                }
            try await self.fixtures.write(records, to: &chain, in: store)
            var query = AuditQuery(limit: 500)
            query.tenant = "acme"
            var (found, pages) = try await Self.pages(of: query, in: database)
            #expect(found == (1...AuditPager.step + 10).reversed())
            query.code = "unregistered"
            (found, pages) = try await Self.pages(of: query, in: database)
            #expect(found == (1...AuditPager.step + 10).reversed())
            query.tenantUID = 2
            (found, pages) = try await Self.pages(of: query, in: database)
            #expect(found == [1, 2, 3, 4, 5, 6, 8, 9, 10].map { AuditPager.step + $0 }.reversed())
            #expect(pages == 1, "the first tenant's records are not read")
            query.tenantUID = 3
            (found, pages) = try await Self.pages(of: query, in: database)
            #expect(found.isEmpty)
        }
    }

    @Test("Every filter finds only matching records")
    func filters() async throws {
        let cases: [(expected: [Int], change: (inout AuditQuery) -> Void)] = [
            ([4_097], { $0.principal = "k4097" }),
            ([4_097], { $0.principal = "key:k4097" }),
            ([], { $0.principal = "k" }),
            ([77], { $0.requestID = "request-77" }),
            ([], { $0.requestID = "unregistered" }),
            ([78], { ($0.code, $0.requestID) = ("unregistered", "request-78") }),
            ([], { $0.code = "NotRegistered" }),
        ]
        try await self.withStore { database, _ in
            for (number, (expected, change)) in cases.enumerated() {
                var query = AuditQuery(limit: 500)
                change(&query)
                let (found, _) = try await Self.pages(of: query, in: database)
                #expect(found == expected, "case \(number)")
            }
        }
    }

    /// The sequences found by pages that are each out of time at once, and the number of pages.
    private static func pages(of query: AuditQuery, in database: SQLiteDatabase) async throws -> ([Int], Int) {
        var (query, records, pages) = (query, [Int](), 0)
        repeat {
            let asked = query
            let page = try await database.read(scope: .gateway) { try AuditPager.page(asked, $0) { true } }
            records += page.records.map(\.sequence)
            if let next = page.next?.position, let before = query.before?.position {
                #expect(next.sequence < before.sequence)
            }
            query.before = page.next
            pages += 1
        } while query.before != nil
        return (records, pages)
    }
}
