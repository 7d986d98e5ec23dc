import GRDB
import GatewayCore

/// Tells the gateway's own files from others.
enum SQLiteSchema {
    /// Stands in the file's header, where SQLite keeps a number for the application: `FCMG`.
    static let applicationID: Int32 = 0x4643_4D47

    /// - Throws: `invalid` unless the file is a gateway's store.
    static func requireOurs(_ db: Database) throws {
        guard try self.storedApplicationID(db) == self.applicationID else { throw self.foreign }
    }

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

    /// - Throws: `invalid` when a later gateway has been at the file.
    static func requireKnown(_ db: Database) throws {
        guard try SQLiteMigrations.migrator.hasBeenSuperseded(db) else { return }
        throw GatewayError(.invalid, "The store was written by a later version of the gateway; use that version")
    }

    /// - Throws: `invalid` when an earlier gateway was the last at the file.
    static func requireCurrent(_ db: Database) throws {
        guard try SQLiteMigrations.migrator.hasCompletedMigrations(db) else {
            throw GatewayError(
                .invalid,
                "The store is from an earlier version; start this version once, then try again"
            )
        }
    }

    /// - Throws: `invalid` when the file is from before there was an audit.
    static func requireAudit(_ db: Database) throws {
        guard try SQLiteMigrations.migrator.appliedIdentifiers(db).contains(SQLiteMigrations.audit) else {
            throw GatewayError(.invalid, "The store holds no audit log yet")
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
