package import GatewayCore

/// The named tokens of operators.
package struct SQLAdminTokenStore: AdminTokenStore {
    private let database: any SQLDatabase

    package init(database: any SQLDatabase) {
        self.database = database
    }

    package func tokens() async throws(GatewayError) -> [AdminToken] {
        try await self.database.read(scope: .gateway) { try Self.tokens($0) }
    }

    private static func tokens(_ db: any SQLConnection) throws -> [AdminToken] {
        try db.rows("SELECT name, role, digest, created_at, expires_at FROM admin_tokens ORDER BY name") { row in
            AdminToken(
                name: try row.text(0),
                role: try row.parsed(1) { OperatorRole(rawValue: $0) },
                createdAt: try row.time(3),
                expiresAt: try row.optionalTime(4),
                digest: try row.bytes(2)
            )
        }
    }

    package func add(_ token: AdminToken, atMost count: Int) async throws(GatewayError) {
        try await self.database.write(scope: .gateway, isolation: .serializable) { db in
            let tokens = try Self.tokens(db)
            // An attempt whose answer was lost may have added it.
            if tokens.contains(token) { return }
            guard !tokens.contains(where: { $0.name == token.name }) else {
                throw GatewayError(
                    .conflict,
                    "There is an admin token of this name; revoke it first, or choose another name"
                )
            }
            guard tokens.count < count else {
                throw GatewayError(.conflict, "There are \(count) admin tokens, which is the most")
            }
            try db.execute(
                "INSERT INTO admin_tokens (name, role, digest, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)",
                [
                    .text(token.name), .string(token.role.rawValue), .bytes(token.digest), .time(token.createdAt),
                    .time(token.expiresAt),
                ]
            )
        }
    }

    package func remove(
        _ name: String,
        keepsAdmin: Bool
    ) async throws(GatewayError) -> Bool {
        try await self.database.write(scope: .gateway, isolation: .serializable) { db in
            let others = try Self.tokens(db).filter { $0.name != name }
            // One that expires would leave none soon.
            let hasAdmin = others.contains { $0.role == .admin && $0.expiresAt == nil }
            guard hasAdmin || !keepsAdmin else {
                throw GatewayError(
                    .conflict,
                    "No token of the role admin without an expiry would be left; make another one, or set GATEWAY_ADMIN_TOKEN"
                )
            }
            return try db.execute("DELETE FROM admin_tokens WHERE name = $1", [.text(name)]) > 0
        }
    }
}
