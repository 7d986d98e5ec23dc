import GRDB
import GatewayCore

/// Creates the schema in a file, and recognises the gateway's own files.
enum SQLiteSchema {
    /// The first migration's name. Builds from before the first release have lower numbers.
    private static let firstRelease = "v100"

    /// The schema's history. Entries are only added, and a released one is never edited.
    static let migrator: DatabaseMigrator = {
        var migrator = DatabaseMigrator()
        migrator.registerMigration(Self.firstRelease) { db in
            try db.execute(sql: "PRAGMA application_id = \(Self.applicationID)")
            try db.execute(sql: SQLSchema.statements)
        }
        for step in SQLSchema.additions {
            migrator.registerMigration(step.name) { db in try db.execute(sql: step.statements) }
        }
        return migrator
    }()

    /// The functions that statements call and SQLite lacks. ``SQLSchema`` explains them.
    static func functions(_ clock: any WallClock, _ file: StoreFile) -> [DatabaseFunction] {
        [
            DatabaseFunction("gateway_time", argumentCount: 0) { _ in clock.now().microseconds },
            DatabaseFunction("gateway_notify", argumentCount: 0) { _ in nil },
            // One process writes, one transaction after the other.
            DatabaseFunction("gateway_transaction", argumentCount: 0) { _ in 0 },
            DatabaseFunction("gateway_change_horizon", argumentCount: 0) { _ in 0 },
            DatabaseFunction("gateway_origin", argumentCount: 0) { _ in file.origin },
        ]
    }

    /// The application's number in the file's header: `FCMG`.
    static let applicationID: Int32 = 0x4643_4D47

    /// - Throws: `invalid` unless the file is a gateway's store or empty.
    static func requireOursOrEmpty(_ db: Database) throws {
        let stored = try self.storedApplicationID(db)
        if stored == self.applicationID { return }
        // A first start that was killed may have created the table of migrations.
        let isEmpty = try Bool.fetchOne(
            db,
            sql: "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name NOT GLOB '*grdb_migrations*')"
        )
        guard stored == 0, isEmpty == true else { throw self.foreign }
    }

    /// - Throws: `invalid` if a later version has migrated the file, or a build from before the first release made it.
    static func requireKnown(_ db: Database) throws {
        if let name = try self.migrator.appliedIdentifiers(db).min(), name < self.firstRelease {
            throw GatewayError(
                .invalid,
                "The store was made by an unreleased build of the gateway (\(name)), and its tables can't be brought up to "
                    + "date; move the file away and begin with a new one"
            )
        }
        guard try self.migrator.hasBeenSuperseded(db) else { return }
        throw GatewayError(.invalid, "The store was written by a later version of the gateway; use that version")
    }

    /// - Throws: `invalid` if another version was the last to migrate the file.
    static func requireCurrent(_ db: Database) throws {
        try self.requireKnown(db)
        guard try self.migrator.hasCompletedMigrations(db) else {
            throw GatewayError(
                .invalid,
                "The store is from an earlier version; start this version once, then try again"
            )
        }
    }

    /// - Throws: `notFound` if the first start of a gateway ended before it created anything: it was killed, or the
    ///   disk was full.
    static func requireTables(_ db: Database) throws {
        guard try !self.migrator.appliedIdentifiers(db).isEmpty else {
            throw GatewayError(.notFound, "The store holds nothing yet; fcm-gateway serve creates its tables")
        }
    }

    private static var foreign: GatewayError {
        GatewayError(.invalid, "The file is not a store of the gateway")
    }

    private static func storedApplicationID(_ db: Database) throws -> Int32? {
        do {
            return try Int32.fetchOne(db, sql: "PRAGMA application_id")
        } catch let error as DatabaseError where error.resultCode == .SQLITE_NOTADB {
            throw self.foreign
        }
    }
}
