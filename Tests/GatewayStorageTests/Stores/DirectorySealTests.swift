import GRDB
import GatewayCore
import Testing

@testable import GatewayStorage

/// Rows of the directory that were not written by the gateway.
struct DirectorySealTests {
    /// Stores two complete tenants, changes them by one statement, and runs a body.
    private func changed(
        _ statement: String,
        _ body: (SQLDirectoryStore, Directory.Contents, SQLiteDatabase) async throws -> Void
    ) async throws {
        try await withSQLiteDatabase { database in
            let store = SQLDirectoryStore(database: database)
            for (id, salt) in [("acme", [1]), ("other", [2])] as [(String, [UInt8])] {
                var tenant = try DirectoryFixtures.tenant(id)
                tenant.clientNames = ["orders.internal"].compactMap { ClientName($0) }
                try await store.apply(.putTenant(tenant, salt: salt))
                try await store.apply(.putCredential(try DirectoryFixtures.credential(id)))
                for number in 1...2 {
                    try await store.apply(.addKey(try DirectoryFixtures.key("\(id)-\(number)", tenant: id)))
                }
                let limits = LimitOverrides(topic: [try DirectoryFixtures.policy(rate: 1)])
                try await store.apply(.putLimits(tenant.id, limits))
            }
            var revoked = try DirectoryFixtures.key("acme-2")
            revoked.revokedAt = DirectoryFixtures.start
            try await store.apply(.putKey(revoked))
            #expect(try await store.load().refused.isEmpty)
            try await database.write { db in
                try db.execute(sql: "PRAGMA defer_foreign_keys = ON")
                try db.execute(sql: statement)
                if statement.contains("SET id = 'Not An Id'") {
                    for table in ["credentials", "api_keys", "limits"] {
                        try db.execute(sql: "UPDATE \(table) SET tenant = 'Not An Id' WHERE tenant = 'acme'")
                    }
                }
            }
            try await body(store, try await store.load(), database)
        }
    }

    @Test(
        "A tenant is not served if its row or limits were changed outside the gateway; others are",
        arguments: [
            "UPDATE tenants SET upstream = 'v1' WHERE id = 'acme'",
            "UPDATE tenants SET upstream = 'carrier-pigeon' WHERE id = 'acme'",
            "UPDATE tenants SET id = 'Not An Id' WHERE id = 'acme'",
            "UPDATE tenants SET project_id = 'mine' WHERE id = 'acme'",
            "UPDATE tenants SET project_id = NULL, display_name = display_name || project_id WHERE id = 'acme'",
            "UPDATE tenants SET sender_id = '1' WHERE id = 'acme'",
            "UPDATE tenants SET prefixes_groups = 1 WHERE id = 'acme'",
            "UPDATE tenants SET is_disabled = 1 WHERE id = 'acme'",
            "UPDATE tenants SET client_names = '[\"mine\"]' WHERE id = 'acme'",
            "UPDATE tenants SET client_names = '[\"*\"]' WHERE id = 'acme'",
            "UPDATE tenants SET client_names = '[' WHERE id = 'acme'",
            "UPDATE tenants SET client_names = '{}' WHERE id = 'acme'",
            "UPDATE tenants SET client_names = '[]' WHERE id = 'acme'",
            "UPDATE tenants SET salt = x'02' WHERE id = 'acme'",
            "UPDATE tenants SET created_at = 1 WHERE id = 'acme'",
            "UPDATE tenants SET seal = (SELECT seal FROM tenants WHERE id = 'other') WHERE id = 'acme'",
            "UPDATE limits SET policies = '[]' WHERE tenant = 'acme'",
            "UPDATE limits SET policies = 'nonsense' WHERE tenant = 'acme'",
            "UPDATE limits SET scope = 'planet' WHERE tenant = 'acme'",
            "INSERT INTO limits VALUES ('acme', 'device', '[]')", "DELETE FROM limits WHERE tenant = 'acme'",
        ]
    )
    func tenants(statement: String) async throws {
        try await self.changed(statement) { store, contents, _ in
            let other = try #require(TenantID("other"))
            #expect(contents.tenants.map(\.id) == [other])
            #expect(contents.keys.map(\.id) == ["other-1", "other-2"])
            #expect(contents.credentials.map(\.tenant) == [other])
            #expect(contents.limits.keys.map(\.self) == [other])
            #expect(contents.refused.first?.kind == .tenant)
            #expect(contents.refused.first?.tenant == (statement.contains("Not An Id") ? nil : TenantID("acme")))
            guard let acme = contents.refused.first?.tenant else { return }

            // A change would seal the foreign row, so the tenant can only be deleted.
            let changes: [Directory.Change] = [
                .putTenant(try DirectoryFixtures.tenant(), salt: [1]), .putLimits(acme, LimitOverrides()),
                .putCredential(try DirectoryFixtures.credential(version: 2)),
                .addKey(try DirectoryFixtures.key("new")), .putKey(try DirectoryFixtures.key("acme-1")),
            ]
            for change in changes {
                await expectError(.conflict) { try await store.apply(change) }
            }
            try await store.apply(.deleteTenant(acme))
            try await store.apply(.putTenant(try DirectoryFixtures.tenant(), salt: [3]))
            let later = try await store.load()
            #expect(later.refused.isEmpty)
            #expect(later.tenants.count == 2)
        }
    }

    @Test(
        "A key that was added or changed outside the gateway is not served",
        arguments: [
            "UPDATE api_keys SET scopes = '[\"messages:send\"]' WHERE id = 'acme-1'",
            "UPDATE api_keys SET scopes = '{}' WHERE id = 'acme-1'",
            "UPDATE api_keys SET topic_prefixes = '[]' WHERE id = 'acme-1'",
            "UPDATE api_keys SET expires_at = 1 WHERE id = 'acme-1'",
            "UPDATE api_keys SET digest = zeroblob(32) WHERE id = 'acme-1'",
            "UPDATE api_keys SET tenant = 'other' WHERE id = 'acme-1'",
            "UPDATE api_keys SET revoked_at = NULL WHERE id = 'acme-2'",
            "UPDATE api_keys SET seal = x'' WHERE id = 'acme-1'",
            """
            INSERT INTO api_keys SELECT 'acme-3', tenant, name, digest, scopes, topic_prefixes, created_at, expires_at,
            revoked_at, seal FROM api_keys WHERE id = 'acme-1'
            """,
        ]
    )
    func keys(statement: String) async throws {
        try await self.changed(statement) { store, contents, _ in
            #expect(contents.tenants.count == 2)
            let row = try #require(contents.refused.first)
            #expect(contents.refused.count == 1 && row.kind == .key)
            #expect(!contents.keys.contains { $0.id == row.name })
            let owner = try #require(row.tenant)
            // A rotation would seal the foreign row.
            let old = try DirectoryFixtures.key(row.name, tenant: owner.text)
            let new = try DirectoryFixtures.key("new", tenant: owner.text)
            await expectError(.notFound) { try await store.apply(.rotateKey(new: new, old: old)) }
            #expect(try await store.apply(.removeKey(id: row.name, owner)).refused.isEmpty)
        }
    }

    @Test("A credential of an unknown kind is not served; its tenant is")
    func credentials() async throws {
        try await self.changed("UPDATE credentials SET kind = 'v7' WHERE tenant = 'acme'") {
            _,
            contents,
            database async throws in
            #expect(contents.refused == [Directory.RefusedRow(.credential, "v7", of: TenantID("acme"))])
            #expect(contents.credentials.map(\.tenant.text) == ["other"])
            #expect(contents.tenants.count == 2)
            #expect(try await SQLSecretStore(database: database).all().count == 1)
        }
    }

    @Test("A key that belonged to an earlier tenant of the same id is not served")
    func lives() async throws {
        try await withSQLiteDatabase { database in
            let store = SQLDirectoryStore(database: database)
            let (tenant, key) = (try DirectoryFixtures.tenant(), try DirectoryFixtures.key())
            try await store.apply(.putTenant(tenant, salt: [1]))
            try await store.apply(.addKey(key))
            try await database.write { try $0.execute(sql: "CREATE TABLE kept AS SELECT * FROM api_keys") }
            try await store.apply(.deleteTenant(tenant.id))
            try await store.apply(.putTenant(tenant, salt: [2]))
            try await database.write { try $0.execute(sql: "INSERT INTO api_keys SELECT * FROM kept") }
            let contents = try await store.load()
            #expect(contents.keys.isEmpty)
            #expect(contents.refused == [Directory.RefusedRow(.key, key.id, of: tenant.id)])
        }
    }

    @Test("Rows that another gateway sealed are all refused, but not if read without a sealer")
    func otherSealer() async throws {
        try await self.changed("SELECT 1") { _, _, database in
            let stranger = RowSealer(keyPepper: Secret("another pepper"))
            let contents = try await SQLDirectoryStore(database: database, sealer: stranger).load()
            #expect(contents.tenants.isEmpty && contents.keys.isEmpty)
            #expect(contents.refused.map(\.name) == ["acme", "other"])
            let seen = try await database.read(scope: .gateway) { try DirectoryRows(db: $0, sealer: nil).contents() }
            #expect(seen.tenants.count == 2 && seen.keys.count == 4 && seen.refused.isEmpty)
        }
    }
}
