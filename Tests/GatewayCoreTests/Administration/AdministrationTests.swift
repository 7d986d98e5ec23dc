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

    @Test("A tenant is made, replaced and removed")
    func tenants() async throws {
        try await self.fixture.run { acme in
            #expect(try self.fixture.profile()?.tenant.displayName == "Acme")
            let draft = TenantDraft(
                displayName: "Acme Ltd",
                upstream: .v1,
                projectID: "acme-push",
                senderID: "42",
                isDisabled: true
            )
            let (tenant, isNew) = try await self.administration.put(draft, id: acme, origin: .sample)
            #expect(!isNew)
            #expect(tenant.createdAt == .sample)
            #expect(tenant.updatedAt == self.fixture.clock.now())
            #expect((tenant.projectID, tenant.senderID, tenant.isDisabled) == ("acme-push", "42", true))
            #expect(try self.fixture.profile()?.tenant == tenant)
            let globex = try TenantID.sample("globex")
            #expect(try await self.administration.put(draft, id: globex, origin: .sample).isNew)
            #expect(self.administration.tenants.map(\.id.text) == ["acme", "globex"])
            try await self.administration.deleteTenant(acme, origin: .sample)
            #expect(self.administration.tenants.map(\.id.text) == ["globex"])
            #expect(throws: GatewayError.self) { try self.administration.profile(of: acme) }
        }
    }

    @Test("A replaced tenant keeps its pseudonyms, one that was removed and made again does not")
    func salts() async throws {
        try await self.fixture.run { acme in
            let first = try #require(try self.fixture.profile()).pseudonymizer.pseudonym(of: "token")
            let draft = TenantDraft(displayName: "Acme", upstream: .legacy)
            _ = try await self.administration.put(draft, id: acme, origin: .sample)
            #expect(try self.fixture.profile()?.pseudonymizer.pseudonym(of: "token") == first)
            try await self.administration.deleteTenant(acme, origin: .sample)
            _ = try await self.administration.put(draft, id: acme, origin: .sample)
            #expect(try self.fixture.profile()?.pseudonymizer.pseudonym(of: "token") != first)
        }
    }

    @Test("Nothing can be done to a tenant that is not there, and nothing is recorded of it")
    func unknownTenant() async throws {
        try await self.fixture.run { _ in
            let nobody = try TenantID.sample("nobody")
            let credential = LegacyCredential(serverKey: Secret("k"), endpoint: nil)
            let draft = APIKeyDraft(name: "n", scopes: [.sendMessages])
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

    @Test("Each credential has the next version, and the next send uses it")
    func credentials() async throws {
        try await self.fixture.run { acme in
            for version in 1...3 {
                let credential = LegacyCredential(serverKey: Secret("key \(version)"), endpoint: "http://\(version)")
                let stored = try await self.administration.put(credential, tenant: acme, origin: .sample)
                #expect((stored.version, stored.fingerprint) == (version, credential.fingerprint))
                let profile = try #require(try self.fixture.profile())
                #expect(profile.legacyCredential?.serverKey.revealText() == "key \(version)")
                #expect(profile.legacyCredential?.endpoint == "http://\(version)")
                #expect(profile.storedCredentials == [stored])
            }
            let objects = self.fixture.records.compactMap(\.object)
            #expect(objects.count == 6)
            #expect(objects[4].hasPrefix("legacy version 3 "))
            #expect(!objects.contains { $0.contains("key 3") })
        }
    }

    @Test("Credentials that are put at once follow each other, each with a version of its own")
    func simultaneousCredentials() async throws {
        try await self.fixture.run { acme in
            let administration = self.fixture.administration
            let versions: [Int] = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        let credential = LegacyCredential(serverKey: Secret("key \(number)"), endpoint: nil)
                        return try await administration.put(credential, tenant: acme, origin: .sample).version
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(versions.sorted() == Array(1...8))
            #expect(try self.fixture.profile()?.legacyCredentialVersion == 8)
        }
    }

    @Test("A service account is sealed beside a server key, and both are recorded without their secrets")
    func serviceAccounts() async throws {
        try await self.fixture.run { acme in
            let legacy = LegacyCredential(serverKey: Secret("server key"), endpoint: nil)
            let first = try await self.administration.put(legacy, tenant: acme, origin: .sample)
            for version in 1...2 {
                let credential = try ServiceAccountCredential.sample("acme-\(version)")
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
            dump(self.fixture.store.contents, to: &dumped)
            #expect(!dumped.contains("PRIVATE KEY"))
            let nobody = try TenantID.sample("nobody")
            await self.expect(.notFound) {
                try await self.administration.put(ServiceAccountCredential.sample(), tenant: nobody, origin: .sample)
            }
        }
    }

    // MARK: Keys

    @Test("A key that is made is accepted, and only its digest is stored")
    func createKey() async throws {
        try await self.fixture.run { acme in
            let expiry = self.fixture.clock.now().advanced(by: .seconds(10))
            let draft = APIKeyDraft(
                name: "backend",
                scopes: [.sendMessages, .readAudit],
                topicPrefixes: ["news-"],
                expiresAt: expiry
            )
            let (key, record) = try await self.administration.createKey(draft, tenant: acme, origin: .sample)
            #expect(self.fixture.accepts(key))
            #expect((record.id, record.tenant, record.name) == (key.id, acme, "backend"))
            #expect((record.scopes, record.topicPrefixes) == ([.sendMessages, .readAudit], ["news-"]))
            #expect((record.createdAt, record.expiresAt) == (self.fixture.clock.now(), expiry))
            #expect(record.digest == KeyPepper.sample.digest(of: key))
            var dumped = ""
            dump(self.fixture.store.contents, to: &dumped)
            #expect(!dumped.contains(key.secret.revealText().split(separator: "_")[2]))
            self.fixture.clock.advance(by: .seconds(10))
            #expect(!self.fixture.accepts(key))
        }
    }

    // MARK: Refused rows

    @Test("A tenant whose row is refused can be deleted and made anew, a key whose row is refused be revoked")
    func refusedRows() async throws {
        try await self.fixture.run { acme in
            let lost = try TenantID.sample("lost")
            self.fixture.store.refuseRows([RefusedRow(.tenant, "lost", of: lost), RefusedRow(.key, "k", of: acme)])
            try await self.fixture.directory.catchUp()
            await self.expect(.notFound) { try self.administration.keys(of: lost) }
            await self.expect(.notFound) {
                _ = try await self.administration.rotateKey("k", tenant: acme, overlapSeconds: 5, origin: .sample)
            }
            await self.expect(.notFound) {
                try await self.administration.revokeKey("k", tenant: lost, origin: .sample)
            }
            try await self.administration.revokeKey("k", tenant: acme, origin: .sample)
            try await self.administration.deleteTenant(lost, origin: .sample)
            #expect(self.fixture.directory.snapshot.refused.isEmpty)
            await self.expect(.notFound) { try await self.administration.deleteTenant(lost, origin: .sample) }
        }
    }

    // MARK: Importing

    private static let draft = APIKeyDraft(name: "shared", scopes: [.sendMessages], topicPrefixes: ["a", "b"])

    @Test("Of two who import a key at once both succeed, and one of them is told that it is new")
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

    @Test("The order of topic prefixes makes no other key")
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
