import Foundation
import ProcessTestKit
import Synchronization
import Testing

@testable import GatewayStorage

/// Databases for tests, each a copy of one that has been migrated, on the test process's own server.
///
/// The schema belongs to a user who may make roles; tests connect as another, who is a member of those roles and
/// nothing else.
enum PostgreSQLFixture {
    private static let template = "gateway_template"
    private static let laterTemplate = "gateway_template_later"
    private static let lastNumber = Mutex(0)

    /// Made once; blocks.
    private static let prepared: Result<Void, any Error> = Result {
        try Self.run("CREATE ROLE owner LOGIN CREATEROLE; CREATE ROLE gateway LOGIN")
        try Self.run("CREATE DATABASE \(Self.template) OWNER owner")
        let owner = try PostgreSQLSession(PostgreSQLSettings(url: try Self.url(Self.template, user: "owner")))
        _ = try PostgreSQLSchema.migrate(owner)
        // Another test's migration may have made the roles, so that the owner can't grant them.
        try Self.run("GRANT fcmgw_tenant, fcmgw_gateway TO owner, gateway")
    }

    /// The same, but that the steps of the release before made the schema, this build brought it up to date, and the
    /// release after it has added to it.
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

    /// Ends connections to a test's database, once there is one of which the condition holds; blocks.
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

    /// Lets a transaction that writes an audit checkpoint lose its connection at COMMIT; blocks.
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

    /// The name of a test's database.
    static func name(of settings: PostgreSQLSettings) throws -> String {
        let path = settings.url.split(separator: "?").first?.split(separator: "/").last
        return String(try #require(path))
    }

    /// The name of a database that nobody else uses.
    static func newName() -> String {
        let number = self.lastNumber.withLock { number in
            number += 1
            return number
        }
        return "test_\(number)"
    }

    /// Runs a body with the settings of a new database that has the schema, or the next release's, and nothing in it.
    static func withSettings(
        later isLater: Bool = false,
        _ body: (PostgreSQLSettings) async throws -> Void
    ) async throws {
        try (isLater ? self.preparedLater : self.prepared).get()
        try await self.withDatabase(like: isLater ? self.laterTemplate : self.template) { name in
            try await body(PostgreSQLSettings(url: try Self.url(name, user: "gateway"), poolSize: 4))
        }
    }

    /// Runs a body with the name of a new database, which is removed afterwards, whoever is connected.
    static func withDatabase(like template: String, _ body: (String) async throws -> Void) async throws {
        let name = self.newName()
        // A statement by itself, since a database is not made in a transaction.
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

/// The schema's steps as they were released, and one that no release takes (Tests/Schemas).
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
