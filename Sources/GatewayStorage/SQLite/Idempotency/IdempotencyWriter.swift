import GRDB
import GatewayCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Changes what is kept of idempotency keys within a transaction.
struct IdempotencyWriter {
    /// How many records give way at once where there is no room, so that a full store is not searched at each send.
    private static let evictionsAtOnce = 32

    let db: Database
    let bounds: IdempotencyBounds

    func apply(_ change: IdempotencyChange) throws -> IdempotencyChange.Outcome {
        switch change {
        case .reserve(let identity, let record):
            return try self.reserve(identity, record)
        case .update(let id, let state):
            try self.update(id, state)
            return .done
        case .release(let id):
            try self.execute("DELETE FROM idempotency_records WHERE id = ?", [id])
            return .done
        }
    }

    private func reserve(
        _ identity: IdempotencyIdentity,
        _ record: IdempotencyRecord
    ) throws -> IdempotencyChange.Outcome {
        try self.execute(
            "DELETE FROM idempotency_records WHERE tenant = ? AND route = ? AND key = ? AND expires_at <= ?",
            [
                identity.tenant.text, identity.route.rawValue, Data(identity.keyDigest), record.createdAt.microseconds,
            ]
        )
        guard let evicted = try self.makeRoom(for: identity.tenant) else { return .full }
        let (isFinished, content) = record.state.columns
        try self.execute(
            """
            INSERT INTO idempotency_records
                (tenant, route, key, fingerprint, message_id, created_at, expires_at, is_finished, weight, content)
            SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM tenants WHERE id = ? AND created_at = ?
            ON CONFLICT (tenant, route, key) DO NOTHING
            """,
            [
                identity.tenant.text, identity.route.rawValue, Data(identity.keyDigest), Data(record.fingerprint),
                record.messageID, record.createdAt.microseconds, record.expiresAt.microseconds, isFinished,
                record.state.weight, content, identity.tenant.text, identity.tenantCreatedAt.microseconds,
            ]
        )
        guard self.db.changesCount == 0 else { return .reserved(id: self.db.lastInsertedRowID, evicted: evicted) }
        return try self.isThere(identity) ? .taken : .tenantGone
    }

    private func update(_ id: Int64, _ state: IdempotencyRecord.State) throws {
        let (isFinished, content) = state.columns
        try self.execute(
            "UPDATE idempotency_records SET is_finished = ?, weight = ?, content = ? WHERE id = ?",
            [isFinished, state.weight, content, id]
        )
    }

    private func isThere(_ identity: IdempotencyIdentity) throws -> Bool {
        try Bool.fetchOne(
            self.db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM tenants WHERE id = ? AND created_at = ?)"),
            arguments: [identity.tenant.text, identity.tenantCreatedAt.microseconds]
        ) ?? false
    }

    // MARK: Room

    /// Makes room for one more record of a tenant.
    ///
    /// - Returns: how many finished records gave way; `nil` when there is no room and none can be made.
    private func makeRoom(for tenant: TenantID) throws -> Int? {
        var evicted = 0
        while true {
            guard let crowded = try self.crowdedTenant(tenant) else { return evicted }
            let count = try self.evict(from: crowded)
            guard count > 0 else { return nil }
            evicted += count
        }
    }

    /// Whose records have to give way before a tenant gets one more: its own, or those of the one that has most.
    private func crowdedTenant(_ tenant: TenantID) throws -> String? {
        let rows = try Row.fetchAll(
            self.db.cachedStatement(
                sql: "SELECT tenant, records, weight FROM idempotency_usage WHERE tenant IN ('', ?)"
            ),
            arguments: [tenant.text]
        )
        var isCrowded = false
        for row in rows {
            let reader = RowReader(row, of: "idempotency_usage")
            let (records, weight) = (
                try reader.value("records", as: Int.self), try reader.value("weight", as: Int.self)
            )
            if try reader.value("tenant", as: String.self).isEmpty {
                isCrowded = records >= self.bounds.maxRecords || weight >= self.bounds.maxBytes
            } else if records >= self.bounds.maxRecordsPerTenant || weight >= self.bounds.maxBytesPerTenant {
                return tenant.text
            }
        }
        guard isCrowded else { return nil }
        return try String.fetchOne(
            self.db.cachedStatement(
                sql: """
                    SELECT tenant FROM idempotency_usage WHERE tenant <> '' AND EXISTS (
                        SELECT 1 FROM idempotency_records
                        WHERE idempotency_records.tenant = idempotency_usage.tenant AND is_finished
                    )
                    ORDER BY weight DESC LIMIT 1
                    """
            )
        ) ?? tenant.text
    }

    private func evict(from tenant: String) throws -> Int {
        try self.execute(
            """
            DELETE FROM idempotency_records WHERE id IN (
                SELECT id FROM idempotency_records WHERE tenant = ? AND is_finished ORDER BY id LIMIT ?
            )
            """,
            [tenant, Self.evictionsAtOnce]
        )
        return self.db.changesCount
    }

    private func execute(_ sql: String, _ arguments: StatementArguments) throws {
        try self.db.cachedStatement(sql: sql).execute(arguments: arguments)
    }
}

extension IdempotencyRecord.State {
    /// What stands in the columns `is_finished` and `content`.
    fileprivate var columns: (isFinished: Bool, content: Data) {
        switch self {
        case .open(let progress): (false, Data(progress))
        case .finished(let answer): (true, Data(answer))
        }
    }
}
