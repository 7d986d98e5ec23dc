import GatewayCore
import GatewayTestKit
import Testing

@Suite("Administration", .timeLimit(.minutes(10)))
struct AdministrationTests {
    private let fixture: AdministrationFixture
    private var administration: Administration { self.fixture.administration }

    init() async throws {
        self.fixture = try await AdministrationFixture()
    }

    private func expect<Result>(
        _ code: GatewayError.Code,
        sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Result
    ) async {
        let error = await #expect(throws: GatewayError.self, sourceLocation: sourceLocation) { _ = try await body() }
        #expect(error?.code == code, sourceLocation: sourceLocation)
    }

    // MARK: Tenants

    @Test("An action on an unknown tenant is refused as not found and not recorded")
    func unknownTenant() async throws {
        try await self.fixture.run { _ in
            let nobody = try TenantID.sample("nobody")
            let credential = LegacyCredential(serverKey: Secret("k"), endpoint: nil)
            let draft = APIKey.Draft(name: "n", scopes: [.sendMessages])
            await self.expect(.notFound) { try await self.administration.deleteTenant(nobody, origin: .sample) }
            await self.expect(.notFound) {
                try await self.administration.put(credential, tenant: nobody, origin: .sample)
            }
            await self.expect(.notFound) {
                try await self.administration.createKey(draft, tenant: nobody, origin: .sample)
            }
            await self.expect(.notFound) {
                try await self.administration.putLimits(of: nobody, origin: .sample) { _ in LimitOverrides() }
            }
            await self.expect(.notFound) { try self.administration.keys(of: nobody) }
            #expect(self.fixture.records.isEmpty)
            #expect(self.fixture.witnessed.current.count == 1)
        }
    }

    // MARK: Credentials

    @Test("A tenant holds a service account beside a server key, and no record or row shows the private key")
    func serviceAccounts() async throws {
        try await self.fixture.run { acme in
            let legacy = LegacyCredential(serverKey: Secret("server key"), endpoint: nil)
            let first = try await self.administration.put(legacy, tenant: acme, origin: .sample)
            for version in 1...2 {
                let credential = try V1Credential.sample("acme-\(version)")
                let stored = try await self.administration.put(credential, tenant: acme, origin: .sample)
                #expect((stored.kind, stored.version) == (.v1, version))
                let profile = try #require(try self.fixture.profile())
                #expect(profile.v1Credential?.projectID == "acme-\(version)-push")
                #expect(profile.legacyCredential?.serverKey.revealText() == "server key")
                #expect(profile.storedCredentials == [first, stored])
                #expect(self.fixture.records.last?.object == "v1 version \(version) \(credential.fingerprint)")
            }
            #expect(self.fixture.records.count == 6)
            var dumped = ""
            dump(self.fixture.records, to: &dumped)
            dump(try await self.fixture.store.contents(), to: &dumped)
            #expect(!dumped.contains("PRIVATE KEY"))
            let nobody = try TenantID.sample("nobody")
            await self.expect(.notFound) {
                try await self.administration.put(V1Credential.sample(), tenant: nobody, origin: .sample)
            }
        }
    }

    // MARK: Refused rows

    @Test("A tenant whose row is refused can be deleted, and a key whose row is refused can be revoked")
    func refusedRows() async throws {
        try await self.fixture.run { acme in
            let (lost, key) = (try TenantID.sample("lost"), APIKey.generate())
            try await self.fixture.store.apply(.putTenant(.sample("lost"), salt: [1]))
            try await self.fixture.store.apply(.addKey(.sample(of: key)))
            try await self.fixture.store.damage(lost)
            try await self.fixture.store.damage(acme, key: key.id)
            try await self.fixture.directory.catchUp()
            await self.expect(.notFound) { try self.administration.keys(of: lost) }
            await self.expect(.notFound) {
                _ = try await self.administration.rotateKey(key.id, tenant: acme, overlapSeconds: 5, origin: .sample)
            }
            await self.expect(.notFound) {
                try await self.administration.revokeKey(key.id, tenant: lost, origin: .sample)
            }
            try await self.administration.revokeKey(key.id, tenant: acme, origin: .sample)
            try await self.administration.deleteTenant(lost, origin: .sample)
            #expect(self.fixture.directory.snapshot.refused.isEmpty)
            await self.expect(.notFound) { try await self.administration.deleteTenant(lost, origin: .sample) }
        }
    }

    // MARK: Importing

    private static let draft = APIKey.Draft(name: "shared", scopes: [.sendMessages], topicPrefixes: ["a", "b"])

    @Test("Simultaneous imports of a key all succeed, and exactly one reports it as new")
    func simultaneousImports() async throws {
        try await self.fixture.run { acme in
            let key = APIKey.generate()
            let administration = self.fixture.administration
            let news: [Bool] = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        try await administration.importKey(key, as: Self.draft, tenant: acme, origin: .sample).isNew
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(news.count { $0 } == 1)
            #expect(self.fixture.accepts(key))
        }
        #expect(self.fixture.records.allSatisfy { $0.outcome == .intent || $0.outcome == .done })
    }

    @Test("A repeated import with reordered topic prefixes returns the same key")
    func importedPrefixes() async throws {
        try await self.fixture.run { acme in
            let (key, administration) = (APIKey.generate(), self.fixture.administration)
            var draft = Self.draft
            let first = try await administration.importKey(key, as: draft, tenant: acme, origin: .sample)
            draft.topicPrefixes.reverse()
            let second = try await administration.importKey(key, as: draft, tenant: acme, origin: .sample)
            #expect(first.isNew && !second.isNew)
            #expect(second.0 == first.0)
        }
    }
}
