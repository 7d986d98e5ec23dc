package import GatewayCore

/// The replicas that serve the database; one that ends without a word leaves its row to those who clear up after it.
package struct SQLReplicaStore: ReplicaStore {
    private let database: any SQLDatabase
    private let masterKey: String

    /// Heartbeats tell commands by which master key this process seals, by the key's fingerprint.
    package init(database: any SQLDatabase, masterKey fingerprint: String) {
        (self.database, self.masterKey) = (database, fingerprint)
    }

    package func heartbeat(of id: ReplicaID) async throws(GatewayError) -> [ReplicaSighting] {
        // Each replica writes its own row alone, so there is nothing to be protected from.
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            try db.execute(
                """
                INSERT INTO replicas (id, started_at, seen_at, master_key)
                VALUES ($1, gateway_time(), gateway_time(), $2)
                ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
                """,
                [.text(id.text), .text(self.masterKey)]
            )
            return try db.rows("SELECT id, gateway_time() - seen_at FROM replicas ORDER BY id") { row in
                ReplicaSighting(id: ReplicaID(text: try row.text(0)), age: .microseconds(try row.int64(1)))
            }
        }
    }

    package func leave(_ id: ReplicaID) async throws(GatewayError) {
        // Its own chains, which nobody writes any more.
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            _ = try db.execute(
                """
                DELETE FROM replicas WHERE id = $1 AND NOT EXISTS (
                    SELECT 1 FROM audit_writers JOIN audit_heads ON audit_heads.writer = audit_writers.writer
                    WHERE audit_writers.replica = $1 AND audit_heads.state = 'open')
                """,
                [.text(id.text)]
            )
        }
    }

    package func removeSilent(for age: Duration) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            _ = try db.execute(
                """
                DELETE FROM replicas WHERE seen_at + $1 <= gateway_time() AND NOT EXISTS (
                    SELECT 1 FROM audit_writers JOIN audit_heads ON audit_heads.writer = audit_writers.writer
                    WHERE audit_writers.replica = replicas.id AND audit_heads.state = 'open')
                """,
                [.microseconds(age)]
            )
        }
    }

    /// Keeps replicas from starting until the transaction ends, and throws `conflict` where one serves that seals by
    /// another master key; of PostgreSQL, in a transaction that sees what was committed before each statement.
    ///
    /// A replica's heartbeat comes before it reads what the key opens, so one that waits here reads what this transaction
    /// leaves. One that has been silent for so long that the others take it for dead counts for nothing.
    package static func requireMasterKey(_ fingerprint: String, _ db: any SQLConnection) throws {
        try db.execute("LOCK TABLE replicas IN SHARE MODE")
        let other = try db.first(
            "SELECT id FROM replicas WHERE master_key <> $1 AND seen_at > gateway_time() - $2 ORDER BY id LIMIT 1",
            [.text(fingerprint), .microseconds(ReplicaSighting.deadAge)]
        ) { try $0.text(0) }
        guard let other else { return }
        throw GatewayError(
            .conflict,
            "A gateway serves this store with another master key (\(other)); restart it with both keys, or stop it"
        )
    }

    /// The fingerprints of the master keys by which living replicas seal.
    package static func masterKeys(in database: any SQLDatabase) async throws(GatewayError) -> Set<String> {
        try await database.read(scope: .gateway) { db in
            Set(
                try db.rows(
                    "SELECT DISTINCT master_key FROM replicas WHERE seen_at > gateway_time() - $1",
                    [.microseconds(ReplicaSighting.deadAge)]
                ) { try $0.text(0) }
            )
        }
    }
}
