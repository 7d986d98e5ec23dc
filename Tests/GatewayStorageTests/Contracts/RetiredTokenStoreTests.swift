import Foundation
import GRDB
import GatewayCore
import Testing

@testable import GatewayStorage

/// The contract of every store of retired tokens.
struct RetiredTokenStoreTests {
    private static let start = DirectoryFixtures.start
    /// A report is due this number of 5-minute buckets after it was stored.
    private static let hour = 13

    private static func owner(
        _ tenant: String = "acme",
        in database: any SQLDatabase
    ) async throws -> RetiredToken.Owner {
        let tenant = try DirectoryFixtures.tenant(tenant)
        try await SQLDirectoryStore(database: database).apply(.putTenant(tenant, salt: [1]))
        return Self.owner(of: tenant)
    }

    private static func owner(of tenant: Tenant) -> RetiredToken.Owner {
        RetiredToken.Owner(
            tenant: tenant.id,
            createdAt: tenant.createdAt,
            Pseudonymizer(auditKey: Secret("audit key"), tenantSalt: [1])
        )
    }

    private static func dead(
        _ owner: RetiredToken.Owner,
        _ key: UInt64,
        kind: RetiredToken.Kind = .token,
        after seconds: Int = 0
    ) -> RetiredToken.Change {
        .report(owner, key, self.token(key, .unregistered, kind: kind, after: seconds), replacement: 0)
    }

    private static func replaced(
        _ owner: RetiredToken.Owner,
        _ key: UInt64,
        by replacement: String = "new",
        _ bits: UInt16 = 0,
        after seconds: Int = 0
    ) -> RetiredToken.Change {
        let token = self.token(key, .replaced, after: seconds, by: replacement)
        return .report(owner, key, token, replacement: bits)
    }

    private static func count(_ owner: RetiredToken.Owner, _ judged: Int, _ unregistered: Int) -> RetiredToken.Change {
        .count(owner, RetiredTokenCounts.Tally(judged: judged, unregistered: unregistered))
    }

    /// A token whose text is its key.
    private static func token(
        _ key: UInt64,
        _ state: RetiredToken.State,
        kind: RetiredToken.Kind = .token,
        after seconds: Int = 0,
        by replacement: String? = nil
    ) -> RetiredToken {
        RetiredToken(
            kind: kind,
            text: "\(key)",
            state: state,
            since: Self.start.advanced(by: .seconds(seconds)),
            replacement: replacement
        )
    }

    /// Lets buckets pass by moving the stored ones into the past.
    private static func pass(_ buckets: Int, in database: any SQLDatabase) async throws {
        try await database.write(scope: .gateway, isolation: .readCommitted) { db in
            try db.execute("UPDATE retired_tokens SET due = due - $1", [.int(buckets)])
            // Through negative numbers, because the new number may still be taken.
            try db.execute("UPDATE retired_token_counts SET bucket = -bucket")
            try db.execute("UPDATE retired_token_counts SET bucket = -bucket - $1", [.int(buckets)])
        }
    }

    /// Feeds the reports that are due.
    @discardableResult
    private static func settle(_ store: SQLRetiredTokenStore) async throws -> RetiredTokenFeed.News {
        try await store.settle(newsSince: Timestamp(microseconds: 0))
    }

    /// The keys of the tokens in a tenant's feed.
    private static func fed(
        _ owner: RetiredToken.Owner,
        in store: SQLRetiredTokenStore,
        after cursor: RetiredTokenFeed.Cursor? = nil
    ) async throws -> [UInt64] {
        try await store.feed(of: owner, after: cursor, limit: 500).tokens.compactMap { UInt64($0.text) }
    }

    private static func states(in store: SQLRetiredTokenStore) async throws -> [UInt64: RetiredToken.State] {
        let entries = try await store.load().entries
        return Dictionary(uniqueKeysWithValues: entries.compactMap { entry in entry.state.map { (entry.key, $0) } })
    }

    // MARK: The list

    @Test("A new list is empty", arguments: StoreKind.available)
    func empty(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            #expect(try await store.load().entries.isEmpty)
            let feed = try await store.feed(of: owner, after: nil, limit: 10)
            #expect(feed.tokens.isEmpty)
            #expect(!feed.hasMore)
            #expect(try await store.feed(of: owner, after: feed.cursor, limit: 10) == feed)
            try await store.trim(reportedBefore: Self.start, keeping: 0)
            try await store.apply([])
            let news = try await Self.settle(store)
            #expect(news.spiking.isEmpty)
            #expect(news.changed.isEmpty)
        }
    }

    @Test("Every report is read back unchanged", arguments: StoreKind.available)
    func roundTrip(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            try await store.apply([
                Self.dead(owner, 0), Self.replaced(owner, .max, .max, after: 1),
                Self.dead(owner, 1 << 63, kind: .installation, after: 2),
            ])
            try await Self.pass(Self.hour, in: database)
            try await Self.settle(store)
            let feed = try await store.feed(of: owner, after: nil, limit: 10)
            #expect(
                Set(feed.tokens) == [
                    Self.token(0, .unregistered), Self.token(.max, .replaced, after: 1, by: "new"),
                    Self.token(1 << 63, .unregistered, kind: .installation, after: 2),
                ]
            )
            #expect(!feed.hasMore)
            let known: [(UInt64, RetiredToken.State, Int, UInt16)] = [
                (0, .unregistered, 0, 0), (.max, .replaced, 1, .max), (1 << 63, .unregistered, 2, 0),
            ]
            let entries = known.map { key, state, seconds, replacement in
                RetiredToken.Entry(
                    tenant: owner.tenant,
                    key: key,
                    state: state,
                    reportedAt: Self.start.advanced(by: .seconds(seconds)),
                    replacement: replacement
                )
            }
            #expect(Set(try await store.load().entries) == Set(entries))
        }
    }

    @Test("A token that its owner can't decrypt is omitted from the feed and counted", arguments: StoreKind.available)
    func unreadable(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            try await store.apply([Self.replaced(owner, 1)])
            try await Self.settle(store)
            let stranger = RetiredToken.Owner(
                tenant: owner.tenant,
                createdAt: owner.createdAt,
                Pseudonymizer(auditKey: Secret("another key"), tenantSalt: [1])
            )
            let feed = try await store.feed(of: stranger, after: nil, limit: 10)
            #expect(feed == RetiredTokenFeed(tokens: [], cursor: feed.cursor, hasMore: false, unreadable: 1))
            #expect(try await Self.fed(owner, in: store, after: feed.cursor).isEmpty)
        }
    }

    @Test("Replicas read the current state of changed tokens, including removals", arguments: StoreKind.available)
    func news(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            try await store.apply((1...4).map { Self.dead(owner, $0) })
            let start = try await store.load().readAt
            #expect(try await store.remove(1, of: owner))
            #expect(try await !store.remove(1, of: owner))
            try await store.apply([.remove(owner, 2), .remove(owner, 7), .remove(owner, 4), Self.replaced(owner, 4)])
            let news = try await store.settle(newsSince: start)
            let states = Dictionary(uniqueKeysWithValues: news.changed.map { ($0.key, $0.state) })
            #expect(states == [1: nil, 2: nil, 3: .unregistered, 4: .replaced])
            #expect(try await Self.states(in: store) == [3: .unregistered, 4: .replaced])
            // The changes are returned again for a while, and then no more.
            #expect(try await Set(store.settle(newsSince: news.readAt).changed) == Set(news.changed))
            let later = news.readAt.advanced(by: .seconds(61))
            #expect(try await store.settle(newsSince: later).changed.isEmpty)
            // A suspected token is returned, and a removed token's text is erased.
            try await store.apply([Self.count(owner, 20, 20)])
            let spike = try await store.settle(newsSince: start)
            #expect(spike.changed.first { $0.key == 3 }?.state == .suspected)
            let sizes = try await database.read(scope: .gateway) { db in
                try db.rows("SELECT sealed FROM retired_tokens WHERE state = 'removed'") { try $0.bytes(0).count }
            }
            #expect(sizes == [0, 0])
        }
    }

    /// A second report of a token, and its effect.
    struct Second: Sendable {
        var first: RetiredToken.State
        var second: RetiredToken.State
        var bits: UInt16 = 1
        var isNews: Bool
        var keepsSince: Bool
    }

    static let seconds = [
        Second(first: .unregistered, second: .unregistered, isNews: false, keepsSince: true),
        Second(first: .unregistered, second: .replaced, isNews: true, keepsSince: false),
        Second(first: .replaced, second: .unregistered, isNews: true, keepsSince: false),
        Second(first: .replaced, second: .replaced, isNews: false, keepsSince: true),
        Second(first: .replaced, second: .replaced, bits: 2, isNews: true, keepsSince: false),
        Second(first: .suspected, second: .unregistered, isNews: true, keepsSince: true),
        Second(first: .suspected, second: .replaced, isNews: true, keepsSince: false),
    ]

    @Test("A token is fed again only if its state or replacement changes", arguments: StoreKind.available, Self.seconds)
    func reportedAgain(kind: StoreKind, second: Second) async throws {
        try await kind.withDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            func report(_ state: RetiredToken.State, _ bits: UInt16, after seconds: Int) -> RetiredToken.Change {
                state == .replaced
                    ? Self.replaced(owner, 1, bits, after: seconds) : Self.dead(owner, 1, after: seconds)
            }
            if second.first == .suspected { try await store.apply([Self.count(owner, 20, 20)]) }
            try await store.apply([report(second.first, 1, after: 0)])
            try await Self.settle(store)
            try await Self.pass(100, in: database)
            try await Self.settle(store)
            #expect(try await Self.states(in: store) == [1: second.first])
            let cursor = try await store.feed(of: owner, after: nil, limit: 9).cursor

            try await store.apply([report(second.second, second.bits, after: 60)])
            try await Self.pass(Self.hour, in: database)
            try await Self.settle(store)
            #expect(try await Self.states(in: store) == [1: second.second])
            let later = Self.start.advanced(by: .seconds(60))
            #expect(try await store.load().entries.map(\.reportedAt) == [later])
            #expect(try await Self.fed(owner, in: store, after: cursor) == (second.isNews ? [1] : []))
            let all = try await store.feed(of: owner, after: nil, limit: 9).tokens
            #expect(all.map(\.since) == [second.keepsSince ? Self.start : later])
        }
    }

    // MARK: Spikes

    @Test("A report is fed an hour after it was stored, a replacement at once", arguments: StoreKind.available)
    func due(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            try await store.apply([Self.dead(owner, 1), Self.replaced(owner, 2), Self.count(owner, 19, 19)])
            try await Self.settle(store)
            #expect(try await Self.fed(owner, in: store) == [2])
            try await Self.pass(Self.hour - 2, in: database)
            try await Self.settle(store)
            #expect(try await Self.fed(owner, in: store) == [2])
            try await Self.pass(2, in: database)
            try await Self.settle(store)
            #expect(try await Self.fed(owner, in: store) == [2, 1])
        }
    }

    @Test("A late report is suspected, unless its token is on the list", arguments: StoreKind.available)
    func lateReport(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            func late(_ key: UInt64) -> RetiredToken.Change {
                .report(owner, key, Self.token(key, .suspected, after: 60), replacement: 0)
            }
            try await store.apply([Self.dead(owner, 1), Self.replaced(owner, 2), Self.dead(owner, 3)])
            let moment = try await store.load().readAt.advanced(by: .seconds(60))
            try await store.apply([.remove(owner, 3), late(1), late(2), late(3), late(4)])
            // The replica that reported them reads their current states.
            #expect(try await Set(store.settle(newsSince: moment).changed.map(\.key)) == [1, 2, 3, 4])
            try await Self.pass(Self.hour, in: database)
            try await Self.settle(store)
            #expect(
                try await Self.states(in: store) == [1: .unregistered, 2: .replaced, 3: .suspected, 4: .suspected]
            )
            #expect(try await Set(Self.fed(owner, in: store)) == [1, 2])
        }
    }

    @Test("Counts of all replicas add up to a spike of their tenant alone", arguments: StoreKind.available)
    func counts(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let stores = [SQLRetiredTokenStore(database: database), SQLRetiredTokenStore(database: database)]
            let owner = try await Self.owner(in: database)
            let other = try await Self.owner("other", in: database)
            try await stores[0].apply([Self.count(owner, 10, 2), Self.count(other, 1_000, 200), Self.dead(owner, 1)])
            #expect(try await Self.settle(stores[1]).spiking.isEmpty)
            try await stores[1].apply([Self.count(owner, 4, 0), Self.count(owner, 6, 3), Self.dead(other, 2)])
            for store in stores { #expect(try await Self.settle(store).spiking == [owner.tenant]) }
            #expect(try await Self.states(in: stores[0]) == [1: .suspected, 2: .unregistered])
            try await Self.pass(10, in: database)
            #expect(try await Self.settle(stores[0]).spiking == [owner.tenant])
            try await Self.pass(2, in: database)
            #expect(try await Self.settle(stores[0]).spiking.isEmpty)
        }
    }

    @Test("Tokens suspected in a spike are fed only after another report, not by time", arguments: StoreKind.available)
    func fault(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            try await store.apply([Self.count(owner, 100, 0), Self.dead(owner, 1)])
            try await Self.pass(5, in: database)
            try await Self.settle(store)
            // More tokens than one transaction marks as suspected.
            try await store.apply([Self.count(owner, 1_500, 1_500)] + (100..<1_600).map { Self.dead(owner, $0) })
            try await Self.settle(store)
            #expect(try await Set(Self.states(in: store).values) == [.suspected])
            // Reported again during the spike.
            try await store.apply([Self.dead(owner, 100, after: 60)])
            for _ in 0..<30 {
                try await Self.settle(store)
                try await Self.pass(10, in: database)
                #expect(try await Self.fed(owner, in: store).isEmpty)
            }
            #expect(try await Set(Self.states(in: store).values) == [.suspected])

            try await store.apply([Self.count(owner, 1, 1), Self.dead(owner, 200, after: 120), .remove(owner, 300)])
            try await Self.pass(Self.hour, in: database)
            try await Self.settle(store)
            let fed = try await store.feed(of: owner, after: nil, limit: 9).tokens
            #expect(fed == [Self.token(200, .unregistered)])
            #expect(try await Self.states(in: store).count == 1_500)
        }
    }

    @Test(
        "A spike that no replica observed is found when its reports are due, however late",
        arguments: StoreKind.available,
        [13, 14, 5_000]
    )
    func unwatched(kind: StoreKind, buckets: Int) async throws {
        try await kind.withDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            try await store.apply([Self.dead(owner, 1)])
            try await Self.pass(10, in: database)
            // The report is stored before its counts, as after an outage of one of two replicas.
            try await store.apply([Self.dead(owner, 2), Self.count(owner, 100, 100)])
            try await Self.pass(1, in: database)
            try await store.apply([Self.dead(owner, 3), Self.count(owner, 300, 0)])
            try await Self.pass(12, in: database)
            try await store.apply([Self.dead(owner, 4)])
            try await Self.pass(buckets, in: database)
            // Old counts are kept while a report depends on them.
            try await store.trim(reportedBefore: Self.start, keeping: 100)
            try await Self.settle(store)
            #expect(
                try await Self.states(in: store) == [1: .suspected, 2: .suspected, 3: .suspected, 4: .unregistered]
            )
            #expect(try await Self.fed(owner, in: store) == [4])
        }
    }

    @Test("Old counts and removals are deleted, newer ones are kept", arguments: StoreKind.available)
    func oldCounts(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            func rows() async throws -> [Int] {
                try await database.read(scope: .gateway) { db in
                    try ["retired_token_counts", "retired_tokens"]
                        .map { table in
                            try db.first("SELECT count(*) FROM \(table)") { try $0.int(0) } ?? 0
                        }
                }
            }
            try await store.apply([Self.count(owner, 1, 0), Self.dead(owner, 1), .remove(owner, 1)])
            try await Self.pass(24, in: database)
            try await store.trim(reportedBefore: Self.start, keeping: 100)
            #expect(try await rows() == [1, 1])
            try await Self.pass(2, in: database)
            try await database.write(scope: .gateway, isolation: .readCommitted) { db in
                _ = try db.execute("UPDATE retired_tokens SET changed_at = changed_at - 86400000000")
            }
            try await store.trim(reportedBefore: Self.start, keeping: 100)
            #expect(try await rows() == [0, 0])
        }
    }

    // MARK: The feed

    @Test("Paging during inserts neither skips nor repeats a token", arguments: StoreKind.available, [1, 2, 3, 7, 50])
    func paging(kind: StoreKind, limit: Int) async throws {
        try await kind.withDatabase { database in
            let owner = try await Self.owner(in: database)
            // The first settling gives a new store its epoch.
            try await Self.settle(SQLRetiredTokenStore(database: database))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in UInt64(0)..<2 {
                    group.addTask {
                        let store = SQLRetiredTokenStore(database: database)
                        for key in UInt64(0)..<40 {
                            try await store.apply([Self.replaced(owner, key * 2 + writer)])
                            try await Self.settle(store)
                        }
                    }
                }
                let store = SQLRetiredTokenStore(database: database)
                var seen: [UInt64] = []
                var cursor: RetiredTokenFeed.Cursor?
                while seen.count < 80 {
                    try Task.checkCancellation()
                    let page = try await store.feed(of: owner, after: cursor, limit: limit)
                    #expect(page.tokens.count <= limit)
                    if page.hasMore { #expect(page.tokens.count == limit) }
                    seen += page.tokens.compactMap { UInt64($0.text) }
                    cursor = page.cursor
                }
                #expect(seen.sorted() == Array(0..<80))
                #expect(try await Self.fed(owner, in: store) == seen)
                try await group.waitForAll()
            }
        }
    }

    @Test("Replicas that settle concurrently feed each token once", arguments: StoreKind.available)
    func settledTogether(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let owner = try await Self.owner(in: database)
            let store = SQLRetiredTokenStore(database: database)
            try await store.apply((0..<2_500).map { Self.dead(owner, $0) })
            try await Self.pass(Self.hour, in: database)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<3 {
                    group.addTask { try await Self.settle(SQLRetiredTokenStore(database: database)) }
                }
                try await group.waitForAll()
            }
            let positions = try await database.read(scope: .gateway) { db in
                try db.rows("SELECT position FROM retired_tokens") { try $0.int(0) }
            }
            #expect(Set(positions).count == 2_500)
            #expect(try await store.feed(of: owner, after: nil, limit: 3_000).tokens.count == 2_500)
        }
    }

    @Test("Each tenant has its own list, which is deleted with the tenant", arguments: StoreKind.available)
    func tenants(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let store = SQLRetiredTokenStore(database: database)
            let directory = SQLDirectoryStore(database: database)
            let acme = try await Self.owner(in: database)
            let other = try await Self.owner("other", in: database)
            try await store.apply([
                Self.replaced(acme, 1), Self.replaced(other, 1, after: 5), Self.replaced(other, 2, after: 6),
                Self.count(acme, 20, 20),
            ])
            #expect(try await Self.settle(store).spiking == [acme.tenant])
            #expect(try await Self.fed(acme, in: store) == [1])
            #expect(try await Self.fed(other, in: store) == [1, 2])
            try await directory.apply(.deleteTenant(acme.tenant))
            #expect(try await store.load().entries.map(\.tenant) == [other.tenant, other.tenant])

            // Late changes of the old tenant are ignored, with or without a new tenant of its name.
            let late = [Self.replaced(acme, 7), Self.count(acme, 20, 20), .remove(acme, 1)]
            try await store.apply(late + [Self.replaced(other, 8)])
            var again = try DirectoryFixtures.tenant()
            again.createdAt = Self.start.advanced(by: .seconds(1))
            try await directory.apply(.putTenant(again, salt: [2]))
            try await store.apply(late)
            #expect(try await !store.remove(7, of: acme))
            #expect(try await Self.settle(store).spiking.isEmpty)
            #expect(try await Self.fed(Self.owner(of: again), in: store).isEmpty)
            #expect(try await Self.fed(other, in: store) == [1, 2, 8])
        }
    }

    @Test("Trimming deletes old tokens, then the oldest of the largest tenant", arguments: StoreKind.available)
    func trim(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let store = SQLRetiredTokenStore(database: database)
            let acme = try await Self.owner(in: database)
            let other = try await Self.owner("other", in: database)
            func keys(_ owner: RetiredToken.Owner) async throws -> [UInt64] {
                try await store.load().entries.filter { $0.tenant == owner.tenant }.map(\.key).sorted()
            }
            try await store.apply((0..<10).map { Self.replaced(acme, $0, after: Int($0)) })
            try await store.apply((0..<4).map { Self.replaced(other, $0, after: Int($0)) })
            try await store.trim(reportedBefore: Self.start.advanced(by: .seconds(2)), keeping: 100)
            #expect(try await keys(acme) == Array(2..<10))
            #expect(try await keys(other) == [2, 3])
            let removed = try await Self.settle(store).changed.filter { $0.state == nil }
            #expect(Set(removed.map(\.tenant)) == [acme.tenant, other.tenant])
            #expect(removed.map(\.key).sorted() == [0, 0, 1, 1])
            try await store.trim(reportedBefore: Self.start, keeping: 6)
            #expect(try await keys(acme) == Array(6..<10))
            #expect(try await keys(other) == [2, 3])
            try await store.trim(reportedBefore: Self.start, keeping: 2)
            #expect(try await keys(acme) == [9])
            #expect(try await keys(other) == [3])
        }
    }

    @Test(
        "Tenants with more than an equal share of the bound lose the excess",
        arguments: [
            (10, [], .max), (10, [4, 6], .max), (9, [4, 6], 5), (1_000, [800, 100, 500], 450), (2, [8, 2], 1),
            (0, [3], 0), (2, [5, 5, 5], 0),
        ] as [(Int, [Int], Int)]
    )
    func shares(total: Int, sizes: [Int], share: Int) {
        #expect(SQLRetiredTokenStore.share(of: total, among: sizes) == share)
    }

    @Test("Cursors from before a restore or copy of the store are refused", arguments: StoreKind.available)
    func epochs(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            try await store.apply([Self.replaced(owner, 1), Self.replaced(owner, 2)])
            try await Self.settle(store)
            let cursor = try await store.feed(of: owner, after: nil, limit: 1).cursor
            try await Self.settle(store)
            #expect(try await Self.fed(owner, in: store, after: cursor) == [2])

            // As if another server had written the store. A running replica notices this like one that starts.
            try await database.write(scope: .gateway, isolation: .serializable) { db in
                _ = try db.execute("UPDATE store_epoch SET origin = 'elsewhere'")
            }
            try await store.apply([Self.replaced(owner, 3)])
            try await Self.settle(store)
            await expectError(.invalid, "begin again") { try await store.feed(of: owner, after: cursor, limit: 9) }
            #expect(try await Self.fed(owner, in: store) == [1, 2, 3])
            let second = try await store.feed(of: owner, after: nil, limit: 1).cursor
            try await database.write(scope: .gateway, isolation: .serializable) { try StoreEpoch.renew($0) }
            await expectError(.invalid, "begin again") { try await store.feed(of: owner, after: second, limit: 9) }
        }
    }

    // MARK: SQLite

    @Test("A report is due with the 13th bucket after its own, by the database's clock")
    func dueToTheSecond() async throws {
        try await withClockedDatabase { database, clock in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            try await store.apply([Self.dead(owner, 1)])
            let rest = 300 - clock.now().seconds % 300
            clock.advance(by: .seconds(rest + 12 * 300 - 1))
            try await Self.settle(store)
            #expect(try await Self.fed(owner, in: store).isEmpty)
            clock.advance(by: .seconds(1))
            try await Self.settle(store)
            #expect(try await Self.fed(owner, in: store) == [1])
        }
    }

    @Test("Entries and positions survive reopening a file, and no token in it is plain text")
    func reopened() async throws {
        try await withStorePath { path in
            let tenant = try DirectoryFixtures.tenant()
            let owner = Self.owner(of: tenant)
            let first = try SQLiteDatabase(path: path)
            try await SQLDirectoryStore(database: first).apply(.putTenant(tenant, salt: [1]))
            let before = SQLRetiredTokenStore(database: first)
            try await before.apply([Self.replaced(owner, 81_818_181, by: "canary"), Self.replaced(owner, 2)])
            try await Self.settle(before)
            let cursor = try await before.feed(of: owner, after: nil, limit: 9).cursor
            try await before.apply([.remove(owner, 2)])
            try first.close()
            let database = try SQLiteDatabase(path: path)
            let store = SQLRetiredTokenStore(database: database)
            try await store.apply([Self.replaced(owner, 3)])
            try await Self.settle(store)
            #expect(try await Self.fed(owner, in: store) == [81_818_181, 3])
            #expect(try await Self.fed(owner, in: store, after: cursor) == [3])
            let stored = try await database.read {
                try String.fetchAll($0, sql: "SELECT hex(sealed) FROM retired_tokens WHERE sealed <> x''")
                    .map { $0.lowercased() }
            }
            #expect(stored.count == 2)
            for text in ["canary", "81818181"] {
                #expect(stored.allSatisfy { !$0.contains(Hex.text(Array(text.utf8))) })
            }
            try database.close()
        }
    }

    @Test(
        "A value that the gateway would not have written is an error, not a crash",
        arguments: ["state = 'dead'", "kind = 'sms'", "replacement = 70000"]
    )
    func damaged(change: String) async throws {
        try await withSQLiteDatabase { database in
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            try await store.apply([Self.replaced(owner, 1)])
            try await Self.settle(store)
            try await database.write { try $0.execute(sql: "UPDATE retired_tokens SET \(change)") }
            await expectError(.storeUnavailable) {
                _ = try await store.feed(of: owner, after: nil, limit: 9)
                _ = try await store.load()
            }
        }
    }

    @Test("A copied file has another epoch")
    func copiedFile() async throws {
        try await withTemporaryDirectory { directory in
            func epoch(_ path: String) async throws -> String {
                let database = try SQLiteDatabase(path: path)
                _ = try await SQLRetiredTokenStore(database: database).load()
                let epoch = try await database.read(scope: .gateway) { try StoreEpoch.text($0) }
                try database.close()
                return epoch
            }
            let (path, copy) = (directory + "/gateway.db", directory + "/copy.db")
            let first = try await epoch(path)
            #expect(try await epoch(path) == first)
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            #expect(try await epoch(copy) != first)
        }
    }

    // MARK: PostgreSQL

    @Test(
        "Replicas wait for one that stalls while it feeds, so readers miss and repeat nothing",
        .timeLimit(.minutes(10))
    )
    func heldUpFeeder() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let database = try await PostgreSQLDatabase(settings)
            defer { database.close() }
            let (store, owner) = (SQLRetiredTokenStore(database: database), try await Self.owner(in: database))
            try await store.apply([Self.replaced(owner, 1)])
            try await Self.settle(store)
            let start = try await store.feed(of: owner, after: nil, limit: 9)
            #expect(start.tokens.map(\.text) == ["1"])

            try await store.apply([Self.replaced(owner, 2)])
            let held = try PostgreSQLSession(
                PostgreSQLSettings(url: settings.url.replacing("user=gateway", with: "user=postgres"))
            )
            try held.run(
                script: """
                    BEGIN;
                    UPDATE retired_token_feed SET last_position = last_position + 1;
                    UPDATE retired_tokens SET position = (SELECT last_position FROM retired_token_feed) WHERE key = 2;
                    """
            )
            try await store.apply([Self.replaced(owner, 3)])
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await Self.settle(store) }
                // Until the settling replica waits for the lock.
                var isWaiting = false
                while !isWaiting {
                    try Task.checkCancellation()
                    let sql = """
                        SELECT EXISTS (SELECT 1 FROM pg_locks
                        WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))
                        """
                    try held.query(sql, []) { row in
                        isWaiting = try row.bool(0)
                        return true
                    }
                }
                let meanwhile = try await store.feed(of: owner, after: start.cursor, limit: 9)
                #expect(meanwhile.tokens.isEmpty)
                #expect(meanwhile.cursor == start.cursor)
                try held.run(script: "COMMIT")
                try await group.waitForAll()
            }
            #expect(try await Self.fed(owner, in: store, after: start.cursor) == [2, 3])
        }
    }
}
