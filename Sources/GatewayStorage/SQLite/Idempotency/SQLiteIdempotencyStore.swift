import GRDB
package import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What became of sends that carry an idempotency key, in the gateway's own file.
package struct SQLiteIdempotencyStore: IdempotencyStore {
    private let database: SQLiteDatabase
    private let bounds: IdempotencyBounds

    /// A store in an open database.
    ///
    /// - Parameters:
    ///   - database: the database.
    ///   - bounds: how much is kept.
    package init(database: SQLiteDatabase, bounds: IdempotencyBounds = IdempotencyBounds()) {
        self.database = database
        self.bounds = bounds
    }

    /// What is kept of a key, whether expired or not.
    ///
    /// - Throws: `storeUnavailable`, also for stored values that this version does not understand.
    package func record(of identity: IdempotencyIdentity) async throws(GatewayError) -> StoredIdempotencyRecord? {
        try await self.database.read { db in
            let row = try Row.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT records.id, fingerprint, message_id, records.created_at, expires_at, is_finished, content
                        FROM idempotency_records AS records JOIN tenants ON tenants.id = records.tenant
                        WHERE tenant = ? AND tenants.created_at = ? AND route = ? AND key = ?
                        """
                ),
                arguments: [
                    identity.tenant.text, identity.tenantCreatedAt.microseconds, identity.route.rawValue,
                    Data(identity.keyDigest),
                ]
            )
            return try row.map(Self.record)
        }
    }

    /// Makes changes in their order, in one transaction; they are on the disk when it returns.
    ///
    /// - Throws: `storeUnavailable`; then nothing was changed.
    package func apply(
        _ changes: [IdempotencyChange]
    ) async throws(GatewayError) -> [IdempotencyChange.Outcome] {
        let bounds = self.bounds
        return try await self.database.write { db in
            let writer = IdempotencyWriter(db: db, bounds: bounds)
            return try changes.map(writer.apply)
        }
    }

    /// Drops records whose time is up, those first that expired first, and stores how far the time has come.
    ///
    /// - Throws: `storeUnavailable`; then nothing was changed.
    package func purge(at mark: IdempotencyMark, limit: Int) async throws(GatewayError) -> Int {
        try await self.database.write { db in
            try db.cachedStatement(
                sql: """
                    INSERT INTO idempotency_mark (id, time, wall) VALUES (1, ?, ?)
                    ON CONFLICT (id) DO UPDATE SET time = excluded.time, wall = excluded.wall
                    """
            )
            .execute(arguments: [mark.time.microseconds, mark.wall.microseconds])
            try db.cachedStatement(
                sql: """
                    DELETE FROM idempotency_records WHERE id IN (
                        SELECT id FROM idempotency_records WHERE expires_at <= ? ORDER BY expires_at LIMIT ?
                    )
                    """
            )
            .execute(arguments: [mark.time.microseconds, limit])
            return db.changesCount
        }
    }

    /// The mark that was stored last.
    ///
    /// - Throws: `storeUnavailable`, also for stored values that this version does not understand.
    package func mark() async throws(GatewayError) -> IdempotencyMark? {
        try await self.database.read { db in
            let row = try Row.fetchOne(db.cachedStatement(sql: "SELECT time, wall FROM idempotency_mark"))
            return try row.map { row in
                let reader = RowReader(row, of: "idempotency_mark")
                return IdempotencyMark(time: try reader.time("time"), wall: try reader.time("wall"))
            }
        }
    }

    private static func record(_ row: Row) throws -> StoredIdempotencyRecord {
        let reader = RowReader(row, of: "idempotency_records")
        let content = try reader.bytes("content")
        return StoredIdempotencyRecord(
            id: try reader.value("id"),
            record: IdempotencyRecord(
                fingerprint: try reader.bytes("fingerprint"),
                messageID: try reader.value("message_id"),
                createdAt: try reader.time("created_at"),
                expiresAt: try reader.time("expires_at"),
                state: try reader.value("is_finished") ? .finished(answer: content) : .open(progress: content)
            )
        )
    }
}
