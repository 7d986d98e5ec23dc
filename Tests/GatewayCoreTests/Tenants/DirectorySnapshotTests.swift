import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("DirectorySnapshot")
struct DirectorySnapshotTests {
    private func snapshot(
        _ contents: Directory.Contents,
        masterKey: String = "master"
    ) async throws -> DirectorySnapshot {
        await DirectorySnapshot(contents, try self.opener(masterKey))
    }

    private func opener(_ masterKey: String = "master") throws -> DirectorySnapshot.Opener {
        .init(
            masterKey: try .sample(masterKey),
            auditKey: .sample("audit"),
            defaultLimits: LimitPolicies()
        )
    }

    private func credential(of tenant: String, version: Int, _ serverKey: String) throws -> StoredCredential {
        let credential = LegacyCredential(serverKey: Secret(serverKey), endpoint: "http://\(tenant)")
        return try self.sealed(credential, of: tenant, version: version)
    }

    private func sealed(
        _ credential: some TenantCredential,
        of tenant: String,
        version: Int
    ) throws -> StoredCredential {
        let (id, masterKey) = (try TenantID.sample(tenant), try MasterKey.sample())
        return try .init(sealing: credential, tenant: id, salt: [], version: version, under: masterKey, at: .sample)
    }

    @Test("The v1 project is the tenant's own, or else its service account's")
    func project() async throws {
        var contents = Directory.Contents()
        contents.tenants = [try .sample("acme")]
        contents.credentials = [try self.sealed(V1Credential.sample(), of: "acme", version: 1)]
        #expect(try await self.snapshot(contents).tenants[.sample("acme")]?.v1ProjectID == "acme-push")
        contents.tenants[0].projectID = "another"
        #expect(try await self.snapshot(contents).tenants[.sample("acme")]?.v1ProjectID == "another")
    }

    @Test("A missing or unusable credential or sender id is named, with the command that corrects it")
    func missingCredential() async throws {
        var contents = Directory.Contents()
        contents.tenants = [try .sample("acme")]
        func acme(masterKey: String = "master") async throws -> TenantProfile {
            try #require(try await self.snapshot(contents, masterKey: masterKey).tenants[.sample("acme")])
        }
        func expect(_ text: String?, _ words: String...) {
            for word in words { #expect(text?.contains(word) == true, "\(text ?? "")") }
        }
        expect(try await acme().missingCredential, "has no legacy credential", "credential put acme legacy")
        contents.credentials = [try self.credential(of: "acme", version: 1, "server-key")]
        #expect(try await acme().missingCredential == nil)
        expect(try await acme().missingForGroups, "sender id", "tenant set acme --sender-id")
        contents.tenants[0].senderID = "7"
        #expect(try await acme().missingForGroups == nil)
        expect(try await acme(masterKey: "another").missingForGroups, "does not open", "credential put acme legacy")
        contents.tenants[0].upstream = .v1
        expect(try await acme().missingCredential, "upstream is v1", "tenant set acme --upstream legacy")
        #expect(try await acme().missingCredential?.contains("server-key") == false)
    }

    @Test("The fingerprint is the start of the secret's SHA-256")
    func fingerprint() throws {
        // The SHA-256 of "abc" from FIPS 180-2, appendix B.1.
        #expect(try self.credential(of: "acme", version: 1, "abc").fingerprint == "ba7816bf8f01cfea")
    }

    @Test("The newest version of a credential is used, in any order of the rows")
    func newestVersion() async throws {
        var contents = Directory.Contents()
        contents.tenants = [try .sample("acme")]
        let versions = try [2, 3, 1].map { try self.credential(of: "acme", version: $0, "key \($0)") }
        contents.credentials = versions
        let acme = try #require(try await self.snapshot(contents).tenants[.sample("acme")])
        #expect(acme.legacyCredential?.serverKey.revealText() == "key 3")
    }

    @Test("A credential that does not open leaves its tenant without one and does not affect other tenants")
    func swappedRows() async throws {
        var contents = Directory.Contents()
        contents.tenants = [try .sample("acme"), try .sample("globex"), try .sample("initech")]
        var acme = try self.credential(of: "acme", version: 1, "key of acme")
        var globex = try self.credential(of: "globex", version: 1, "key of globex")
        let initech = try self.credential(of: "initech", version: 1, "key of initech")
        (acme.envelope, globex.envelope) = (globex.envelope, acme.envelope)
        contents.credentials = [acme, globex, initech]
        let snapshot = try await self.snapshot(contents)
        #expect(try #require(snapshot.tenants[.sample("acme")]).legacyCredential == nil)
        #expect(try #require(snapshot.tenants[.sample("globex")]).legacyCredential == nil)
        let opened = try #require(snapshot.tenants[.sample("initech")]).legacyCredential
        #expect(opened?.serverKey.revealText() == "key of initech")
        #expect(try #require(snapshot.tenants[.sample("acme")]).storedCredentials.count == 1)
        let refused = try ["acme", "globex"].map { Directory.RefusedRow(.credential, "legacy", of: try .sample($0)) }
        #expect(snapshot.refused == Set(refused))
    }

    @Test("A credential does not open for another endpoint or another salt of its tenant")
    func changedRows() async throws {
        var contents = Directory.Contents()
        contents.tenants = [try .sample("acme")]
        let sealed = try self.credential(of: "acme", version: 1, "key of acme")
        for endpoint in ["http://evil.example", "http://acm", nil] {
            contents.credentials = [sealed]
            contents.credentials[0].endpoint = endpoint
            let snapshot = try await self.snapshot(contents)
            #expect(try #require(snapshot.tenants[.sample("acme")]).legacyCredential == nil)
            #expect(snapshot.refused.count == 1)
        }
        contents.credentials = [sealed]
        #expect(try #require(try await self.snapshot(contents).tenants[.sample("acme")]).legacyCredential != nil)
        contents.salts = [try .sample("acme"): [1]]
        #expect(try #require(try await self.snapshot(contents).tenants[.sample("acme")]).legacyCredential == nil)
    }

    @Test("New contents of a tenant keep its unchanged credentials and the profiles of other tenants")
    func replacing() async throws {
        var contents = Directory.Contents()
        contents.tenants = try ["acme", "globex"].map { try .sample($0) }
        let v1 = try self.sealed(V1Credential.sample(), of: "acme", version: 1)
        contents.credentials = [try self.credential(of: "acme", version: 1, "first"), v1]
        let keys = try (0..<3).map { _ in try APIKey.Record.sample(of: .generate()) }
        let other = try APIKey.Record.sample(of: .generate(), tenant: "globex")
        contents.keys = keys + [other]
        let before = try await self.snapshot(contents)

        let id = try TenantID.sample("acme")
        var acme = Directory.Contents()
        acme.version.number = 1
        acme.tenants = [try .sample("acme")]
        acme.credentials = [try self.credential(of: "acme", version: 2, "second"), v1]
        acme.keys = Array(keys.prefix(1))
        let after = await before.replacing([id], with: acme, isComplete: true, try self.opener())
        #expect(try after.tenants[.sample("globex")] === before.tenants[.sample("globex")])
        #expect(after.principals[other.id] === before.principals[other.id])
        let (old, new) = (try #require(before.tenants[.sample("acme")]), try #require(after.tenants[.sample("acme")]))
        #expect(new.v1Credential === old.v1Credential)
        #expect(new.legacyCredential?.serverKey.revealText() == "second")
        #expect(new.load === old.load)
        #expect(Set(after.principals.keys) == [keys[0].id, other.id])
        #expect(after.principals[keys[0].id]?.profile === new)
        #expect(before.principals.count == 4)

        var nothing = Directory.Contents()
        nothing.version.number = 2
        let gone = await after.replacing([id], with: nothing, isComplete: true, try self.opener())
        #expect(gone.tenants.keys.map(\.text) == ["globex"])
        #expect(Array(gone.principals.keys) == [other.id])
    }

    @Test("Rows replace only contents from an earlier version of the same store")
    func versions() async throws {
        let (acme, globex) = (try TenantID.sample("acme"), try TenantID.sample("globex"))
        func rows(_ names: [String], at number: Int64, in origin: String = "") throws -> Directory.Contents {
            var rows = Directory.Contents()
            rows.version = Directory.Version(number, in: origin)
            rows.tenants = try names.map { try .sample($0) }
            rows.keys = try names.map { try .sample(of: .generate(), tenant: $0) }
            rows.refused = names.map { Directory.RefusedRow(.key, "refused at \(number)", of: TenantID($0)) }
            return rows
        }
        let (opener, both) = (try self.opener(), Set([acme, globex]))
        let first = try await self.snapshot(rows(["acme", "globex"], at: 5))

        // This replica deletes a tenant at 8, before it has read others' changes.
        let own = await first.replacing([acme], with: try rows([], at: 8), isComplete: false, opener)
        #expect(own.tenants.keys.map(\.self) == [globex])
        #expect((own.version(of: acme).number, own.version(of: globex).number) == (8, 5))
        let read = await own.replacing(both, with: try rows(["acme", "globex"], at: 7), isComplete: true, opener)
        #expect(read.tenants.keys.map(\.self) == [globex])
        #expect(read.refused.map(\.name) == ["refused at 7"])
        #expect((read.version(of: acme).number, read.version(of: globex).number) == (8, 7))

        // A read at 9 has all rows. A late read and the rows of another store change nothing.
        let last = await read.replacing([acme], with: try rows(["acme"], at: 9), isComplete: true, opener)
        #expect(last.tenants.count == 2)
        #expect((last.version(of: acme).number, last.version(of: globex).number) == (9, 9))
        #expect(await last.replacing([acme], with: try rows([], at: 8), isComplete: false, opener) === last)
        let elsewhere = try rows([], at: 10, in: "elsewhere")
        #expect(await last.replacing([acme], with: elsewhere, isComplete: true, opener) === last)
    }

    @Test("Tenants have pseudonyms and buckets of their own")
    func pseudonyms() async throws {
        var contents = Directory.Contents()
        contents.tenants = [try .sample("acme"), try .sample("globex")]
        contents.salts = [try .sample("acme"): [1], try .sample("globex"): [2]]
        let snapshot = try await self.snapshot(contents)
        let acme = try #require(snapshot.tenants[.sample("acme")])
        let globex = try #require(snapshot.tenants[.sample("globex")])
        #expect(acme.pseudonymizer.pseudonym(of: "token") != globex.pseudonymizer.pseudonym(of: "token"))
        #expect(acme.limitKey != globex.limitKey)
    }
}
