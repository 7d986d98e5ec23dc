import Foundation
import GatewayCore
import Testing

@testable import GatewayStorage

/// The contract of every directory store.
struct DirectoryStoreTests {
    @Test("Everything that is stored is loaded unchanged", arguments: StoreKind.available)
    func roundTrip(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            let tenant = try DirectoryFixtures.tenant()
            var other = try DirectoryFixtures.tenant("other", name: "Ölmühle")
            other.upstream = .v1
            other.projectID = nil
            other.senderID = "123456789012"
            other.isDisabled = true
            other.clientNames = ["orders.internal", "spiffe://example.org/a"].compactMap { ClientName($0) }
            let credential = try DirectoryFixtures.credential()
            let key = try DirectoryFixtures.key()
            var dead = try DirectoryFixtures.key("k2", tenant: "other")
            dead.scopes = []
            dead.topicPrefixes = []
            dead.expiresAt = DirectoryFixtures.start.advanced(by: .seconds(1))
            dead.revokedAt = DirectoryFixtures.start.advanced(by: .seconds(2))
            let limits = LimitOverrides(
                tenant: [try DirectoryFixtures.policy(rate: 5), try DirectoryFixtures.policy(rate: 7)],
                deviceCollapsible: [],
                topic: [try DirectoryFixtures.policy(rate: 9)]
            )

            try await store.apply(.putTenant(other, salt: [9]))
            try await store.apply(.putTenant(tenant, salt: [1, 0, 255]))
            try await store.apply(.putCredential(credential))
            try await store.apply(.putKey(dead))
            try await store.apply(.putKey(key))
            try await store.apply(.putLimits(tenant.id, limits))

            let contents = try await store.load()
            #expect(contents.tenants == [tenant, other])
            #expect(contents.salts == [tenant.id: [1, 0, 255], other.id: [9]])
            #expect(contents.credentials == [credential])
            #expect(contents.keys == [key, dead])
            #expect(contents.limits == [tenant.id: limits])
        }
    }

    @Test("Each change raises the version, and readers get the tenants changed since", arguments: StoreKind.available)
    func versions(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            let origin = try await store.load().version.origin
            func changed(since version: Int64, in other: String? = nil) async throws -> [String: Int]? {
                switch try await store.changes(since: Directory.Version(version, in: other ?? origin)) {
                case .none: return [:]
                case .all: return nil
                case .tenants(let changed, let contents):
                    #expect(contents.version == (try await store.load().version))
                    #expect(changed.isSuperset(of: contents.tenants.map(\.id)))
                    #expect(changed.isSuperset(of: contents.keys.map(\.tenant)))
                    return Dictionary(uniqueKeysWithValues: changed.map { ($0.text, contents.of([$0]).tenants.count) })
                }
            }
            #expect(try await store.load().version.number == 0)
            #expect(try await changed(since: 0) == [:])
            let tenant = try DirectoryFixtures.tenant()
            #expect(try await store.apply(.putTenant(tenant, salt: [1])).version.number == 1)
            #expect(try await store.apply(.putTenant(DirectoryFixtures.tenant("other"), salt: [2])).version.number == 2)
            #expect(try await store.apply(.putKey(DirectoryFixtures.key())).version.number == 3)
            #expect(try await changed(since: 0) == ["acme": 1, "other": 1])
            #expect(try await changed(since: 2) == ["acme": 1])
            await expectError(.notFound) { try await store.apply(.deleteTenant(try #require(TenantID("none")))) }
            #expect(try await changed(since: 3) == [:])
            #expect(try await store.apply(.deleteTenant(tenant.id)).version.number == 4)
            #expect(try await changed(since: 3) == ["acme": 0])
            // A reader ahead of the store, or of another store, gets everything.
            #expect(try await changed(since: 5) == nil)
            #expect(try await changed(since: 4, in: "elsewhere") == nil)
            #expect(try await changed(since: 4) == [:])
            #expect(try await store.load().version.number == 4)
        }
    }

    @Test("A change is not made if its tenant has changed since it was planned", arguments: StoreKind.available)
    func staleChanges(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            let origin = try await store.load().version.origin
            func isMade(_ change: Directory.Change, at version: Int64, in other: String? = nil) async throws -> Bool {
                let version = Directory.Version(version, in: other ?? origin)
                return try await store.apply(change, plannedAt: version) != nil
            }
            let (tenant, key) = (try DirectoryFixtures.tenant(), try DirectoryFixtures.key())
            let other = try DirectoryFixtures.tenant("other")
            // A plan may rely on a tenant's absence.
            #expect(try await isMade(.putTenant(tenant, salt: [1]), at: 0))
            #expect(try await !isMade(.putTenant(tenant, salt: [2]), at: 0))
            #expect(try await isMade(.putTenant(other, salt: [3]), at: 0))
            #expect(try await isMade(.addKey(key), at: 1))
            let new = try DirectoryFixtures.key("new")
            #expect(try await !isMade(.rotateKey(new: new, old: key), at: 2))
            #expect(try await !isMade(.deleteTenant(tenant.id), at: 2))
            #expect(try await isMade(.deleteTenant(tenant.id), at: 3))
            // The tenant no longer exists, and these changes were planned for the old one.
            #expect(try await !isMade(.putTenant(tenant, salt: [1]), at: 3))
            #expect(try await !isMade(.addKey(key), at: 3))
            #expect(try await isMade(.putTenant(tenant, salt: [4]), at: 4))
            #expect(try await !isMade(.putLimits(tenant.id, LimitOverrides(topic: [])), at: 3))
            #expect(try await !isMade(.putLimits(tenant.id, LimitOverrides(topic: [])), at: 5, in: "elsewhere"))
            let contents = try await store.load()
            #expect(contents.version.number == 5)
            #expect(contents.salts == [tenant.id: [4], other.id: [3]])
            #expect(contents.keys.isEmpty && contents.limits.isEmpty)
        }
    }

    @Test("Only one of a tenant's changes that were planned at one version is made", arguments: StoreKind.available)
    func simultaneousChanges(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            let planned = try await store.apply(.putTenant(DirectoryFixtures.tenant(), salt: [1])).version
            let made: Int = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<3 {
                    let key = try DirectoryFixtures.key("k\(number)")
                    group.addTask { try await store.apply(.addKey(key), plannedAt: planned) != nil }
                }
                return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(made == 1)
            let contents = try await store.load()
            #expect((contents.keys.count, contents.version.number) == (1, planned.number + 1))
        }
    }

    @Test("Concurrent changes of many tenants are all made", arguments: StoreKind.available)
    func manyTenants(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<16 {
                    let tenant = try DirectoryFixtures.tenant("tenant-\(number)")
                    group.addTask { try await store.apply(.putTenant(tenant, salt: [UInt8(number)])) }
                }
                try await group.waitForAll()
            }
            let contents = try await store.load()
            #expect((contents.tenants.count, contents.version.number) == (16, 16))
        }
    }

    @Test("A replaced tenant keeps its salt and its keys", arguments: StoreKind.available)
    func replacedTenant(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            var tenant = try DirectoryFixtures.tenant()
            try await store.apply(.putTenant(tenant, salt: [1, 2, 3]))
            try await store.apply(.putKey(try DirectoryFixtures.key()))
            tenant.displayName = "Acme & Sons"
            tenant.clientNames = ["orders.internal"].compactMap { ClientName($0) }
            tenant.isDisabled = true
            tenant.updatedAt = DirectoryFixtures.start.advanced(by: .seconds(5))
            try await store.apply(.putTenant(tenant, salt: [4, 5, 6]))

            let contents = try await store.load()
            #expect(contents.tenants == [tenant])
            #expect(contents.salts == [tenant.id: [1, 2, 3]])
            #expect(contents.keys.count == 1)
        }
    }

    @Test("Deleting a tenant deletes all of its data and nothing else", arguments: StoreKind.available)
    func deletedTenant(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            let limits = LimitOverrides(device: [try DirectoryFixtures.policy(rate: 1)])
            for id in ["acme", "other"] {
                let tenant = try DirectoryFixtures.tenant(id)
                try await store.apply(.putTenant(tenant, salt: Array(id.utf8)))
                try await store.apply(.putCredential(try DirectoryFixtures.credential(id)))
                try await store.apply(.putKey(try DirectoryFixtures.key("key-of-\(id)", tenant: id)))
                try await store.apply(.putLimits(tenant.id, limits))
            }
            let acme = try #require(TenantID("acme"))
            let other = try #require(TenantID("other"))
            try await store.apply(.deleteTenant(acme))

            let contents = try await store.load()
            #expect(contents.tenants.map(\.id) == [other])
            #expect(contents.salts == [other: Array("other".utf8)])
            #expect(contents.credentials.map(\.tenant) == [other])
            #expect(contents.keys.map(\.id) == ["key-of-other"])
            #expect(contents.limits == [other: limits])

            // A later tenant of the same name has nothing of the old one.
            try await store.apply(.putTenant(try DirectoryFixtures.tenant(), salt: [7]))
            let later = try await store.load()
            #expect(later.salts[acme] == [7])
            #expect(later.limits[acme] == nil)
            #expect(!later.keys.contains { $0.tenant == acme })
        }
    }

    @Test("A change of a missing tenant is refused", arguments: StoreKind.available)
    func missingTenant(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            let id = try #require(TenantID("acme"))
            await expectError(.notFound) { try await store.apply(.deleteTenant(id)) }
            await expectError(.notFound) { try await store.apply(.putCredential(try DirectoryFixtures.credential())) }
            await expectError(.notFound) { try await store.apply(.deleteCredential(.v1, id)) }
            await expectError(.notFound) { try await store.apply(.putKey(try DirectoryFixtures.key())) }
            await expectError(.notFound) { try await store.apply(.putLimits(id, LimitOverrides())) }
            await expectError(.notFound) { try await store.apply(.putLimits(id, LimitOverrides(topic: []))) }
            let key = try DirectoryFixtures.key()
            await expectError(.notFound) { try await store.apply(.rotateKey(new: key, old: key)) }
            let contents = try await store.load()
            #expect(contents.keys.isEmpty)
            #expect(contents.credentials.isEmpty)
        }
    }

    @Test("Only the newest version of a credential stays", arguments: StoreKind.available)
    func credentialVersions(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            try await store.apply(.putTenant(try DirectoryFixtures.tenant(), salt: [1]))
            try await store.apply(.putCredential(try DirectoryFixtures.credential(version: 1)))
            let second = try DirectoryFixtures.credential(version: 2)
            try await store.apply(.putCredential(second))
            for version in 1...2 {
                let late = try DirectoryFixtures.credential(version: version)
                await expectError(.conflict) { try await store.apply(.putCredential(late)) }
            }
            #expect(try await store.load().credentials == [second])
            let other = second.kind == .legacy ? UpstreamKind.v1 : .legacy
            await expectError(.notFound) { try await store.apply(.deleteCredential(other, second.tenant)) }
            #expect(try await store.apply(.deleteCredential(second.kind, second.tenant)).credentials.isEmpty)
            #expect(try await store.load().credentials.isEmpty)
            try await store.apply(.putCredential(try DirectoryFixtures.credential(version: 1)))
        }
    }

    @Test("A change returns its tenant's new data and nothing of other tenants", arguments: StoreKind.available)
    func answers(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            let (tenant, key) = (try DirectoryFixtures.tenant(), try DirectoryFixtures.key())
            for id in ["other", "a", "z"] {
                try await store.apply(.putTenant(try DirectoryFixtures.tenant(id), salt: [2]))
                try await store.apply(.putCredential(try DirectoryFixtures.credential(id)))
                try await store.apply(.putKey(try DirectoryFixtures.key("key of \(id)", tenant: id)))
            }
            let limits = LimitOverrides(topic: [try DirectoryFixtures.policy(rate: 2)])
            try await store.apply(.putTenant(tenant, salt: [1]))
            try await store.apply(.putLimits(tenant.id, limits))
            let credential = try DirectoryFixtures.credential()
            try await store.apply(.putCredential(credential))
            let contents = try await store.apply(.addKey(key))
            #expect(contents.tenants == [tenant])
            #expect(contents.salts == [tenant.id: [1]])
            #expect(contents.credentials == [credential])
            #expect(contents.keys == [key])
            #expect(contents.limits == [tenant.id: limits])
            #expect(try await store.apply(.removeKey(id: key.id, tenant.id)).keys.isEmpty)
            await expectError(.notFound) { try await store.apply(.removeKey(id: "key of other", tenant.id)) }
            let nothing = try await store.apply(.deleteTenant(tenant.id))
            #expect(nothing.tenants.isEmpty && nothing.keys.isEmpty && nothing.salts.isEmpty)
            #expect(try await store.load().tenants.count == 3)
        }
    }

    @Test("All but the first tenant with the same sender id prefix their groups", arguments: StoreKind.available)
    func groupPrefixes(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            func put(_ id: String, sender: String?) async throws {
                var tenant = try DirectoryFixtures.tenant(id)
                tenant.senderID = sender
                try await store.apply(.putTenant(tenant, salt: [1]))
            }
            func prefixed() async throws -> [String] {
                try await store.load().tenants.filter(\.prefixesGroups).map(\.id.text)
            }
            try await put("b", sender: "1")
            try await put("none", sender: nil)
            try await put("none-either", sender: nil)
            try await put("c", sender: "1")
            try await put("a", sender: "2")
            #expect(try await prefixed() == ["c"])
            // Storing a tenant again changes nothing, and neither does deleting the first one.
            try await put("b", sender: "1")
            try await put("c", sender: "1")
            #expect(try await prefixed() == ["c"])
            try await store.apply(.deleteTenant(try #require(TenantID("b"))))
            try await put("c", sender: "1")
            #expect(try await prefixed() == ["c"])
            try await put("a", sender: "1")
            #expect(try await prefixed() == ["a", "c"])
            try await put("c", sender: "3")
            #expect(try await prefixed() == ["a"])
        }
    }

    @Test("Limits are replaced as a whole, and an empty list of policies is kept", arguments: StoreKind.available)
    func limits(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            let tenant = try DirectoryFixtures.tenant()
            try await store.apply(.putTenant(tenant, salt: [1]))
            let first = LimitOverrides(tenant: [try DirectoryFixtures.policy(rate: 1)], device: [])
            try await store.apply(.putLimits(tenant.id, first))
            #expect(try await store.load().limits == [tenant.id: first])
            let second = LimitOverrides(topic: [try DirectoryFixtures.policy(rate: 2)])
            try await store.apply(.putLimits(tenant.id, second))
            #expect(try await store.load().limits == [tenant.id: second])
        }
    }

    @Test("A key can be replaced only by its own tenant", arguments: StoreKind.available)
    func replacedKey(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            try await store.apply(.putTenant(try DirectoryFixtures.tenant(), salt: [1]))
            try await store.apply(.putTenant(try DirectoryFixtures.tenant("other"), salt: [2]))
            var key = try DirectoryFixtures.key()
            try await store.apply(.putKey(key))
            key.revokedAt = DirectoryFixtures.start.advanced(by: .seconds(60))
            try await store.apply(.putKey(key))
            await expectError(.conflict) { try await store.apply(.putKey(try DirectoryFixtures.key(tenant: "other"))) }
            #expect(try await store.load().keys == [key])
        }
    }

    @Test("A key can be added only once across all tenants", arguments: StoreKind.available)
    func addedKey(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            let key = try DirectoryFixtures.key()
            await expectError(.notFound) { try await store.apply(.addKey(key)) }
            try await store.apply(.putTenant(try DirectoryFixtures.tenant(), salt: [1]))
            try await store.apply(.putTenant(try DirectoryFixtures.tenant("other"), salt: [2]))
            try await store.apply(.addKey(key))
            var renamed = key
            renamed.name = "another"
            await expectError(.conflict) { try await store.apply(.addKey(renamed)) }
            await expectError(.conflict) { try await store.apply(.addKey(try DirectoryFixtures.key(tenant: "other"))) }
            #expect(try await store.load().keys == [key])
        }
    }

    @Test(
        "A row that a later release wrote is refused, and other tenants' changes are still read",
        arguments: StoreKind.available,
        [
            ("UPDATE tenants SET upstream = 'v9' WHERE id = 'acme'", Directory.RefusedRow.Kind.tenant),
            ("UPDATE tenants SET client_names = '{}' WHERE id = 'acme'", .tenant),
            ("INSERT INTO limits (tenant, scope, policies) VALUES ('acme', 'planet', '[]')", .tenant),
            ("UPDATE api_keys SET scopes = '{}' WHERE id = 'acme-1'", .key),
            ("UPDATE credentials SET kind = 'v9' WHERE tenant = 'acme'", .credential),
        ]
    )
    func unreadable(kind: StoreKind, row: (statement: String, kind: Directory.RefusedRow.Kind)) async throws {
        try await kind.withDatabase { database async throws in
            let store = SQLDirectoryStore(database: database)
            let (acme, other) = (try DirectoryFixtures.tenant(), try DirectoryFixtures.tenant("other"))
            for tenant in [acme, other] {
                try await store.apply(.putTenant(tenant, salt: [1]))
                try await store.apply(.putCredential(try DirectoryFixtures.credential(tenant.id.text)))
                try await store.apply(.addKey(try DirectoryFixtures.key("\(tenant.id.text)-1", tenant: tenant.id.text)))
            }
            let before = try await store.load()
            try await database.write(scope: .gateway, isolation: .serializable) { db in
                try db.execute(row.statement)
                let rows = DirectoryRows(db: db, sealer: RowSealer(keyPepper: Secret("pepper")))
                try rows.sealTenant(acme.id)
                try rows.sealKey("acme-1", salt: [1])
                try db.execute("UPDATE directory_version SET version = version + 1")
                try db.execute(
                    "UPDATE directory_changes SET version = (SELECT version FROM directory_version) WHERE tenant = 'acme'"
                )
            }
            var revoked = try DirectoryFixtures.key("other-1", tenant: "other")
            revoked.revokedAt = DirectoryFixtures.start
            try await store.apply(.putKey(revoked))

            guard case .tenants(let ids, let changed) = try await store.changes(since: before.version) else {
                Issue.record("No tenant was changed")
                return
            }
            #expect(ids == [acme.id, other.id])
            #expect(changed.of([other.id]).keys == [revoked])
            #expect(changed.of([acme.id]).refused.map(\.kind) == [row.kind])
            #expect(changed.of([acme.id]).tenants.count == (row.kind == .tenant ? 0 : 1))
            #expect(changed.of([acme.id]).keys.count == (row.kind == .key ? 0 : 1))
            let contents = try await store.load()
            #expect(contents.refused == changed.refused)
            #expect(contents.keys.contains(revoked))
            guard row.kind == .tenant else { return }
            // This version does not replace a row that it can't read.
            await expectError(.conflict) { try await store.apply(.putTenant(acme, salt: [1])) }
            try await store.apply(.deleteTenant(acme.id))
            #expect(try await store.load().refused.isEmpty)
        }
    }

    @Test("A rotation adds the new key, and shortens but never extends the old one", arguments: StoreKind.available)
    func rotation(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            try await store.apply(.putTenant(try DirectoryFixtures.tenant(), salt: [1]))
            var old = try DirectoryFixtures.key("old")
            try await store.apply(.putKey(old))
            old.expiresAt = DirectoryFixtures.start.advanced(by: .seconds(3_600))
            let new = try DirectoryFixtures.key("new")
            try await store.apply(.rotateKey(new: new, old: old))
            #expect(try await store.load().keys == [new, old])

            var longer = old
            longer.expiresAt = DirectoryFixtures.start.advanced(by: .seconds(7_200))
            try await store.apply(.rotateKey(new: try DirectoryFixtures.key("newer"), old: longer))
            #expect(try await store.load().keys.first { $0.id == "old" } == old)
        }
    }

    @Test("A rotation that fails changes nothing", arguments: StoreKind.available)
    func failedRotation(kind: StoreKind) async throws {
        try await kind.withDirectoryStore { store in
            try await store.apply(.putTenant(try DirectoryFixtures.tenant(), salt: [1]))
            let old = try DirectoryFixtures.key("old")
            let taken = try DirectoryFixtures.key("taken")
            try await store.apply(.putKey(old))
            try await store.apply(.putKey(taken))
            var shortened = old
            shortened.expiresAt = DirectoryFixtures.start
            await expectError(.conflict) { try await store.apply(.rotateKey(new: taken, old: shortened)) }
            let (new, missing) = (try DirectoryFixtures.key("new"), try DirectoryFixtures.key("missing"))
            await expectError(.notFound) { try await store.apply(.rotateKey(new: new, old: missing)) }
            #expect(try await store.load().keys == [old, taken])
        }
    }

    @Test("The gateway's secrets are never replaced once stored", arguments: StoreKind.available)
    func gatewaySecrets(kind: StoreKind) async throws {
        try await kind.withDatabase { database async throws in
            let store = SQLSecretStore(database: database)
            let first = Envelope(wrappedKey: Data([1]), sealed: Data([2]))
            let second = Envelope(wrappedKey: Data([3]), sealed: Data([4]))
            let end = CheckpointEnd(signature: [1])
            #expect(try await store.gatewaySecrets(orInsert: [.keyPepper: first], at: end) == [.keyPepper: first])
            let both: [GatewaySecret: Envelope] = [.keyPepper: second, .auditKey: second]
            let expected: [GatewaySecret: Envelope] = [.keyPepper: first, .auditKey: second]
            #expect(try await store.gatewaySecrets(orInsert: both, at: end) == expected)
            #expect(try await store.gatewaySecrets(orInsert: both, at: end) == expected)
        }
    }
}
