package import GatewayCore

extension SQLAuditStore {
    /// The longest that one page searches. Other lists wait for it.
    private static let pageDuration = Duration.milliseconds(250)

    package func page(_ query: AuditQuery) async throws(GatewayError) -> AuditQuery.Page {
        var scope = SQLScope.gateway
        if query.tenantUID != nil, let tenant = query.tenant { scope = .tenant(tenant) }
        return try await self.database.read(.listing, scope: scope) { db in
            let end = Uptime.now + Self.pageDuration
            return try AuditPager.page(query, db) { Uptime.now >= end }
        }
    }
}

/// Finds a page of the audit within one read.
///
/// It follows the index by time in steps of a bounded number of records, and checks the time after each step. A rare
/// match therefore takes its reader several pages, and not the gateway a long read. Each page examines at least one
/// record, so that pages come to an end.
///
/// Positions and sizes are read first, then the records of the page: PostgreSQL sends all rows of a statement, even if
/// the reader stops early.
struct AuditPager {
    /// The most records that one step examines.
    static let step = 4_096
    /// The bodies of one page, in bytes. A list of a thousand recipients has some 70,000.
    private static let maxBytes = 4 << 20
    /// A record may be earlier than its message's id by this much, because clocks are sometimes set.
    private static let leadMicroseconds: Int64 = 10 * 1_000_000
    /// A record may be later by this much: a send ends within its deadline of 20 s.
    private static let lagMicroseconds: Int64 = 60 * 1_000_000
    private static let order = "ORDER BY time DESC, writer DESC, sequence DESC"

    /// The owner of the records: one life of a tenant, or all tenants.
    private typealias Owner = (tenant: String, uid: UInt64)?

    /// The result of following the index, and the last position examined; `nil` at the index's end.
    private struct Walk {
        var records: [ChainedAuditRecord] = []
        var reached: AuditQuery.Cursor?
    }

    private let query: AuditQuery
    private let db: any SQLConnection
    /// The position above the search. The index is read downwards from it.
    private let upper: AuditQuery.Cursor
    private let lower: AuditQuery.Cursor
    private let limit: Int

    private init(_ query: AuditQuery, _ db: any SQLConnection) {
        (self.query, self.db, self.limit) = (query, db, max(1, query.limit))
        var (from, to) = (query.from?.microseconds ?? .min, query.to?.microseconds ?? .max)
        if let made = query.messageID.flatMap(Self.microseconds(inUUID:)) {
            from = max(from, made - Self.leadMicroseconds)
            to = min(to, made + Self.lagMicroseconds)
        }
        self.lower = AuditQuery.Cursor(before: from)
        self.upper = query.before.flatMap { $0.time.microseconds < to ? $0 : nil } ?? AuditQuery.Cursor(before: to)
    }

    /// Finds a page. It ends with what it has found when `isTimeUp` returns true.
    ///
    /// An operator's list by a tenant's name includes all tenants that had the name, each by its own walk. Records
    /// below the position that another walk has reached are left to the next page.
    static func page(_ query: AuditQuery, _ db: any SQLConnection, isTimeUp: () -> Bool) throws -> AuditQuery.Page {
        let pager = AuditPager(query, db)
        let walks = try pager.owners().map { try pager.walk($0, isTimeUp) }
        let reached = walks.compactMap(\.reached).max { Self.isBefore($0, $1) }
        var records = walks.flatMap(\.records)
        if let reached { records.removeAll { Self.isBefore(AuditQuery.Cursor($0), reached) } }
        records.sort { Self.isBefore(AuditQuery.Cursor($1), AuditQuery.Cursor($0)) }
        guard records.count > pager.limit else { return AuditQuery.Page(records: records, next: reached) }
        records.removeLast(records.count - pager.limit)
        return AuditQuery.Page(records: records, next: records.last.map { AuditQuery.Cursor($0) })
    }

    private static func isBefore(_ one: AuditQuery.Cursor, _ other: AuditQuery.Cursor) -> Bool {
        (one.time, one.position.writer, one.position.sequence)
            < (other.time, other.position.writer, other.position.sequence)
    }

    private func owners() throws -> [Owner] {
        guard let tenant = self.query.tenant else { return [nil] }
        if let uid = self.query.tenantUID { return [(tenant, uid)] }
        // Jumps from life to life. DISTINCT would examine every record.
        let first = "SELECT tenant_uid FROM audit_records WHERE tenant = $1"
        let order = "ORDER BY tenant_uid LIMIT 1"
        var owners: [Owner] = []
        var next = try self.db.first("\(first) \(order)", [.text(tenant)]) { try $0.int64(0) }
        while let uid = next {
            owners.append((tenant, UInt64(bitPattern: uid)))
            let values: [SQLValue] = [.text(tenant), .int(uid)]
            next = try self.db.first("\(first) AND tenant_uid > $2 \(order)", values) { try $0.int64(0) }
        }
        return owners
    }

    /// Walks downwards until it has one record more than the page takes, the time is up, or no record is left.
    private func walk(_ owner: Owner, _ isTimeUp: () -> Bool) throws -> Walk {
        let filters = self.filters
        var walk = Walk()
        var (bytes, batch) = (0, self.limit + 1)
        var upper = self.upper
        while true {
            var conditions = Conditions()
            if let owner { conditions.add("tenant = $ AND tenant_uid = $", [.text(owner.tenant), .uid(owner.uid)]) }
            conditions.add("(time, writer, sequence) < ($, $, $)", upper.values)
            // Without a filter, each examined record belongs to the page.
            let end = filters.isEmpty ? nil : try self.endOfStep(conditions)
            conditions.add("(time, writer, sequence) >= ($, $, $)", (end ?? self.lower).values)
            for filter in filters { conditions.add("instr(body, $) > 0", [.blob(filter)]) }
            let matches = try self.db.rows(
                """
                SELECT time, writer, sequence, length(body) FROM audit_records \(conditions.text) \(Self.order)
                LIMIT \(batch)
                """,
                conditions.values
            ) { (place: try $0.cursor(0), size: try $0.int(3)) }
            var (places, size) = ([AuditQuery.Cursor](), 0)
            for match in matches where bytes + size < Self.maxBytes {
                places.append(match.place)
                size += match.size
            }
            let found = try self.records(at: places)
            walk.records += found
            bytes += found.reduce(0) { $0 + $1.entry.body.count }
            if walk.records.count > self.limit { return walk }
            let isCut = places.count < matches.count || matches.count == batch
            if let last = places.last, isCut {
                // The page is full, or some records contain a filter's bytes without matching, and the step has more.
                if bytes >= Self.maxBytes || isTimeUp() {
                    walk.reached = last
                    return walk
                }
                upper = last
                batch = min(2 * batch, max(Self.step, batch))
                continue
            }
            guard let end else { return walk }
            upper = end
            if bytes >= Self.maxBytes || isTimeUp() {
                walk.reached = end
                return walk
            }
        }
    }

    /// The matching records at some positions, in the same order.
    private func records(at places: [AuditQuery.Cursor]) throws -> [ChainedAuditRecord] {
        var records: [ChainedAuditRecord] = []
        try self.db.queryMany(
            """
            SELECT writer, sequence, time, tenant, body, hash FROM audit_records WHERE writer = $1 AND sequence = $2
            """,
            places.map { [.int($0.position.writer), .int($0.position.sequence)] }
        ) { _, row in
            if let record = Self.record(row), self.query.matches(record.record) { records.append(record) }
        }
        return records
    }

    /// The last position of a step. `nil` if fewer records are left.
    private func endOfStep(_ conditions: Conditions) throws -> AuditQuery.Cursor? {
        var conditions = conditions
        conditions.add("(time, writer, sequence) >= ($, $, $)", self.lower.values)
        return try self.db.first(
            """
            SELECT time, writer, sequence FROM audit_records \(conditions.text) \(Self.order)
            LIMIT 1 OFFSET \(Self.step - 1)
            """,
            conditions.values
        ) { try $0.cursor(0) }
    }

    /// Byte sequences that the body of a matching record contains. They may be in another field, so not all such
    /// records match.
    private var filters: [[UInt8]] {
        var filters = [
            self.query.action, self.query.outcome?.rawValue, self.query.code, self.query.principal,
            self.query.requestID, self.query.messageID,
        ]
        .compactMap { $0.map { Array($0.utf8) } }
        if let target = self.query.target {
            var bytes: [UInt8] = []
            target.append(to: &bytes)
            filters.append(bytes)
        }
        return filters
    }

    /// Returns `nil` for a record that the gateway would not have written. Verification finds it; pages leave it out.
    private static func record(_ row: SQLRow) -> ChainedAuditRecord? {
        do {
            let (writer, sequence, hash) = (try row.int(0), try row.int(1), try row.bytes(5))
            let entry = AuditChain.Entry(time: try row.time(2), tenant: try row.optionalText(3), body: try row.bytes(4))
            guard entry.isReadable else { return nil }
            return ChainedAuditRecord(writer: writer, sequence: sequence, entry: entry, hash: hash)
        } catch {
            return nil
        }
    }

    /// The conditions of a statement, with the values of their parameters.
    private struct Conditions {
        private(set) var text = ""
        private(set) var values: [SQLValue] = []

        /// Adds a condition, in which each `$` stands for the next value.
        mutating func add(_ condition: String, _ values: [SQLValue]) {
            self.text += self.text.isEmpty ? "WHERE " : "AND "
            var number = self.values.count
            for character in condition {
                self.text.append(character)
                guard character == "$" else { continue }
                number += 1
                self.text += "\(number)"
            }
            self.text += " "
            self.values += values
        }
    }

    /// The time at the start of a UUID of version 7 (RFC 9562, 5.7). `nil` for any other text.
    private static func microseconds(inUUID text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count == 36, bytes[8] == UInt8(ascii: "-"), bytes[14] == UInt8(ascii: "7") else { return nil }
        return Int64(String(decoding: bytes[0..<8] + bytes[9..<13], as: UTF8.self), radix: 16).map { $0 * 1_000 }
    }
}

extension AuditQuery.Cursor {
    /// The position before all records of a moment.
    fileprivate init(before microseconds: Int64) {
        self.init(
            time: Timestamp(microseconds: microseconds),
            position: AuditChain.Position(writer: .min, sequence: .min)
        )
    }

    /// The order of records.
    fileprivate var values: [SQLValue] { [.time(self.time), .int(self.position.writer), .int(self.position.sequence)] }
}

extension SQLRow {
    /// The position whose time, writer and sequence are in a column and the next two.
    fileprivate func cursor(_ column: Int) throws(DamagedValue) -> AuditQuery.Cursor {
        let position = AuditChain.Position(writer: try self.int(column + 1), sequence: try self.int(column + 2))
        return AuditQuery.Cursor(time: try self.time(column), position: position)
    }
}
