import GatewayCore

/// Which life of the store this is: a store that was restored or copied has another epoch than the one that it was
/// made from, so that nobody goes on reading where numbers mean something else (decision 0055).
///
/// A store knows where it was when it got its epoch, by `gateway_origin()`. Where it finds itself elsewhere, it gets
/// another.
package enum StoreEpoch {
    /// Gives the store another epoch if it has none, or is elsewhere than where it got it.
    static func confirm(in database: any SQLDatabase) async throws(GatewayError) {
        let isConfirmed = try await database.read(scope: .gateway) { try Self.current($0).isConfirmed }
        guard !isConfirmed else { return }
        try await database.write(scope: .gateway, isolation: .serializable) { try Self.confirm($0) }
    }

    /// The same, in the caller's transaction.
    static func confirm(_ db: any SQLConnection) throws {
        if try !Self.current(db).isConfirmed { try Self.renew(db) }
    }

    /// Gives the store another epoch, in the caller's transaction. Whoever fills a store from another one calls this
    /// last, and copies neither the epoch nor what replicas noted for each other.
    package static func renew(_ db: any SQLConnection) throws {
        // Numbers of another server's transactions may be far ahead of this one's, which would hide what they name. After
        // a fail-over they are not, and there is no time to write each row.
        let horizon = try db.first("SELECT gateway_change_horizon()") { try $0.int64(0) } ?? 0
        let last = try db.first("SELECT max(fed_in) FROM retired_tokens") { $0.isNull(0) ? 0 : try $0.int64(0) } ?? 0
        if last > horizon { try db.execute("UPDATE retired_tokens SET fed_in = fed_in - $1", [.int(last)]) }
        for table in ["retired_token_lists", "device_group_keys"] {
            try db.execute("UPDATE \(table) SET changed_in = 0 WHERE changed_in > $1", [.int(horizon)])
        }
        try db.execute("DELETE FROM retired_token_changes")
        try db.execute("DELETE FROM retired_token_counts")
        try db.execute(
            """
            INSERT INTO store_epoch (id, epoch, origin) VALUES (1, $1, gateway_origin())
            ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, origin = excluded.origin
            """,
            [.text(String(UInt64.random(in: .min ... .max), radix: 36))]
        )
    }

    /// The epoch, and whether the store is where it got it.
    static func current(_ db: any SQLConnection) throws -> (epoch: String, isConfirmed: Bool) {
        let sql = "SELECT epoch, CAST(CASE WHEN origin = gateway_origin() THEN 1 ELSE 0 END AS BIGINT) FROM store_epoch"
        return try db.first(sql) { (epoch: try $0.text(0), isConfirmed: try $0.bool(1)) } ?? ("", false)
    }

    /// The epoch alone, which a tenant's requests may read; empty before the store got one.
    static func text(_ db: any SQLConnection) throws -> String {
        try db.first("SELECT epoch FROM store_epoch") { try $0.text(0) } ?? ""
    }
}
