import GRDB
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes changes of the list of retired tokens within a transaction.
struct RetiredTokenWriter {
    /// The last places given away, of the tenants that the transaction has met; `nil` for one that is gone.
    private var positions: [RetiredTokenOwner: Int?] = [:]

    let db: Database

    init(db: Database) {
        self.db = db
    }

    mutating func apply(_ change: RetiredTokenChange) throws {
        switch change {
        case .put(let owner, let row, let keepsSince):
            guard try self.isThere(owner) else { return }
            try self.put(row, of: owner, keepsSince: keepsSince)
        case .move(let owner, let keys, let state):
            guard try self.isThere(owner) else { return }
            for key in keys { try self.move(key, of: owner, to: state) }
        case .touch(let owner, let key, let time):
            guard try self.isThere(owner) else { return }
            try self.execute(
                "UPDATE retired_tokens SET reported_at = ? WHERE tenant = ? AND key = ?",
                [time.microseconds, owner.tenant.text, Int64(bitPattern: key)]
            )
        case .remove(let owner, let key):
            guard try self.isThere(owner) else { return }
            try self.execute(
                "DELETE FROM retired_tokens WHERE tenant = ? AND key = ?",
                [owner.tenant.text, Int64(bitPattern: key)]
            )
        case .keepGuard(let owner, let purgeGuard):
            guard try self.isThere(owner) else { return }
            try self.keep(purgeGuard, of: owner)
        }
    }

    /// Keeps the places that were given away.
    func finish() throws {
        for case (let owner, let position?) in self.positions {
            try self.execute(
                "UPDATE retired_token_books SET last_position = ? WHERE tenant = ? AND last_position < ?",
                [position, owner.tenant.text, position]
            )
        }
    }

    /// Whether a tenant is there, in this very life; makes sure that it has a book.
    private mutating func isThere(_ owner: RetiredTokenOwner) throws -> Bool {
        if let position = self.positions[owner] { return position != nil }
        let isThere = try Bool.fetchOne(
            self.db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM tenants WHERE id = ? AND created_at = ?)"),
            arguments: [owner.tenant.text, owner.createdAt.microseconds]
        )
        guard isThere == true else {
            self.positions.updateValue(nil, forKey: owner)
            return false
        }
        try self.execute(
            """
            INSERT INTO retired_token_books
                (tenant, last_position, sent, unregistered, aged_at, surplus, jump_since, jump_sent, jump_unregistered)
            VALUES (?, 0, 0, 0, ?, 0, NULL, 0, 0)
            ON CONFLICT (tenant) DO NOTHING
            """,
            [owner.tenant.text, owner.createdAt.microseconds]
        )
        let position = try Int.fetchOne(
            self.db.cachedStatement(sql: "SELECT last_position FROM retired_token_books WHERE tenant = ?"),
            arguments: [owner.tenant.text]
        )
        self.positions.updateValue(position ?? 0, forKey: owner)
        return true
    }

    /// The place after all others.
    private mutating func nextPosition(of owner: RetiredTokenOwner) -> Int {
        let next = ((self.positions[owner] ?? nil) ?? 0) + 1
        self.positions.updateValue(next, forKey: owner)
        return next
    }

    private mutating func put(_ row: RetiredTokenRow, of owner: RetiredTokenOwner, keepsSince: Bool) throws {
        let position = row.state.isFed ? self.nextPosition(of: owner) : nil
        try self.execute(
            """
            INSERT INTO retired_tokens (tenant, key, kind, state, since, reported_at, replacement, sealed, position)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (tenant, key) DO UPDATE SET
                kind = excluded.kind, state = excluded.state,
                since = CASE WHEN ? THEN retired_tokens.since ELSE excluded.since END,
                reported_at = excluded.reported_at, replacement = excluded.replacement, sealed = excluded.sealed,
                position = excluded.position
            """,
            [
                owner.tenant.text, Int64(bitPattern: row.key), row.kind.rawValue, row.state.rawValue,
                row.since.microseconds, row.reportedAt.microseconds, row.replacement, Data(row.sealed), position,
                keepsSince,
            ]
        )
    }

    private mutating func move(_ key: UInt64, of owner: RetiredTokenOwner, to state: RetiredTokenState) throws {
        let position = state.isFed ? self.nextPosition(of: owner) : nil
        try self.execute(
            "UPDATE retired_tokens SET state = ?, position = ? WHERE tenant = ? AND key = ?",
            [state.rawValue, position, owner.tenant.text, Int64(bitPattern: key)]
        )
    }

    private func keep(_ purgeGuard: PurgeGuard, of owner: RetiredTokenOwner) throws {
        var since: Timestamp?
        var tally = PurgeGuard.Tally()
        if case .jump(let start, let jump) = purgeGuard.phase { (since, tally) = (start, jump) }
        try self.execute(
            """
            UPDATE retired_token_books SET
                sent = ?, unregistered = ?, aged_at = ?, surplus = ?,
                jump_since = ?, jump_sent = ?, jump_unregistered = ?
            WHERE tenant = ?
            """,
            [
                purgeGuard.history.sent, purgeGuard.history.unregistered, purgeGuard.agedAt.microseconds,
                purgeGuard.surplus, since?.microseconds, tally.sent, tally.unregistered, owner.tenant.text,
            ]
        )
    }

    private func execute(_ sql: String, _ arguments: StatementArguments) throws {
        try self.db.cachedStatement(sql: sql).execute(arguments: arguments)
    }
}
