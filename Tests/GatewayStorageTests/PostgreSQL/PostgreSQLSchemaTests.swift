import Foundation
import GatewayCore
import Testing

@testable import GatewayStorage

struct PostgreSQLSchemaTests {
    @Test(
        "The PostgreSQL schema has no keyword of SQLite's",
        arguments: ["STRICT", "ROWID", "AUTOINCREMENT", "BLOB", "INTEGER"]
    )
    func words(word: String) {
        #expect(SQLSchema.statements.contains(word))
        #expect(!PostgreSQLSchema.translated(SQLSchema.statements).contains(word))
    }

    @Test("Every text column is ordered by its bytes")
    func collations() {
        let lines = PostgreSQLSchema.translated(SQLSchema.statements).split(separator: "\n")
        let columns = lines.filter { $0.contains(" TEXT") }
        #expect(columns.count > 20)
        #expect(columns.allSatisfy { $0.contains(" TEXT COLLATE \"C\"") })
    }

    /// Runs a body with the owner's settings for an empty database.
    private func withEmpty(_ body: (PostgreSQLSettings, String) async throws -> Void) async throws {
        try await PostgreSQLFixture.withSettings { _ in
            try await PostgreSQLFixture.withDatabase(like: "template0") { name in
                try PostgreSQLFixture.run("ALTER DATABASE \(name) OWNER TO owner")
                var settings = PostgreSQLSettings(
                    url: try PostgreSQLFixture.url(name, user: "owner"),
                    poolSize: 4
                )
                settings.outageTimeout = .zero
                try await body(settings, name)
            }
        }
    }

    @Test("A database without tables is refused with advice, unless the gateway may migrate it")
    func empty() async throws {
        try await self.withEmpty { settings, _ in
            await expectError(.invalid, "store migrate") { try await PostgreSQLDatabase(settings) }
            let database = try await PostgreSQLDatabase(settings, migrates: true)
            database.close()
            try await PostgreSQLDatabase(settings).close()
        }
    }

    @Test("Of two concurrent migrations one applies all steps, the other none; a third applies none")
    func concurrent() async throws {
        try await self.withEmpty { settings, _ in
            async let first = PostgreSQLDatabase.migrate(settings)
            async let second = PostgreSQLDatabase.migrate(settings)
            let steps = try await [first, second]
            #expect(steps.sorted { $0.count < $1.count } == [[], ["v100", "v101", "v102", "v103"]])
            #expect(try await PostgreSQLDatabase.migrate(settings) == [])
        }
    }

    @Test("A later version's schema that admits this one is served, and a migration leaves it unchanged")
    func admitting() async throws {
        try await self.withEmpty { settings, name in
            _ = try await PostgreSQLDatabase.migrate(settings)
            try PostgreSQLFixture.run(try SchemaFile.text("later"), in: name)
            // In this version's own schema, a migration would restore this policy.
            try PostgreSQLFixture.run("DROP POLICY rows_of_tenant ON retired_tokens", in: name)
            #expect(try await PostgreSQLDatabase.migrate(settings) == [])
            let database = try await PostgreSQLDatabase(settings, migrates: true)
            defer { database.close() }
            #expect(try await database.schema().name == "v999")
            try await SQLDirectoryStore(database: database)
                .apply(.putTenant(try DirectoryFixtures.tenant(), salt: [1]))
            let rows = try await database.read(scope: .tenant("acme")) { db in
                [try db.exists("SELECT 1 FROM tenants"), try db.exists("SELECT 1 FROM later_rows")]
            }
            #expect(rows == [true, false])
            let policies = try await database.read(scope: .gateway) { db in
                try db.first(
                    "SELECT count(*) FROM pg_policies WHERE schemaname = 'public' AND tablename = 'retired_tokens'"
                ) { row in try row.int(0) }
            }
            #expect(policies == 1)
        }
    }

    @Test("A later version's schema that does not admit this one is neither served nor migrated")
    func superseded() async throws {
        try await self.withEmpty { settings, name in
            _ = try await PostgreSQLDatabase.migrate(settings)
            let insert = "INSERT INTO gateway_migrations (name, admits) VALUES ('v999', 'v998')"
            try PostgreSQLFixture.run(insert, in: name)
            await expectError(.invalid, "gateway (v999)") { try await PostgreSQLDatabase(settings) }
            await expectError(.invalid, "later version") {
                try await PostgreSQLDatabase(settings, migrates: true)
            }
            await expectError(.invalid, "later version") { try await PostgreSQLDatabase.migrate(settings) }
        }
    }

    @Test("A migration that fails leaves nothing behind")
    func failure() async throws {
        try await self.withEmpty { settings, name in
            // This table conflicts with the schema's last one.
            try PostgreSQLFixture.run("CREATE TABLE audit_truncations (a INT)", in: name)
            await expectError(.storeUnavailable) { try await PostgreSQLDatabase.migrate(settings) }
            await expectError(.invalid, "holds no tables") { try await PostgreSQLDatabase(settings) }
        }
    }

    @Test("A migration restores a missing row policy")
    func rights() async throws {
        try await self.withEmpty { settings, name in
            _ = try await PostgreSQLDatabase.migrate(settings)
            try PostgreSQLFixture.run("DROP POLICY rows_of_tenant ON tenants", in: name)
            #expect(try await PostgreSQLDatabase.migrate(settings) == [])
            let database = try await PostgreSQLDatabase(settings)
            defer { database.close() }
            try await SQLDirectoryStore(database: database)
                .apply(.putTenant(try DirectoryFixtures.tenant(), salt: [1]))
            let seen = try await database.read(scope: .tenant("acme")) { db in
                try db.rows("SELECT id FROM tenants") { try $0.text(0) }
            }
            #expect(seen == ["acme"])
        }
    }

    @Test("A user without the roles and a missing user are refused with different errors")
    func refusals() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let name = PostgreSQLFixture.newName()
            try PostgreSQLFixture.run("CREATE ROLE \(name) LOGIN")
            var other = settings
            other.outageTimeout = .zero
            other.url = settings.url.replacing("user=gateway", with: "user=\(name)")
            await expectError(.storeUnavailable, "lacks rights") { try await PostgreSQLDatabase(other) }
            try PostgreSQLFixture.run("DROP ROLE \(name)")
            await expectError(.storeUnavailable, "can't be reached") { try await PostgreSQLDatabase(other) }
        }
    }
}

struct PostgreSQLSettingsTests {
    @Test(
        "The error for a bad address does not contain its secrets",
        arguments: [
            ("postgres://u:secret@h/d", "must not hold a password"), ("postgres://u@h/d?password=secret", "password"),
            ("postgres://u@h/d?sslpassword=secret", "sslpassword"), ("postgres://u:%73ecret@h/d", "password"),
            ("postgres://u@h/d?secret=1", "libpq understands"), ("postgres://u@h/d\0secret", "libpq understands"),
            ("postgres://u@[::1/secret", "libpq understands"), ("postgres://u@h/%zzsecret", "libpq understands"),
        ]
    )
    func problems(url: String, words: String) {
        let problem = PostgreSQLSettings.problem(url)
        #expect(problem?.contains(words) == true)
        #expect(problem?.contains("secret") == false)
    }

    @Test(
        "With several hosts a read-write one is required, unless the address says otherwise",
        arguments: [
            ("postgres://u@h/d", ""), ("postgresql://h1,h2:5433/d?sslmode=require", "read-write"),
            ("postgres:///d?host=/a,/b", "read-write"), ("postgres://h1,h2/d?target_session_attrs=any", ""),
        ]
    )
    func attributes(url: String, attributes: String) {
        #expect(PostgreSQLSettings.problem(url) == nil)
        #expect(PostgreSQLSettings(url: url).sessionAttributes == attributes)
    }

    @Test("Hosts in a service file or in PGHOST count like those of the address")
    func attributesOfTheEnvironment() async {
        // In a separate process, because other tests read the environment meanwhile.
        await #expect(processExitsWith: .success) {
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("services-\(UUID())")
            defer { try? FileManager.default.removeItem(at: file) }
            let services = "[two]\nhost=h1,h2\n[primary]\nhost=h1,h2\ntarget_session_attrs=primary\n"
            try Data(services.utf8).write(to: file)
            // The C library copies the strings.
            unsafe setenv("PGSERVICEFILE", file.path, 1)
            #expect(PostgreSQLSettings.problem("postgres:///d") == nil)
            let attributes = ["", "?service=two", "?service=primary", "?service=two&host=h"]
                .map { PostgreSQLSettings(url: "postgres:///d\($0)").sessionAttributes }
            #expect(attributes == ["", "read-write", "", ""])
            unsafe setenv("PGHOST", "h1,h2", 1)
            #expect(PostgreSQLSettings(url: "postgres:///d").sessionAttributes == "read-write")
            #expect(PostgreSQLSettings(url: "postgres://h/d").sessionAttributes == "")
        }
    }

    @Test("With several hosts a read-only server is refused")
    func hostsThatRead() async throws {
        try await PostgreSQLFixture.withSettings { settings in
            let name = try PostgreSQLFixture.name(of: settings)
            try PostgreSQLFixture.run("ALTER DATABASE \(name) SET default_transaction_read_only = on")
            _ = try PostgreSQLSession(settings)
            var several = settings
            // The host is the last option before the user.
            several.url = settings.url.replacing("&user=", with: ",/nowhere&user=")
            #expect(throws: PostgreSQLError.self) { _ = try PostgreSQLSession(several) }
            several.url += "&target_session_attrs=any"
            _ = try PostgreSQLSession(several)
        }
    }
}

struct PostgreSQLErrorTests {
    @Test(
        "libpq's message about an unreachable server is reported on one line",
        arguments: [
            (
                "connection to server at \"h\" (::1), port 5432 failed: refused\n\tIs the server running?\n",
                "connection to server at \"h\" (::1), port 5432 failed: refused Is the server running?"
            ),
            ("first: refused\nsecond: timeout\n\tIs it there?\n", "first: refused; second: timeout Is it there?"),
            ("a\tb", "a b"), ("", ""),
        ]
    )
    func oneLine(text: String, line: String) {
        #expect(PostgreSQLError(libraryMessage: text).message == line)
    }

    @Test("A configured password requires SCRAM authentication", arguments: [nil, "word"] as [String?])
    func authentication(password: String?) {
        let settings = PostgreSQLSettings(url: "postgres:///d", password: password.map { Secret($0) })
        #expect(settings.authentication == (password == nil ? "" : "scram-sha-256"))
    }

    @Test(
        "An SQLSTATE is explained in words, and ends the connection if another server may do better",
        arguments: [
            ("25006", "its server only reads", true), ("0A000", "is a standby", true), ("55000", "is a standby", true),
            ("28P01", "refuses the gateway's user or password", false), ("3D000", "does not exist", false),
            ("42501", "lacks rights", false), ("42P01", "tables are missing", false), ("53100", "disk is full", false),
            ("53300", "no resources left", false), ("55P03", "busy", false), ("57P03", "ending or starting", true),
            ("XX000", "does not answer as it should", false),
        ]
    )
    func words(state: String, words: String, endsConnection: Bool) {
        let error = PostgreSQLError(state: state, message: "from the server")
        #expect(error.endsConnection == endsConnection)
        let told = GatewayError(translatingPostgreSQL: error)
        #expect(told.code == .storeUnavailable)
        #expect(told.message.contains(words), "\(told.message)")
        #expect(told.cause.map { "\($0)" } == "SQLSTATE \(state): from the server")
    }

    @Test("A missing role is the store's fault, although its SQLSTATE has the class of invalid values")
    func missingRole() {
        let told = GatewayError(translatingPostgreSQL: PostgreSQLError(state: "22023", message: "x"))
        #expect(told.code == .storeUnavailable)
        #expect(told.message.contains("roles are missing"))
    }
}
