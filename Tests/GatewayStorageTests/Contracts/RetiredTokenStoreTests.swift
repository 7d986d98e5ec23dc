import GatewayCore
import Testing

/// What every store of retired tokens promises.
struct RetiredTokenStoreTests {
    private static let start = DirectoryFixtures.start

    private func owner(_ tenant: String = "acme", in directory: any DirectoryStore) async throws -> RetiredTokenOwner {
        let tenant = try DirectoryFixtures.tenant(tenant)
        try await directory.apply(.putTenant(tenant, salt: [1]))
        return RetiredTokenOwner(tenant: tenant.id, createdAt: tenant.createdAt)
    }

    private static func row(
        _ key: UInt64,
        _ state: RetiredTokenState = .pending,
        kind: RetiredTokenKind = .token,
        after seconds: Int = 0,
        replacement: UInt16 = 0
    ) -> RetiredTokenRow {
        let time = Self.start.advanced(by: .seconds(seconds))
        return RetiredTokenRow(
            key: key,
            kind: kind,
            state: state,
            since: time,
            reportedAt: time,
            replacement: replacement,
            sealed: [0, 255, UInt8(truncatingIfNeeded: key)]
        )
    }

    private static func put(_ owner: RetiredTokenOwner, _ row: RetiredTokenRow) -> RetiredTokenChange {
        .put(owner, row, keepsSince: false)
    }

    @Test("A new list is empty", arguments: StoreKind.available)
    func empty(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            #expect(try await store.load().entries.isEmpty)
            #expect(try await store.load().guards.isEmpty)
            let page = try await store.page(of: owner.tenant, after: 0, limit: 10)
            #expect(page == RetiredTokenPage(rows: [], position: 0, hasMore: false))
            #expect(try await store.trim(reportedBefore: Self.start, keeping: 0).isEmpty)
            try await store.apply([])
        }
    }

    @Test("Everything that is put is read as it was", arguments: StoreKind.available)
    func roundTrip(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            let rows = [
                Self.row(0, .unregistered), Self.row(.max, .replaced, after: 1, replacement: .max),
                Self.row(1 << 63, .replaced, kind: .installation, after: 2), Self.row(3, .pending, after: 3),
                Self.row(4, .suspected, after: 4),
            ]
            try await store.apply(rows.map { Self.put(owner, $0) })
            let page = try await store.page(of: owner.tenant, after: 0, limit: 10)
            #expect(page == RetiredTokenPage(rows: Array(rows.prefix(3)), position: 3, hasMore: false))
            let entries = rows.map { row in
                RetiredTokenEntry(
                    tenant: owner.tenant,
                    key: row.key,
                    state: row.state,
                    reportedAt: row.reportedAt,
                    replacement: row.replacement
                )
            }
            #expect(try await store.load().entries == entries)
        }
    }

    static let guards = [
        PurgeGuard(phase: .steady, history: .init(sent: 10.5, unregistered: 0.25), agedAt: Self.start, surplus: 3_400),
        PurgeGuard(
            phase: .jump(since: Self.start.advanced(by: .seconds(-5)), .init(sent: 1_000, unregistered: 950)),
            history: .init(sent: 1e12, unregistered: 1),
            agedAt: Self.start,
            surplus: 80_000
        ),
    ]

    @Test("A guard is kept as it was, and beside the list", arguments: StoreKind.available, Self.guards)
    func guardRoundTrip(kind: StoreKind, purgeGuard: PurgeGuard) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            try await store.apply([Self.put(owner, Self.row(1, .replaced)), .keepGuard(owner, purgeGuard)])
            #expect(try await store.load().guards == [owner.tenant: purgeGuard])
            try await store.apply([Self.put(owner, Self.row(2, .replaced)), .keepGuard(owner, Self.guards[0])])
            #expect(try await store.load().guards == [owner.tenant: Self.guards[0]])
            #expect(try await store.page(of: owner.tenant, after: 1, limit: 9).rows.map(\.key) == [2])
        }
    }

    @Test(
        "Places are given when an entry comes to be fed, in that order, and never again",
        arguments: StoreKind.available
    )
    func places(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            func fed(after position: Int = 0) async throws -> [UInt64] {
                try await store.page(of: owner.tenant, after: position, limit: 100).rows.map(\.key)
            }
            try await store.apply((1...4).map { Self.put(owner, Self.row($0)) })
            #expect(try await fed().isEmpty)
            try await store.apply([.move(owner, [3, 1], to: .unregistered), Self.put(owner, Self.row(9, .replaced))])
            #expect(try await fed() == [3, 1, 9])
            try await store.apply([.move(owner, [2], to: .suspected), .touch(owner, 3, at: Self.start)])
            #expect(try await fed() == [3, 1, 9])
            // The last one goes, and its place is not given to the next.
            try await store.apply([.remove(owner, 9), .move(owner, [4], to: .unregistered)])
            #expect(try await fed() == [3, 1, 4])
            #expect(try await fed(after: 3) == [4])
            // What dies again after it was alive is news.
            try await store.apply([.remove(owner, 3), Self.put(owner, Self.row(3))])
            #expect(try await fed() == [1, 4])
            try await store.apply([.move(owner, [3], to: .unregistered)])
            #expect(try await fed() == [1, 4, 3])
            // So is another replacement.
            try await store.apply([Self.put(owner, Self.row(1, .replaced, replacement: 5))])
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
            try await store.apply([Self.put(owner, Self.row(1, .suspected)), Self.put(owner, Self.row(2, .suspected))])
            try await store.apply([
                .put(owner, Self.row(1, .unregistered, after: 60), keepsSince: true),
                .put(owner, Self.row(2, .unregistered, after: 60), keepsSince: false),
                .put(owner, Self.row(3, .unregistered, after: 60), keepsSince: true),
            ])
            let later = Self.start.advanced(by: .seconds(60))
            let rows = try await store.page(of: owner.tenant, after: 0, limit: 9).rows
            #expect(rows.map(\.since) == [Self.start, later, later])
            #expect(rows.map(\.reportedAt) == [later, later, later])
        }
    }

    @Test("Pages under insertion neither skip nor repeat", arguments: StoreKind.available, [1, 2, 3, 7, 50])
    func paging(kind: StoreKind, limit: Int) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let owner = try await self.owner(in: directory)
            try await store.apply((0..<20).map { Self.put(owner, Self.row($0, .replaced)) })
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for key in UInt64(20)..<80 {
                        try await store.apply([
                            Self.put(owner, Self.row(key)), .move(owner, [key], to: .unregistered),
                        ])
                    }
                }
                var seen: [UInt64] = []
                var position = 0
                while seen.count < 80 {
                    try Task.checkCancellation()
                    let page = try await store.page(of: owner.tenant, after: position, limit: limit)
                    #expect(page.rows.count <= limit)
                    #expect(page.position == position + page.rows.count)
                    if page.hasMore { #expect(page.rows.count == limit) }
                    seen += page.rows.map(\.key)
                    position = page.position
                }
                #expect(seen == Array(0..<80))
                try await group.waitForAll()
            }
        }
    }

    @Test(
        "Tenants have lists of their own, and a tenant that is gone takes its list along",
        arguments: StoreKind.available
    )
    func tenants(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let acme = try await self.owner(in: directory)
            let other = try await self.owner("other", in: directory)
            try await store.apply([
                Self.put(acme, Self.row(1, .replaced)), Self.put(other, Self.row(1, .replaced, after: 5)),
                Self.put(other, Self.row(2, .replaced, after: 6)), .keepGuard(acme, Self.guards[1]),
            ])
            #expect(try await store.page(of: acme.tenant, after: 0, limit: 9).rows.map(\.key) == [1])
            #expect(try await store.page(of: other.tenant, after: 0, limit: 9).position == 2)
            try await directory.apply(.deleteTenant(acme.tenant))
            #expect(try await store.load().entries.map(\.tenant) == [other.tenant, other.tenant])
            #expect(try await store.load().guards.keys.contains(acme.tenant) == false)

            // What is still on its way for the old tenant is left out, whether or not there is a new one.
            try await store.apply([Self.put(acme, Self.row(7, .replaced)), Self.put(other, Self.row(8, .replaced))])
            var again = try DirectoryFixtures.tenant()
            again.createdAt = Self.start.advanced(by: .seconds(1))
            try await directory.apply(.putTenant(again, salt: [2]))
            try await store.apply([
                Self.put(acme, Self.row(7, .replaced)), .keepGuard(acme, Self.guards[1]),
                .move(acme, [1], to: .unregistered), .touch(acme, 1, at: Self.start), .remove(acme, 1),
            ])
            #expect(try await store.page(of: acme.tenant, after: 0, limit: 9).rows.isEmpty)
            #expect(try await store.load().guards.keys.contains(acme.tenant) == false)
            #expect(try await store.page(of: other.tenant, after: 0, limit: 9).rows.map(\.key) == [1, 2, 8])
        }
    }

    @Test("What is old is dropped, then the oldest of the tenant that has most", arguments: StoreKind.available)
    func trim(kind: StoreKind) async throws {
        try await kind.withRetiredTokenStore { store, directory in
            let acme = try await self.owner(in: directory)
            let other = try await self.owner("other", in: directory)
            try await store.apply((0..<10).map { Self.put(acme, Self.row($0, .replaced, after: Int($0))) })
            try await store.apply((0..<4).map { Self.put(other, Self.row($0, .replaced, after: Int($0))) })
            let old = try await store.trim(
                reportedBefore: Self.start.advanced(by: .seconds(2)),
                keeping: 100
            )
            #expect(old.map(\.key) == [0, 0, 1, 1])
            let excess = try await store.trim(reportedBefore: Self.start, keeping: 6)
            #expect(excess.map(\.key) == [2, 3, 4, 5])
            #expect(excess.allSatisfy { $0.tenant == acme.tenant })
            let more = try await store.trim(reportedBefore: Self.start, keeping: 2)
            #expect(more.count == 4)
            let left = try await store.load().entries
            #expect(Set(left.map(\.tenant)) == [acme.tenant, other.tenant])
            #expect(left.map(\.key).sorted() == [3, 9])
            #expect(try await store.trim(reportedBefore: Self.start, keeping: 2).isEmpty)
        }
    }
}
