package import GatewayCore

/// The replicas that serve the database. A replica that crashes leaves its row, until the others have closed its
/// chains.
package struct SQLReplicaStore: ReplicaStore {
    private let database: any SQLDatabase
    private let masterKey: String

    /// Heartbeats publish the fingerprint of the master key with which this process seals.
    package init(database: any SQLDatabase, masterKey fingerprint: String) {
        (self.database, self.masterKey) = (database, fingerprint)
    }

    package func heartbeat(of id: ReplicaID) async throws(GatewayError) -> [Replicas.Sighting] {
        // Each replica writes only its own row, so it needs no protection.
        try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            try db.execute(
                """
                INSERT INTO replicas (id, started_at, seen_at, master_key, schema)
                VALUES ($1, gateway_time(), gateway_time(), $2, $3)
                ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
                """,
                [.text(id.text), .text(self.masterKey), .string(SQLSchema.latestVersion)]
            )
            return try db.rows("SELECT id, gateway_time() - seen_at FROM replicas ORDER BY id") { row in
                Replicas.Sighting(id: ReplicaID(text: try row.text(0)), age: .microseconds(try row.int64(1)))
            }
        }
    }

    package func leave(_ id: ReplicaID) async throws(GatewayError) {
        // The replica's own chains, to which no process writes any more.
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

    /// Prevents replicas from starting until the transaction ends. Throws `conflict` if a live replica seals with
    /// another master key. For PostgreSQL, in a transaction whose statements each see what was committed before them.
    ///
    /// A replica sends its first heartbeat before it reads what the key opens. So a replica that waits here reads what
    /// this transaction writes. A replica that is silent for long enough to be taken for dead does not count.
    package static func requireMasterKey(_ fingerprint: String, _ db: any SQLConnection) throws {
        try db.execute("LOCK TABLE replicas IN SHARE MODE")
        let other = try db.first(
            "SELECT id FROM replicas WHERE master_key <> $1 AND seen_at > gateway_time() - $2 ORDER BY id LIMIT 1",
            [.text(fingerprint), .microseconds(Replicas.Sighting.deadAge)]
        ) { try $0.text(0) }
        guard let other else { return }
        throw GatewayError(
            .conflict,
            "A gateway serves this store with another master key (\(other)); restart it with both keys, or stop it"
        )
    }

    /// True if a live replica is of a release that does not know a step of the schema.
    static func hasEarlier(than step: String, _ db: any SQLConnection) throws -> Bool {
        try db.exists(
            "SELECT 1 FROM replicas WHERE schema < $1 AND seen_at > gateway_time() - $2",
            [.string(step), .microseconds(Replicas.Sighting.deadAge)]
        )
    }

    /// The fingerprints of the master keys with which live replicas seal.
    package static func masterKeys(in database: any SQLDatabase) async throws(GatewayError) -> Set<String> {
        try await database.read(scope: .gateway) { db in
            Set(
                try db.rows(
                    "SELECT DISTINCT master_key FROM replicas WHERE seen_at > gateway_time() - $1",
                    [.microseconds(Replicas.Sighting.deadAge)]
                ) { try $0.text(0) }
            )
        }
    }
}
