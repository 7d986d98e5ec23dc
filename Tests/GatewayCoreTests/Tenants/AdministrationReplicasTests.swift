import GatewayCore
import GatewayTestKit
import Testing

/// Operators' changes through several replicas that do not wait for each other.
@Suite("Administration through several replicas", .timeLimit(.minutes(10)))
struct AdministrationReplicasTests {
    private static let draft = Tenant.Draft(displayName: "Acme", upstream: .legacy)

    private let fixture: AdministrationFixture
    private var first: Administration { self.fixture.administration }

    init() async throws {
        self.fixture = try await AdministrationFixture()
    }

    private func expectConflict(_ body: () async throws -> Void) async {
        let error = await #expect(throws: GatewayError.self) { try await body() }
        #expect(error?.code == .conflict)
    }

    private func uid() async throws -> UInt64 {
        try await self.fixture.directory.catchUp()
        return try #require(try self.fixture.profile()).uid
    }

    @Test("A replica can replace a tenant of another replica before it has read that tenant", arguments: [true, false])
    func madeAndPut(isShared: Bool) async throws {
        let second = try await self.fixture.replica(isShared: isShared)
        try await self.fixture.run { acme in
            let salt = try await self.fixture.store.contents().salts[acme]
            let (tenant, isNew) = try await second.put(Self.draft, id: acme, origin: .sample)
            #expect(!isNew)
            #expect((tenant.createdAt, tenant.updatedAt) == (.sample, self.fixture.clock.now()))
            #expect(try await self.fixture.store.contents().tenants == [tenant])
            #expect(try await self.fixture.store.contents().salts[acme] == salt)
            let (uid, records) = (try await self.uid(), self.fixture.records)
            #expect(records.suffix(2).map(\.outcome) == [.intent, .done])
            #expect(records.suffix(2).map(\.tenantUID) == [uid, uid])
            // The late plan has its own pair of records, with the uid of a tenant that was never created.
            let late = records.dropLast(2)
            let outcomes: [AuditRecord.Outcome] = isShared ? [] : [.intent, .failed]
            #expect(late.map(\.outcome) == outcomes)
            #expect(late.compactMap(\.code) == (isShared ? [] : ["conflict"]))
            #expect(late.allSatisfy { $0.tenantUID != uid })
        }
    }

    @Test("A tenant that one replica deleted is created again by another", arguments: [true, false])
    func deletedAndPut(isShared: Bool) async throws {
        let second = try await self.fixture.replica(isShared: isShared)
        try await self.fixture.run { acme in
            _ = try await second.put(Self.draft, id: acme, origin: .sample)
            let salt = try await self.fixture.store.contents().salts[acme]
            let before = try await self.uid()
            self.fixture.clock.advance(by: .seconds(1))
            try await self.first.deleteTenant(acme, origin: .sample)
            let (tenant, isNew) = try await second.put(Self.draft, id: acme, origin: .sample)
            #expect(isNew)
            #expect(tenant.createdAt == self.fixture.clock.now())
            #expect(try await self.fixture.store.contents().salts[acme] != salt)
            let after = try await self.uid()
            #expect(after != before)
            #expect(self.fixture.records.suffix(2).map(\.outcome) == [.intent, .done])
            #expect(self.fixture.records.suffix(2).map(\.tenantUID) == [after, after])
        }
    }

    @Test("A credential put through one replica goes to the tenant that another recreated", arguments: [true, false])
    func madeAgain(isShared: Bool) async throws {
        let second = try await self.fixture.replica(isShared: isShared)
        try await self.fixture.run { acme in
            _ = try await second.put(Self.draft, id: acme, origin: .sample)
            try await self.first.deleteTenant(acme, origin: .sample)
            _ = try await self.first.put(Self.draft, id: acme, origin: .sample)
            let credential = LegacyCredential(serverKey: Secret("server key"), endpoint: nil)
            _ = try await second.put(credential, tenant: acme, origin: .sample)
            try await self.fixture.directory.catchUp()
            // It is sealed with the salt of the new tenant.
            #expect(try self.fixture.profile()?.legacyCredential?.serverKey.revealText() == "server key")
            let uid = try await self.uid()
            #expect(self.fixture.records.last?.tenantUID == uid)
        }
    }

    @Test("A key that one replica revoked can't be rotated by another", arguments: [true, false])
    func revokedAndRotated(isShared: Bool) async throws {
        let second = try await self.fixture.replica(isShared: isShared)
        try await self.fixture.run { acme in
            let draft = APIKey.Draft(name: "n", scopes: [.sendMessages])
            let (key, _) = try await self.first.createKey(draft, tenant: acme, origin: .sample)
            // The second replica has read the key.
            _ = try await second.put(Self.draft, id: acme, origin: .sample)
            try await self.first.revokeKey(key.id, tenant: acme, origin: .sample)
            await self.expectConflict {
                _ = try await second.rotateKey(key.id, tenant: acme, overlapSeconds: 5, origin: .sample)
            }
            #expect(try await self.fixture.store.contents().keys.map(\.id) == [key.id])
            #expect(try await self.fixture.store.contents().keys.first?.revokedAt != nil)
        }
    }

    @Test("A key that one replica revoked can't be imported by another, even after earlier imports")
    func revokedAndImported() async throws {
        let second = try await self.fixture.replica(isShared: true)
        try await self.fixture.run { acme in
            let (key, draft) = (APIKey.generate(), APIKey.Draft(name: "n", scopes: [.sendMessages]))
            #expect(try await self.first.importKey(key, as: draft, tenant: acme, origin: .sample).isNew)
            #expect(try await !second.importKey(key, as: draft, tenant: acme, origin: .sample).isNew)
            try await self.first.revokeKey(key.id, tenant: acme, origin: .sample)
            await self.expectConflict {
                _ = try await second.importKey(key, as: draft, tenant: acme, origin: .sample)
            }
        }
    }

    @Test("Credentials put through several replicas at once get consecutive versions")
    func simultaneousCredentials() async throws {
        let replicas = [
            self.first, try await self.fixture.replica(isShared: true), try await self.fixture.replica(isShared: false),
        ]
        try await self.fixture.run { acme in
            // The replica that does not read before it plans has seen the tenant.
            _ = try await replicas[2].put(Self.draft, id: acme, origin: .sample)
            let versions: [Int] = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<9 {
                    group.addTask {
                        let credential = LegacyCredential(serverKey: Secret("key \(number)"), endpoint: nil)
                        while true {
                            do throws(GatewayError) {
                                return try await replicas[number % 3]
                                    .put(credential, tenant: acme, origin: .sample)
                                    .version
                            } catch {
                                // Other replicas were first, five times in a row.
                                guard error.code == .conflict else { throw error }
                            }
                        }
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(versions.sorted() == Array(1...9))
            #expect(try await self.fixture.store.contents().credentials.map(\.version) == [9])
        }
    }

    @Test("A change that always conflicts is given up after five plans, each with an intent and an outcome")
    func restlessTenant() async throws {
        let second = try await self.fixture.replica(
            isShared: true,
            over: RestlessDirectoryStore(base: self.fixture.store)
        )
        try await self.fixture.run { acme async throws in
            await self.expectConflict { _ = try await second.put(Self.draft, id: acme, origin: .sample) }
            let pairs = Array(repeating: [AuditRecord.Outcome.intent, .failed], count: 5)
            #expect(self.fixture.records.map(\.outcome) == pairs.flatMap(\.self))
            // The tenant is free for the next change.
            await self.expectConflict { try await second.deleteTenant(acme, origin: .sample) }
            #expect(try await self.fixture.store.contents().tenants.count == 1)
        }
    }

    @Test("If the store can't be read, a change fails as unavailable, and nothing is recorded or changed")
    func unreadableStore() async throws {
        let second = try await self.fixture.replica(isShared: true)
        try await self.fixture.run { acme async throws in
            self.fixture.store.refuseReads()
            let error = await #expect(throws: GatewayError.self) {
                try await second.deleteTenant(acme, origin: .sample)
            }
            #expect(error?.code == .storeUnavailable)
            #expect(self.fixture.records.isEmpty)
            #expect(try await self.fixture.store.contents().tenants.count == 1)
        }
    }
}

/// A store in which another replica changes the tenant before each change.
private struct RestlessDirectoryStore: DirectoryStore {
    let base: TestDirectoryStore

    func load() async throws(GatewayError) -> Directory.Contents { try await self.base.load() }

    func apply(
        _ change: Directory.Change,
        plannedAt version: Directory.Version
    ) async throws(GatewayError) -> Directory.Contents? { nil }

    func changes(since version: Directory.Version) async throws(GatewayError) -> Directory.News {
        try await self.base.changes(since: version)
    }
}
