import Foundation
import ProcessTestKit
import Synchronization
import Testing

@testable import GatewayStorage

/// Databases for tests: copies of a migrated template, on the test process's own server.
///
/// The schema's owner may create roles. Tests connect as another user, a member of those roles and nothing else.
enum PostgreSQLFixture {
    private static let template = "gateway_template"
    private static let laterTemplate = "gateway_template_later"
    private static let lastNumber = Mutex(0)

    /// Created once; blocks.
    private static let prepared: Result<Void, any Error> = Result {
        try Self.run("CREATE ROLE owner LOGIN CREATEROLE; CREATE ROLE gateway LOGIN")
        try Self.run("CREATE DATABASE \(Self.template) OWNER owner")
        let owner = try PostgreSQLSession(PostgreSQLSettings(url: try Self.url(Self.template, user: "owner")))
        _ = try PostgreSQLSchema.migrate(owner)
        // Another test's migration may have created the roles, and then the owner can't grant them.
        try Self.run("GRANT fcmgw_tenant, fcmgw_gateway TO owner, gateway")
    }

    /// A template created by the previous release, migrated by this build, and extended by the next release.
    private static let preparedLater: Result<Void, any Error> = Result {
        try Self.prepared.get()
        try Self.run("CREATE DATABASE \(Self.laterTemplate) OWNER owner")
        let owner = try PostgreSQLSession(PostgreSQLSettings(url: try Self.url(Self.laterTemplate, user: "owner")))
        let names = PostgreSQLSchema.steps.map(\.name)
        for name in names.prefix(max(1, names.count - 1)) { try owner.run(script: try SchemaFile.text(name)) }
        _ = try PostgreSQLSchema.migrate(owner)
        try owner.run(script: try SchemaFile.text("later"))
    }

    static func url(_ database: String, user: String) throws -> String {
        try PostgreSQLServer.shared.get().url(database: database, user: user)
    }

    /// Runs statements as the server's administrator; blocks.
    static func run(_ script: String, in database: String = "postgres") throws {
        var settings = PostgreSQLSettings(url: try Self.url(database, user: "postgres"))
        settings.callTimeout = .seconds(120)
        try PostgreSQLSession(settings).run(script: script)
    }

    /// Ends connections to a test's database that match a condition, once there is one; blocks.
    static func end(where condition: String, in settings: PostgreSQLSettings) throws {
        try self.run(
            """
            DO $$ BEGIN
                FOR attempt IN 1..6000 LOOP
                    PERFORM pg_stat_clear_snapshot();
                    IF (
                        SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity
                        WHERE datname = '\(try self.name(of: settings))' AND (\(condition))
                    ) > 0 THEN RETURN; END IF;
                    PERFORM pg_sleep(0.01);
                END LOOP;
                RAISE EXCEPTION 'no such connection';
            END $$
            """
        )
    }

    /// Makes a transaction that writes an audit checkpoint lose its connection at COMMIT; blocks.
    static func endConnectionAtCommit(in settings: PostgreSQLSettings) throws {
        try self.run(
            """
            CREATE FUNCTION end_connection() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
            BEGIN
                PERFORM pg_terminate_backend(pg_backend_pid());
                PERFORM pg_sleep(1);
                RETURN NULL;
            END $$;
            CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON audit_checkpoints
                DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION end_connection();
            """,
            in: try self.name(of: settings)
        )
    }

    static func name(of settings: PostgreSQLSettings) throws -> String {
        let path = settings.url.split(separator: "?").first?.split(separator: "/").last
        return String(try #require(path))
    }

    /// A database name that is not in use.
    static func newName() -> String {
        let number = self.lastNumber.withLock { number in
            number += 1
            return number
        }
        return "test_\(number)"
    }

    /// Runs a body with the settings for a new, empty database with this build's schema, or the next release's.
    static func withSettings(
        later isLater: Bool = false,
        _ body: (PostgreSQLSettings) async throws -> Void
    ) async throws {
        try (isLater ? self.preparedLater : self.prepared).get()
        try await self.withDatabase(like: isLater ? self.laterTemplate : self.template) { name in
            try await body(PostgreSQLSettings(url: try Self.url(name, user: "gateway"), poolSize: 4))
        }
    }

    /// Runs a body with the name of a new database, which is dropped afterwards, even with open connections.
    static func withDatabase(like template: String, _ body: (String) async throws -> Void) async throws {
        let name = self.newName()
        // A separate statement, since CREATE DATABASE can't run in a transaction.
        try self.run("CREATE DATABASE \(name) TEMPLATE \(template)")
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(name))
        } catch {
            result = .failure(error)
        }
        try self.run("DROP DATABASE \(name) WITH (FORCE)")
        try result.get()
    }
}

/// The schema's released steps, and one that no release has (Tests/Schemas).
enum SchemaFile {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Schemas")

    static func url(_ step: String) -> URL { self.folder.appendingPathComponent("\(step).sql") }

    static func text(_ step: String) throws -> String { try String(contentsOf: self.url(step), encoding: .utf8) }
}

/// Runs a body with a new database that is closed and removed afterwards.
func withPostgreSQLDatabase(
    later isLater: Bool = false,
    _ body: (PostgreSQLDatabase) async throws -> Void
) async throws {
    try await PostgreSQLFixture.withSettings(later: isLater) { settings in
        let database = try await PostgreSQLDatabase(settings)
        defer { database.close() }
        try await body(database)
    }
}
