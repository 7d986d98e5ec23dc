import GRDB
import GatewayCore
import Testing

@testable import GatewayStorage

/// What every store of retired tokens promises.
struct RetiredTokenStoreTests {
    private static let start = DirectoryFixtures.start

    private func owner(_ tenant: String = "acme", in directory: any DirectoryStore) async throws -> RetiredTokenOwner {
        let tenant = try DirectoryFixtures.tenant(tenant)
        try await directory.apply(.putTenant(tenant, salt: [1]))
        return Self.owner(of: tenant)
    }

    private static func owner(of tenant: Tenant) -> RetiredTokenOwner {
        RetiredTokenOwner(
            tenant: tenant.id,
            createdAt: tenant.createdAt,
            Pseudonymizer(auditKey: Secret("audit key"), tenantSalt: [1])
        )
    }

    private static func put(
        _ owner: RetiredTokenOwner,
        _ key: UInt64,
        _ state: RetiredToken.State = .pending,
        kind: RetiredToken.Kind = .token,
        after seconds: Int = 0,
        by replacement: String? = nil,
        _ bits: UInt16 = 0,
        keepsSince: Bool = false
    ) -> RetiredTokenChange {
        .put(
            owner,
            key,
            self.token(key, state, kind: kind, after: seconds, by: replacement),
            replacement: bits,
            keepsSince: keepsSince
        )
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

    /// The keys of what a tenant is fed.
    private static func fed(
        _ owner: RetiredTokenOwner,
        in store: any RetiredTokenStore,
        after cursor: RetiredTokenCursor? = nil
    ) async throws -> [UInt64] {
        try await store.feed(of: owner, after: cursor, limit: 100).tokens.compactMap { UInt64($0.text) }
    }

    @Test("A new list is empty", arguments: StoreKind.available)
    func empty(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            #expect(try await store.load().entries.isEmpty)
            #expect(try await store.load().detectors.isEmpty)
            let feed = try await store.feed(of: owner, after: nil, limit: 10)
            #expect(feed.tokens.isEmpty)
            #expect(!feed.hasMore)
            #expect(try await store.feed(of: owner, after: feed.cursor, limit: 10) == feed)
            #expect(try await store.trim(reportedBefore: Self.start, keeping: 0).isEmpty)
            try await store.apply([])
        }
    }

    @Test("Everything that is put is read as it was", arguments: StoreKind.available)
    func roundTrip(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            try await store.apply([
                Self.put(owner, 0, .unregistered), Self.put(owner, .max, .replaced, after: 1, by: "new", .max),
                Self.put(owner, 1 << 63, .replaced, kind: .installation, after: 2),
                Self.put(owner, 3, .pending, after: 3), Self.put(owner, 4, .suspected, after: 4),
            ])
            let fed = [
                Self.token(0, .unregistered), Self.token(.max, .replaced, after: 1, by: "new"),
                Self.token(1 << 63, .replaced, kind: .installation, after: 2),
            ]
            let feed = try await store.feed(of: owner, after: nil, limit: 10)
            #expect(feed == RetiredTokenFeed(tokens: fed, cursor: feed.cursor, hasMore: false))
            let known: [(UInt64, RetiredToken.State, UInt16)] = [
                (0, .unregistered, 0), (.max, .replaced, .max), (1 << 63, .replaced, 0), (3, .pending, 0),
                (4, .suspected, 0),
            ]
            let entries = known.enumerated()
                .map { index, known in
                    RetiredTokenEntry(
                        tenant: owner.tenant,
                        key: known.0,
                        state: known.1,
                        reportedAt: Self.start.advanced(by: .seconds(index)),
                        replacement: known.2
                    )
                }
            #expect(try await store.load().entries == entries)
        }
    }

    @Test("What does not open for its owner is left out of the feed, and counted", arguments: StoreKind.available)
    func unreadable(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            try await store.apply([Self.put(owner, 1, .replaced)])
            let stranger = RetiredTokenOwner(
                tenant: owner.tenant,
                createdAt: owner.createdAt,
                Pseudonymizer(auditKey: Secret("another key"), tenantSalt: [1])
            )
            let feed = try await store.feed(of: stranger, after: nil, limit: 10)
            #expect(feed == RetiredTokenFeed(tokens: [], cursor: feed.cursor, hasMore: false, unreadable: 1))
            #expect(try await Self.fed(owner, in: store, after: feed.cursor).isEmpty)
        }
    }

    static let detectors = [
        SpikeDetector(
            phase: .steady,
            history: .init(sent: 10.5, unregistered: 0.25),
            agedAt: Self.start,
            surplus: 3_400
        ),
        SpikeDetector(
            phase: .spike(since: Self.start.advanced(by: .seconds(-5)), .init(sent: 1_000, unregistered: 950)),
            history: .init(sent: 1e12, unregistered: 1),
            agedAt: Self.start,
            surplus: 80_000,
            transitions: 7
        ),
    ]

    @Test("A detector is kept as it was, and beside the list", arguments: StoreKind.available, Self.detectors)
    func detectorRoundTrip(kind: StoreKind, detector: SpikeDetector) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            try await store.apply([Self.put(owner, 1, .replaced), .save(owner, detector)])
            #expect(try await store.load().detectors == [owner.tenant: detector])
            let cursor = try await store.feed(of: owner, after: nil, limit: 9).cursor
            // What has been through less comes from a replica that does not know yet.
            try await store.apply([Self.put(owner, 2, .replaced), .save(owner, Self.detectors[0])])
            #expect(try await store.load().detectors == [owner.tenant: detector])
            let later = SpikeDetector(
                phase: .steady,
                history: .init(),
                agedAt: Self.start,
                surplus: 0,
                transitions: detector.transitions + 1
            )
            try await store.apply([.save(owner, later)])
            #expect(try await store.load().detectors == [owner.tenant: later])
            #expect(try await Self.fed(owner, in: store, after: cursor) == [2])
        }
    }

    @Test("Positions are given in the order of feeding, and never again", arguments: StoreKind.available)
    func places(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            func fed(after cursor: RetiredTokenCursor? = nil) async throws -> [UInt64] {
                try await Self.fed(owner, in: store, after: cursor)
            }
            try await store.apply((1...4).map { Self.put(owner, $0) })
            #expect(try await fed().isEmpty)
            try await store.apply([.move(owner, [3, 1], to: .unregistered), Self.put(owner, 9, .replaced)])
            #expect(try await fed() == [3, 1, 9])
            try await store.apply([.move(owner, [2], to: .suspected), .touch(owner, 3, at: Self.start)])
            #expect(try await fed() == [3, 1, 9])
            let end = try await store.feed(of: owner, after: nil, limit: 9).cursor
            // The last one goes, and its place is not given to the next.
            try await store.apply([.remove(owner, 9), .move(owner, [4], to: .unregistered)])
            #expect(try await fed() == [3, 1, 4])
            #expect(try await fed(after: end) == [4])
            // What dies again after it was alive is news.
            try await store.apply([.remove(owner, 3), Self.put(owner, 3)])
            #expect(try await fed() == [1, 4])
            try await store.apply([.move(owner, [3], to: .unregistered)])
            #expect(try await fed() == [1, 4, 3])
            // Another replica's hour has passed too.
            try await store.apply([.move(owner, [3], to: .unregistered), .move(owner, [3], to: .suspected)])
            #expect(try await fed() == [1, 4, 3])
            // So is another replacement.
            try await store.apply([Self.put(owner, 1, .replaced, by: "another", 5)])
            #expect(try await fed() == [4, 3, 1])
        }
    }

    @Test("What is told of tokens that are not there changes nothing", arguments: StoreKind.available)
    func absent(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            try await store.apply([
                .move(owner, [1, 2], to: .unregistered), .touch(owner, 1, at: Self.start), .remove(owner, 1),
            ])
            #expect(try await store.load().entries.isEmpty)
        }
    }

    @Test("The first report's time is kept where told to", arguments: StoreKind.available)
    func since(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            try await store.apply([Self.put(owner, 1, .suspected), Self.put(owner, 2, .suspected)])
            try await store.apply([
                Self.put(owner, 1, .unregistered, after: 60, keepsSince: true),
                Self.put(owner, 2, .unregistered, after: 60),
                Self.put(owner, 3, .unregistered, after: 60, keepsSince: true),
            ])
            let later = Self.start.advanced(by: .seconds(60))
            let tokens = try await store.feed(of: owner, after: nil, limit: 9).tokens
            #expect(tokens.map(\.since) == [Self.start, later, later])
            #expect(try await store.load().entries.map(\.reportedAt) == [later, later, later])
        }
    }

    @Test("Pages under insertion neither skip nor repeat", arguments: StoreKind.available, [1, 2, 3, 7, 50])
    func paging(kind: StoreKind, limit: Int) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            try await store.apply((0..<20).map { Self.put(owner, $0, .replaced) })
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for key in UInt64(20)..<80 {
                        try await store.apply([Self.put(owner, key), .move(owner, [key], to: .unregistered)])
                    }
                }
                var seen: [UInt64] = []
                var cursor: RetiredTokenCursor?
                while seen.count < 80 {
                    try Task.checkCancellation()
                    let page = try await store.feed(of: owner, after: cursor, limit: limit)
                    #expect(page.tokens.count <= limit)
                    if page.hasMore { #expect(page.tokens.count == limit) }
                    seen += page.tokens.compactMap { UInt64($0.text) }
                    cursor = page.cursor
                }
                #expect(seen == Array(0..<80))
                try await group.waitForAll()
            }
        }
    }

    @Test("Each tenant has a list of its own, which goes with it", arguments: StoreKind.available)
    func tenants(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let acme = try await self.owner(in: directory)
            let other = try await self.owner("other", in: directory)
            try await store.apply([
                Self.put(acme, 1, .replaced), Self.put(other, 1, .replaced, after: 5),
                Self.put(other, 2, .replaced, after: 6), .save(acme, Self.detectors[1]),
            ])
            #expect(try await Self.fed(acme, in: store) == [1])
            #expect(try await Self.fed(other, in: store) == [1, 2])
            try await directory.apply(.deleteTenant(acme.tenant))
            #expect(try await store.load().entries.map(\.tenant) == [other.tenant, other.tenant])
            #expect(try await store.load().detectors.keys.contains(acme.tenant) == false)

            // What is still on its way for the old tenant is left out, whether or not there is a new one.
            try await store.apply([Self.put(acme, 7, .replaced), Self.put(other, 8, .replaced)])
            var again = try DirectoryFixtures.tenant()
            again.createdAt = Self.start.advanced(by: .seconds(1))
            try await directory.apply(.putTenant(again, salt: [2]))
            try await store.apply([
                Self.put(acme, 7, .replaced), .save(acme, Self.detectors[1]),
                .move(acme, [1], to: .unregistered), .touch(acme, 1, at: Self.start), .remove(acme, 1),
            ])
            #expect(try await Self.fed(Self.owner(of: again), in: store).isEmpty)
            #expect(try await store.load().detectors.keys.contains(acme.tenant) == false)
            #expect(try await Self.fed(other, in: store) == [1, 2, 8])
        }
    }

    @Test("What is old is dropped, then the oldest of the tenant that has most", arguments: StoreKind.available)
    func trim(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let acme = try await self.owner(in: directory)
            let other = try await self.owner("other", in: directory)
            try await store.apply((0..<10).map { Self.put(acme, $0, .replaced, after: Int($0)) })
            try await store.apply((0..<4).map { Self.put(other, $0, .replaced, after: Int($0)) })
            let old = try await store.trim(reportedBefore: Self.start.advanced(by: .seconds(2)), keeping: 100)
            #expect(old.map(\.key) == [0, 0, 1, 1])
            let excess = try await store.trim(reportedBefore: Self.start, keeping: 6)
            #expect(excess.map(\.key) == [2, 3, 4, 5])
            #expect(excess.allSatisfy { $0.tenant == acme.tenant })
            #expect(try await store.trim(reportedBefore: Self.start, keeping: 2).count == 4)
            let left = try await store.load().entries
            #expect(Set(left.map(\.tenant)) == [acme.tenant, other.tenant])
            #expect(left.map(\.key).sorted() == [3, 9])
            #expect(try await store.trim(reportedBefore: Self.start, keeping: 2).isEmpty)
        }
    }

    // MARK: SQLite

    @Test("Entries, positions and the detector are there when a file is opened again, and no token in it is in clear")
    func reopened() async throws {
        try await withStorePath { path in
            let tenant = try DirectoryFixtures.tenant()
            let owner = Self.owner(of: tenant)
            let first = try SQLiteDatabase(path: path)
            try await SQLDirectoryStore(database: first).apply(.putTenant(tenant, salt: [1]))
            func put(_ key: UInt64) -> RetiredTokenChange { Self.put(owner, key, .replaced, by: "canary") }
            try await SQLRetiredTokenStore(database: first)
                .apply([put(81_818_181), put(2), .remove(owner, 2), .save(owner, Self.detectors[0])])
            try first.close()
            let database = try SQLiteDatabase(path: path)
            let store = SQLRetiredTokenStore(database: database)
            try await store.apply([put(3)])
            let feed = try await store.feed(of: owner, after: nil, limit: 9)
            #expect(feed.tokens.map(\.text) == ["81818181", "3"])
            #expect(feed.cursor.position == 3)
            #expect(try await store.load().detectors == [tenant.id: Self.detectors[0]])
            let stored = try await database.read {
                try String.fetchAll($0, sql: "SELECT hex(sealed) FROM retired_tokens").map { $0.lowercased() }
            }
            #expect(stored.count == 2)
            for text in ["canary", "81818181"] {
                #expect(stored.allSatisfy { !$0.contains(Hex.text(Array(text.utf8))) })
            }
            try database.close()
        }
    }

    @Test(
        "A value that the gateway would not have written is an error, not an end of the process",
        arguments: ["state = 'dead'", "kind = 'sms'", "replacement = 70000"]
    )
    func damaged(change: String) async throws {
        try await withSQLiteDatabase { database in
            let store = SQLRetiredTokenStore(database: database)
            let owner = try await self.owner(in: SQLDirectoryStore(database: database))
            try await store.apply([Self.put(owner, 1, .replaced)])
            try await database.write { try $0.execute(sql: "UPDATE retired_tokens SET \(change)") }
            await expectError(.storeUnavailable) {
                _ = try await store.feed(of: owner, after: nil, limit: 9)
                _ = try await store.load()
            }
        }
    }
}
