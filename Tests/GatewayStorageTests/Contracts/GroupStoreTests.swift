import FCMModel
import GatewayCore
import GatewayStorage
import Testing

extension GroupStore {
    fileprivate func group(withKey key: String, of tenant: TenantID) async throws(GatewayError) -> DeviceGroup? {
        try await self.groups(withKeys: [key], of: tenant).first.flatMap(\.self)
    }
}

struct GroupStoreTests {
    private static func group(
        _ name: String = "family",
        tenant: String = "acme",
        key: String? = "key-1",
        version: Int = 0
    ) throws -> DeviceGroup {
        DeviceGroup(
            tenant: try #require(TenantID(tenant)),
            tenantCreatedAt: DirectoryFixtures.start,
            name: name,
            upstreamName: "\(tenant).\(name)",
            key: key,
            members: [
                DeviceGroup.Member("cK:APA91b_\"x\"/+", .member), DeviceGroup.Member("b", .adding),
                DeviceGroup.Member("a", .removing),
            ],
            isComplete: true,
            version: version,
            updatedAt: DirectoryFixtures.start
        )
    }

    @Test("A group is read back unchanged by name and by key", arguments: StoreKind.available)
    func roundTrip(kind: StoreKind) async throws {
        try await kind.withGroupStore { store in
            for name in ["family", "größe/ 😀 %2F'\"--", "FAMILY"] {
                var group = try Self.group(name, key: "key of \(name)")
                group.version = try await store.save(group)
                #expect(group.version == 1)
                #expect(try await store.group(named: name, of: group.tenant) == group)
                #expect(try await store.group(withKey: "key of \(name)", of: group.tenant) == group)
            }
        }
    }

    @Test("The longest name and key that a request may have can be stored", arguments: StoreKind.available)
    func longest(kind: StoreKind) async throws {
        // PostgreSQL compresses an index entry before it checks the size, so these texts are random.
        func text(_ length: Int) -> String {
            String((0..<length).compactMap { _ in "abcdefghijklmnopqrstuvwxyz0123456789".randomElement() })
        }
        let (name, key) = (text(ValueRules.maxGroupNameBytes), text(ValueRules.maxGroupKeyBytes))
        #expect(ValueRules.isGroupName(name) && ValueRules.isGroupKey(key))
        try await kind.withGroupStore { store in
            let group = try Self.group(name, key: key)
            _ = try await store.save(group)
            #expect(try await store.group(withKey: key, of: group.tenant)?.name == name)
        }
    }

    @Test("Current and former keys are listed until their group is removed", arguments: StoreKind.available)
    func everyKey(kind: StoreKind) async throws {
        try await kind.withGroupStore { store in
            var group = try Self.group()
            group.version = try await store.save(group)
            group.key = "key-2"
            group.version = try await store.save(group)
            func keys() async throws -> [String] {
                try await store.keys(since: nil).keys.map { "\($0.tenant.text) \($0.key)" }.sorted()
            }
            #expect(try await keys() == ["acme key-1", "acme key-2"])
            try await store.remove(group)
            #expect(try await keys() == [])
        }
    }

    @Test("A key stored after a bookmark is among the keys since that bookmark", arguments: StoreKind.available)
    func newKeys(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let acme = try DirectoryFixtures.tenant()
            try await SQLDirectoryStore(database: database).apply(.putTenant(acme, salt: [1]))
            let store = SQLGroupStore(database: database)
            var group = try Self.group(key: "old")
            group.version = try await store.save(group)
            try await database.whenSettled()
            let before = try await store.keys(since: nil)
            #expect(before.keys.map(\.key) == ["old"])
            group.key = "new"
            _ = try await store.save(group)
            let since = try await store.keys(since: before.bookmark)
            #expect(since.keys.map(\.key).contains("new"))
            #expect(since.bookmark.horizon >= before.bookmark.horizon)
        }
    }

    @Test("After a failover all keys are read, even with a bookmark that is ahead", arguments: StoreKind.available)
    func otherEpoch(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let acme = try DirectoryFixtures.tenant()
            try await SQLDirectoryStore(database: database).apply(.putTenant(acme, salt: [1]))
            let store = SQLGroupStore(database: database)
            _ = try await store.save(try Self.group(key: "first"))
            try await database.write(scope: .gateway, isolation: .serializable) { try StoreEpoch.renew($0) }
            var before = try await store.keys(since: nil).bookmark
            before.horizon += 1_000_000_000
            #expect(try await store.keys(since: before).keys.isEmpty)
            try await database.write(scope: .gateway, isolation: .serializable) { try StoreEpoch.renew($0) }
            let anew = try await store.keys(since: before)
            #expect(anew.keys.map(\.key) == ["first"])
            #expect(anew.bookmark.epoch != before.epoch)
            #expect(anew.bookmark.horizon < before.horizon)
        }
    }

    // MARK: Leases

    /// The stores of two replicas with leases of this duration; a negative lease has already ended.
    private static func replicas(
        over database: any SQLDatabase,
        lease: Duration,
        attemptTimeout: Duration = .zero
    ) -> (one: SQLGroupStore, two: SQLGroupStore) {
        let terms = LeaseTerms(duration: lease, attemptTimeout: { attemptTimeout })
        return (
            SQLGroupStore(database: database, owner: ReplicaID(text: "one"), leases: terms),
            SQLGroupStore(database: database, owner: ReplicaID(text: "two"), leases: terms)
        )
    }

    @Test("One replica at a time holds a group's lease, until it releases it", arguments: StoreKind.available)
    func lease(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let acme = try DirectoryFixtures.tenant()
            let (one, two) = Self.replicas(over: database, lease: .seconds(3_600))
            await expectError(.notFound) { try await one.acquire("family", of: acme.id) }
            try await SQLDirectoryStore(database: database).apply(.putTenant(acme, salt: [1]))
            #expect(try await one.acquire("family", of: acme.id) == .granted)
            #expect(try await two.acquire("family", of: acme.id) == .held)
            #expect(try await two.acquire("other", of: acme.id) == .granted)
            #expect(try await two.renew("family", of: acme.id) == false)
            try await two.release("family", of: acme.id)
            #expect(try await one.renew("family", of: acme.id))
            await expectError(.conflict) { try await two.save(try Self.group()) }
            var group = try Self.group()
            group.version = try await one.save(group)
            try await one.release("family", of: acme.id)
            #expect(try await two.acquire("family", of: acme.id) == .granted)
            let late = group
            await expectError(.conflict) { try await one.save(late) }
            await expectError(.conflict) { try await one.remove(late) }
            try await two.remove(group)
        }
    }

    @Test("A group is taken over only after its lease and one attempt's timeout", arguments: StoreKind.available)
    func takeOver(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let acme = try DirectoryFixtures.tenant()
            try await SQLDirectoryStore(database: database).apply(.putTenant(acme, salt: [1]))
            let patient = Self.replicas(over: database, lease: .seconds(-10), attemptTimeout: .seconds(3_600))
            let (one, two) = Self.replicas(over: database, lease: .seconds(-10))
            #expect(try await one.acquire("family", of: acme.id) == .granted)
            #expect(try await patient.two.acquire("family", of: acme.id) == .held)
            #expect(try await two.acquire("family", of: acme.id) == .takenOver)
            #expect(try await one.renew("family", of: acme.id) == false)
            await expectError(.conflict) { try await one.save(try Self.group()) }
            #expect(try await two.save(try Self.group()) == 1)
        }
    }

    @Test("A group without a key and without members can be stored", arguments: StoreKind.available)
    func bare(kind: StoreKind) async throws {
        try await kind.withGroupStore { store in
            var group = try Self.group(key: nil)
            group.members = []
            group.isComplete = false
            group.version = try await store.save(group)
            #expect(try await store.group(named: group.name, of: group.tenant) == group)
            #expect(try await store.group(withKey: "", of: group.tenant) == nil)
        }
    }

    @Test("Another tenant's groups can't be seen, replaced or removed", arguments: StoreKind.available)
    func tenants(kind: StoreKind) async throws {
        try await kind.withGroupStore { store in
            let other = try #require(TenantID("other"))
            var group = try Self.group()
            group.version = try await store.save(group)
            #expect(try await store.group(named: group.name, of: other) == nil)
            #expect(try await store.group(withKey: "key-1", of: other) == nil)
            #expect(try await store.names(of: other, after: nil, limit: 10) == [])
            let foreign = try Self.group(tenant: "other", version: 1)
            await #expect(throws: GatewayError.self) { try await store.remove(foreign) }
            await #expect(throws: GatewayError.self) { _ = try await store.save(foreign) }
            #expect(try await store.save(try Self.group(tenant: "other")) == 1)
            #expect(try await store.group(named: group.name, of: group.tenant) == group)
        }
    }

    @Test("A group is replaced or removed only if its version is still the same", arguments: StoreKind.available)
    func versions(kind: StoreKind) async throws {
        try await kind.withGroupStore { store in
            var group = try Self.group()
            group.version = try await store.save(group)
            await expectError(.conflict) { try await store.save(Self.group()) }
            let stale = group
            group.key = "key-2"
            group.version = try await store.save(group)
            #expect(group.version == 2)
            await expectError(.conflict) { try await store.save(stale) }
            await expectError(.conflict) { try await store.remove(stale) }
            #expect(try await store.group(named: group.name, of: group.tenant) == group)
            try await store.remove(group)
            #expect(try await store.group(named: group.name, of: group.tenant) == nil)
            await expectError(.conflict) { try await store.remove(group) }
            await expectError(.conflict) { try await store.save(group) }
        }
    }

    @Test("A group is found by every key that it ever had, until it is removed", arguments: StoreKind.available)
    func keys(kind: StoreKind) async throws {
        try await kind.withGroupStore { store in
            var group = try Self.group()
            for key in ["key-1", "key-2", nil, "key-3"] {
                group.key = key
                group.version = try await store.save(group)
            }
            for key in ["key-1", "key-2", "key-3"] {
                #expect(try await store.group(withKey: key, of: group.tenant) == group)
            }
            // FCM would not give one key to two groups; if it does, the last write wins.
            var other = try Self.group("other", key: "key-1")
            other.version = try await store.save(other)
            #expect(try await store.group(withKey: "key-1", of: group.tenant) == other)
            try await store.remove(group)
            #expect(try await store.group(withKey: "key-1", of: group.tenant) == other)
            for key in ["key-2", "key-3"] {
                #expect(try await store.group(withKey: key, of: group.tenant) == nil)
            }
            group.version = 0
            group.key = "key-4"
            _ = try await store.save(group)
            #expect(try await store.group(withKey: "key-2", of: group.tenant) == nil)
        }
    }

    @Test("Up to 20 keys are looked up at once, with results in the keys' order", arguments: StoreKind.available)
    func manyKeys(kind: StoreKind) async throws {
        try await kind.withGroupStore { store in
            var groups: [DeviceGroup] = []
            for number in 0..<3 {
                var group = try Self.group("g\(number)", key: "K-\(number)")
                group.version = try await store.save(group)
                group.key = "later K-\(number)"
                group.version = try await store.save(group)
                groups.append(group)
            }
            _ = try await store.save(try Self.group("g0", tenant: "other", key: "foreign"))
            let acme = groups[0].tenant
            #expect(try await store.groups(withKeys: [], of: acme) == [])
            // Compared as characters, the Kelvin sign equals a K.
            let keys = ["K-2", "none", "later K-0", "\u{212A}-1", "K-2", "foreign", "", "K-1"]
            let found = [groups[2], nil, groups[0], nil, groups[2], nil, nil, groups[1]]
            #expect(try await store.groups(withKeys: keys, of: acme) == found)
            let all = (0..<20).map { "K-\($0)" }
            #expect(try await store.groups(withKeys: all, of: acme) == groups + Array(repeating: nil, count: 17))
        }
    }

    @Test("Of concurrent writers of one version exactly one succeeds", arguments: StoreKind.available)
    func race(kind: StoreKind) async throws {
        try await kind.withGroupStore { store in
            let group = try Self.group()
            let successes = await withTaskGroup(of: Bool.self) { tasks in
                for _ in 0..<20 {
                    tasks.addTask { (try? await store.save(group)) != nil }
                }
                return await tasks.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(successes == 1)
        }
    }

    @Test("Names are listed in the order of their bytes, page by page", arguments: StoreKind.available)
    func names(kind: StoreKind) async throws {
        try await kind.withGroupStore { store in
            let tenant = try #require(TenantID("acme"))
            #expect(try await store.names(of: tenant, after: nil, limit: 10) == [])
            for name in ["b", "ä", "a", "Z", "a b"] {
                _ = try await store.save(try Self.group(name, key: nil))
            }
            #expect(try await store.names(of: tenant, after: nil, limit: 10) == ["Z", "a", "a b", "b", "ä"])
            #expect(try await store.names(of: tenant, after: nil, limit: 2) == ["Z", "a"])
            #expect(try await store.names(of: tenant, after: "a", limit: 2) == ["a b", "b"])
            #expect(try await store.names(of: tenant, after: "ä", limit: 2) == [])
        }
    }

    @Test("A deleted tenant's group can't be stored or removed under a new tenant", arguments: StoreKind.available)
    func lives(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let (directory, store) = (SQLDirectoryStore(database: database), SQLGroupStore(database: database))
            var tenant = try DirectoryFixtures.tenant()
            try await directory.apply(.putTenant(tenant, salt: [1]))
            var earlier = try Self.group()
            earlier.version = try await store.save(earlier)
            try await directory.apply(.deleteTenant(tenant.id))
            #expect(try await store.group(named: "family", of: tenant.id) == nil)
            tenant.createdAt = tenant.createdAt.advanced(by: .seconds(1))
            try await directory.apply(.putTenant(tenant, salt: [2]))

            for group in [try Self.group(), earlier] {
                await expectError(.notFound) { try await store.save(group) }
            }
            #expect(try await store.group(named: "family", of: tenant.id) == nil)

            var later = DeviceGroup(
                tenant: tenant.id,
                tenantCreatedAt: tenant.createdAt,
                name: "family",
                upstreamName: "family",
                updatedAt: DirectoryFixtures.start
            )
            later.version = try await store.save(later)
            #expect(later.version == earlier.version)
            await #expect(throws: GatewayError.self) { try await store.save(earlier) }
            await #expect(throws: GatewayError.self) { try await store.remove(earlier) }
            #expect(try await store.group(named: "family", of: tenant.id) == later)
        }
    }
}
