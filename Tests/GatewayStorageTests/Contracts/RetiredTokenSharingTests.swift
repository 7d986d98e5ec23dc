import Foundation
import GatewayCore
import Testing

@testable import GatewayStorage

/// What every store of retired tokens promises to several replicas.
struct RetiredTokenSharingTests {
    private static func owner(in directory: any DirectoryStore) async throws -> RetiredTokenOwner {
        let tenant = try DirectoryFixtures.tenant()
        try await directory.apply(.putTenant(tenant, salt: [1]))
        return RetiredTokenOwner(
            tenant: tenant.id,
            createdAt: tenant.createdAt,
            Pseudonymizer(auditKey: Secret("audit key"), tenantSalt: [1])
        )
    }

    private static func put(
        _ owner: RetiredTokenOwner,
        _ key: UInt64,
        _ state: RetiredToken.State = .pending
    ) -> RetiredTokenChange {
        let token = RetiredToken(kind: .token, text: "\(key)", state: state, since: DirectoryFixtures.start)
        return .put(owner, key, token, replacement: 0, keepsSince: false)
    }

    private static func replicas(
        over database: any SQLDatabase,
        changesPerPage: Int = 20_000
    ) -> [SQLRetiredTokenStore] {
        ["one", "two"]
            .map { name in
                SQLRetiredTokenStore(
                    database: database,
                    replica: ReplicaID(text: name),
                    changesPerPage: changesPerPage
                )
            }
    }

    /// A replica that reads what came since it read last.
    private final class Reader {
        private let store: SQLRetiredTokenStore
        private var bookmark: RetiredTokenBookmark

        init(_ store: SQLRetiredTokenStore, after bookmark: RetiredTokenBookmark) {
            (self.store, self.bookmark) = (store, bookmark)
        }

        /// All pages as one.
        func news() async throws -> RetiredTokenNews {
            var news = try #require(try await self.store.changes(since: self.bookmark))
            while news.bookmark.pageEnd != nil {
                let next = try #require(try await self.store.changes(since: news.bookmark))
                news.changes += next.changes
                news.bookmark = next.bookmark
            }
            self.bookmark = news.bookmark
            return news
        }
    }

    @Test(
        "A replica reads what another one changed, and what became of it",
        arguments: StoreKind.available,
        [1, 2, 20_000]
    )
    func changes(kind: StoreKind, changesPerPage: Int) async throws {
        try await kind.withDatabase { database in
            let owner = try await Self.owner(in: SQLDirectoryStore(database: database))
            let stores = Self.replicas(over: database, changesPerPage: changesPerPage)
            try await stores[0].apply([Self.put(owner, 1)])
            try await database.whenSettled()
            let contents = try await stores[1].load()
            #expect(contents.entries.map(\.key) == [1])
            let reader = Reader(stores[1], after: contents.bookmark)
            #expect(try await reader.news().changes.isEmpty)

            try await stores[0].apply([Self.put(owner, .max), .move(owner, [1], to: .unregistered)])
            try await database.whenSettled()
            let first = try await reader.news().changes
            #expect(first.map(\.key) == [.max, 1])
            #expect(first.map(\.entry?.state) == [.pending, .unregistered])
            #expect(first.map(\.place) == first.map(\.place).sorted())

            try await stores[0].apply([.remove(owner, .max), .touch(owner, 1, at: .init(microseconds: 7))])
            try await database.whenSettled()
            let second = try await reader.news().changes
            #expect(second.map(\.key) == [.max, 1])
            #expect(second.map(\.entry?.reportedAt) == [nil, Timestamp(microseconds: 7)])
            #expect(try await reader.news().changes.isEmpty)

            // What one replica drops, the others forget.
            #expect(try await stores[0].trim(reportedBefore: DirectoryFixtures.start, keeping: 9).count == 1)
            try await database.whenSettled()
            let third = try await reader.news().changes
            #expect(third.map(\.key) == [1])
            #expect(third.map(\.entry) == [nil])
        }
    }

    @Test("What replicas count adds up, each in a row of its own", arguments: StoreKind.available)
    func counts(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let owner = try await Self.owner(in: SQLDirectoryStore(database: database))
            let stores = Self.replicas(over: database)
            let reader = Reader(stores[1], after: try await stores[1].load().bookmark)
            try await stores[0].apply([.count(owner, accepted: 10, unregistered: 1)])
            try await stores[1].apply([.count(owner, accepted: 1_000, unregistered: 100)])
            try await stores[0].apply([.count(owner, accepted: 5, unregistered: 0)])
            let counter = RetiredTokenCount.Counter(tenant: owner.tenant, replica: "one")
            let sum = RetiredTokenCount(counter, accepted: 15, unregistered: 1)
            #expect(try await reader.news().counts == [sum])
            #expect(try await stores[1].load().counts == [sum])
            let detector = SpikeDetector(
                phase: .spike(since: DirectoryFixtures.start, .init(sent: 9, unregistered: 8)),
                history: .init(),
                agedAt: DirectoryFixtures.start,
                surplus: 9_000,
                transitions: 1
            )
            try await stores[0].apply([.save(owner, detector)])
            #expect(try await reader.news().detectors == [owner.tenant: detector])
        }
    }

    @Test("A process that has the store to itself notes nothing for others", arguments: StoreKind.available)
    func alone(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let owner = try await Self.owner(in: SQLDirectoryStore(database: database))
            let store = SQLRetiredTokenStore(database: database)
            try await store.apply([Self.put(owner, 1), .remove(owner, 1), .count(owner, accepted: 1, unregistered: 1)])
            let rows = try await database.read(scope: .gateway) { db in
                try db.first(
                    """
                    SELECT (SELECT count(*) FROM retired_token_changes) + (SELECT count(*) FROM retired_token_counts)
                    """
                ) { try $0.int(0) }
            }
            #expect(rows == 0)
        }
    }

    @Test("After the store was restored or copied, cursors and bookmarks mean nothing", arguments: StoreKind.available)
    func epochs(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let owner = try await Self.owner(in: SQLDirectoryStore(database: database))
            let store = Self.replicas(over: database)[0]
            try await store.apply([Self.put(owner, 1, .replaced)])
            try await database.whenSettled()
            try await store.apply([Self.put(owner, 2, .replaced)])
            try await database.whenSettled()
            let bookmark = try await store.load().bookmark
            let before = try await store.feed(of: owner, after: nil, limit: 1)
            #expect(try await store.load().bookmark.epoch == bookmark.epoch)

            // As if it had been written by another server, which was far ahead.
            try await database.write(scope: .gateway, isolation: .serializable) { db in
                try db.execute("UPDATE store_epoch SET origin = 'elsewhere'")
                try db.execute("UPDATE retired_tokens SET fed_in = fed_in + 1000000000")
            }
            #expect(try await store.changes(since: bookmark) == nil)
            let contents = try await store.load()
            #expect(contents.bookmark.epoch != bookmark.epoch)
            #expect(contents.entries.map(\.key).sorted() == [1, 2])
            await expectError(.invalid, "begin again") {
                try await store.feed(of: owner, after: before.cursor, limit: 9)
            }
            #expect(try await store.changes(since: bookmark) == nil)
            try await store.apply([Self.put(owner, 3, .replaced)])
            try await database.whenSettled()
            #expect(try await store.feed(of: owner, after: nil, limit: 9).tokens.map(\.text) == ["1", "2", "3"])
            try await database.write(scope: .gateway, isolation: .serializable) { try StoreEpoch.renew($0) }
            #expect(try await store.load().bookmark.epoch != contents.bookmark.epoch)
        }
    }

    @Test("A file that takes another one's place has another epoch")
    func copiedFile() async throws {
        try await withTemporaryDirectory { directory in
            func epoch(_ path: String) async throws -> String {
                let database = try SQLiteDatabase(path: path)
                let epoch = try await SQLRetiredTokenStore(database: database).load().bookmark.epoch
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
        "A change that is committed late is missed by neither replicas nor readers of the feed",
        arguments: [1, 2, 20_000]
    )
    func lateCommit(changesPerPage: Int) async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let database = try await PostgreSQLDatabase(settings)
            defer { database.close() }
            let owner = try await Self.owner(in: SQLDirectoryStore(database: database))
            let stores = Self.replicas(over: database, changesPerPage: changesPerPage)
            try await stores[0].apply([Self.put(owner, 1, .replaced), Self.put(owner, 2)])
            try await database.whenSettled()
            let reader = Reader(stores[1], after: try await stores[1].load().bookmark)
            let start = try await stores[1].feed(of: owner, after: nil, limit: 9)
            #expect(start.tokens.map(\.text) == ["1"])

            // A replica that is held up before its COMMIT.
            let held = try PostgreSQLSession(
                PostgreSQLSettings(url: settings.url.replacing("user=gateway", with: "user=postgres"))
            )
            try held.run(
                script: """
                    BEGIN;
                    UPDATE retired_tokens SET state = 'unregistered', fed_in = gateway_transaction(), position = 1
                    WHERE tenant = 'acme' AND key = 2;
                    INSERT INTO retired_token_changes (tenant, key, changed_in, noted_at)
                    VALUES ('acme', 2, gateway_transaction(), gateway_time());
                    """
            )
            try await stores[0].apply([Self.put(owner, 3, .replaced)])
            // The other replica uses what it sees at once, and goes on from where nothing can come late.
            #expect(try await reader.news().changes.map(\.key) == [3])
            try await stores[0].apply([Self.put(owner, 4), Self.put(owner, 5)])
            #expect(try await reader.news().changes.map(\.key) == [3, 4, 5])
            #expect(try await reader.news().changes.map(\.key) == [3, 4, 5])
            let meanwhile = try await stores[1].feed(of: owner, after: start.cursor, limit: 9)
            #expect(meanwhile.tokens.isEmpty)
            #expect(meanwhile.cursor == start.cursor)

            try held.run(script: "COMMIT")
            try await database.whenSettled()
            let late = try await reader.news().changes
            #expect(late.map(\.key) == [2, 3, 4, 5])
            #expect(late.first?.entry?.state == .unregistered)
            #expect(try await reader.news().changes.isEmpty)
            let end = try await stores[1].feed(of: owner, after: meanwhile.cursor, limit: 9)
            #expect(end.tokens.map(\.text) == ["2", "3"])
        }
    }

    @Test("Replicas that move the same tokens at once feed each of them once")
    func sameMoves() async throws {
        try await withPostgreSQLDatabase { database in
            let owner = try await Self.owner(in: SQLDirectoryStore(database: database))
            let stores = Self.replicas(over: database)
            let keys = Array(UInt64(1)...200)
            try await stores[0].apply(keys.map { Self.put(owner, $0) })
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (store, order) in zip(stores, [keys, keys.reversed()]) {
                    group.addTask { try await store.apply([.move(owner, order, to: .unregistered)]) }
                }
                try await group.waitForAll()
            }
            try await database.whenSettled()
            let fed = try await stores[0].feed(of: owner, after: nil, limit: 500).tokens
            #expect(fed.count == 200)
            #expect(Set(fed.map(\.text)).count == 200)
        }
    }
}
