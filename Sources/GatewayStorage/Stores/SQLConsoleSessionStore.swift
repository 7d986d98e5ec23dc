package import GatewayCore

/// The sessions of operators in the console.
package struct SQLConsoleSessionStore: ConsoleSessionStore {
    private let database: any SQLDatabase

    package init(database: any SQLDatabase) {
        self.database = database
    }

    package func session(_ digest: [UInt8]) async throws(GatewayError) -> ConsoleSession? {
        try await self.database.read(scope: .gateway) { db in
            let statement = """
                SELECT token_name, owner_digest, created_at, used_at FROM console_sessions WHERE digest = $1
                """
            return
                try db.rows(statement, [.bytes(digest)]) { row in
                    ConsoleSession(
                        digest: digest,
                        tokenName: try row.optionalText(0),
                        ownerDigest: try row.bytes(1),
                        createdAt: try row.time(2),
                        usedAt: try row.time(3)
                    )
                }
                .first
        }
    }

    package func add(_ session: ConsoleSession) async throws(GatewayError) {
        let idle = session.createdAt.advanced(by: .zero - ConsoleSession.idleLimit)
        let old = session.createdAt.advanced(by: .zero - ConsoleSession.lifetime)
        try await self.write(
            "DELETE FROM console_sessions WHERE used_at <= $1 OR created_at <= $2",
            [.time(idle), .time(old)]
        )
        // An attempt whose answer was lost may have added it.
        try await self.write(
            """
            INSERT INTO console_sessions (digest, token_name, owner_digest, created_at, used_at)
            VALUES ($1, $2, $3, $4, $5) ON CONFLICT (digest) DO NOTHING
            """,
            [
                .bytes(session.digest), .text(session.tokenName), .bytes(session.ownerDigest),
                .time(session.createdAt), .time(session.usedAt),
            ]
        )
    }

    package func touch(_ digest: [UInt8], at time: Timestamp) async throws(GatewayError) {
        let statement = "UPDATE console_sessions SET used_at = $2 WHERE digest = $1 AND used_at < $2"
        try await self.write(statement, [.bytes(digest), .time(time)])
    }

    package func remove(_ digest: [UInt8]) async throws(GatewayError) {
        try await self.write("DELETE FROM console_sessions WHERE digest = $1", [.bytes(digest)])
    }

    private func write(_ statement: String, _ values: [SQLValue]) async throws(GatewayError) {
        _ = try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            try db.execute(statement, values)
        }
    }
}
