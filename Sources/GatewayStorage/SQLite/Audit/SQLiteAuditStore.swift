import GRDB
package import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The audit's chains in the gateway's own file.
package struct SQLiteAuditStore: AuditStore {
    /// How long one page may look for records; others wait for it.
    private static let pageDuration = Duration.milliseconds(250)

    private let database: SQLiteDatabase
    private let reader: SQLiteAuditReader

    /// An audit in an open database.
    package init(database: SQLiteDatabase) {
        self.database = database
        self.reader = SQLiteAuditReader(reading: database.scans)
    }

    /// Adds records and moves the writer's head, in one transaction; both are on the disk when it returns.
    ///
    /// Records that are there already are left alone, so that a commit can be repeated.
    ///
    /// - Throws: `storeUnavailable`, or `conflict` when another record is in the place of one; then nothing was added.
    package func append(_ records: [ChainedAuditRecord], head: AuditHead) async throws(GatewayError) {
        let memory = self.database.auditSpanMemory
        let entries = try await self.database.write { db in
            try Self.append(records, head: head, beyond: memory.entries, db)
        }
        memory.remember(entries)
    }

    /// Adds records and moves a head within a transaction.
    ///
    /// - Returns: what is entered of the records' spans now.
    static func append(
        _ records: [ChainedAuditRecord],
        head: AuditHead,
        beyond known: AuditSpanMemory.Entries,
        _ db: Database
    ) throws -> AuditSpanMemory.Entries {
        try AuditRowWriter(db: db).insert(records)
        let entries = try AuditSpans.note(records, beyond: known, db)
        // A repeated commit must not take the head back.
        try db.cachedStatement(
            sql: """
                INSERT INTO audit_heads (writer, sequence, hash, state, seal) VALUES (?, ?, ?, ?, ?)
                ON CONFLICT (writer) DO UPDATE SET
                    sequence = excluded.sequence, hash = excluded.hash, state = excluded.state, seal = excluded.seal
                WHERE excluded.sequence >= audit_heads.sequence
                """
        )
        .execute(arguments: [head.writer, head.sequence, Data(head.hash), head.state.rawValue, Data(head.seal)])
        return entries
    }

    /// Records that match, newest first.
    ///
    /// A page takes a bounded time, so it may hold fewer than asked for, or none, and still have a next.
    ///
    /// - Throws: `overloaded` when too many pages are asked for, `storeUnavailable`.
    package func page(_ query: AuditQuery) async throws(GatewayError) -> AuditPage {
        try await self.database.scan(for: query.tenantUID == nil ? nil : query.tenant) { db in
            let end = ContinuousClock.now + Self.pageDuration
            return try AuditPager.page(query, db) { ContinuousClock.now >= end }
        }
    }

    /// The end of every writer's chain, by rising writer.
    ///
    /// - Throws: `storeUnavailable`.
    package func heads() async throws(GatewayError) -> [AuditHead] {
        try await self.reader.heads()
    }

    /// Records of one writer, by rising sequence, after one of them.
    ///
    /// - Throws: `storeUnavailable`.
    package func records(
        of writer: Int,
        after sequence: Int,
        limit: Int
    ) async throws(GatewayError) -> [ChainedAuditRecord] {
        try await self.reader.records(of: writer, after: sequence, limit: limit)
    }

    /// Walks on along a chain.
    ///
    /// - Throws: `storeUnavailable`.
    package func walk(
        _ walker: AuditWalker,
        limit: Int
    ) async throws(GatewayError) -> (walker: AuditWalker, rows: Int) {
        try await self.reader.walk(walker, limit: limit)
    }

    /// The writers that have records, rising.
    ///
    /// - Throws: `storeUnavailable`.
    package func writersWithRecords() async throws(GatewayError) -> [Int] {
        try await self.reader.writersWithRecords()
    }
}
