import GRDB
import GatewayCore

/// Makes the schema in a file, and tells the gateway's own files from others.
enum SQLiteSchema {
    /// The first migration's name. Builds from before the first release have numbers below it.
    private static let firstRelease = "v100"

    /// The schema's history: entries are only ever added, and what has been released is never edited.
    static let migrator: DatabaseMigrator = {
        var migrator = DatabaseMigrator()
        migrator.registerMigration(Self.firstRelease) { db in
            try db.execute(sql: "PRAGMA application_id = \(Self.applicationID)")
            try db.execute(sql: SQLSchema.statements)
        }
        return migrator
    }()

    /// The functions that statements call and SQLite has not; ``SQLSchema`` says what they mean.
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

    /// Stands in the file's header, where SQLite keeps a number for the application: `FCMG`.
    static let applicationID: Int32 = 0x4643_4D47

    /// - Throws: `invalid` unless the file is a gateway's store or holds nothing yet.
    static func requireOursOrEmpty(_ db: Database) throws {
        let stored = try self.storedApplicationID(db)
        if stored == self.applicationID { return }
        // A first start that was killed may have got as far as the table of migrations.
        let isEmpty = try Bool.fetchOne(
            db,
            sql: "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name NOT GLOB '*grdb_migrations*')"
        )
        guard stored == 0, isEmpty == true else { throw self.foreign }
    }

    /// - Throws: `invalid` for a file of a later gateway, or of a build from before the first release.
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

    /// - Throws: `invalid` when another version of the gateway was the last at the file.
    static func requireCurrent(_ db: Database) throws {
        try self.requireKnown(db)
        guard try self.migrator.hasCompletedMigrations(db) else {
            throw GatewayError(
                .invalid,
                "The store is from an earlier version; start this version once, then try again"
            )
        }
    }

    /// - Throws: `notFound` when the first start of a gateway ended before it made anything: it was killed, or the disk was
    ///   full.
    static func requireTables(_ db: Database) throws {
        guard try !self.migrator.appliedIdentifiers(db).isEmpty else {
            throw GatewayError(.notFound, "The store holds nothing yet; serve makes it")
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
