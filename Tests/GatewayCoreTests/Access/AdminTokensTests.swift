import FCMModel
import GatewayAudit
import GatewayTestKit
import Testing

@testable import GatewayCore

/// Operators' tokens over SQLite, with a clock of the test.
struct AdminTokensTests {
    private static let text = "correct-horse-battery"
    private static let prefix = Array("fga_".utf8)[...]
    private static let origin = RequestOrigin(method: "POST", requestID: "request")

    private let database = TestDatabase()
    private let time = Observed(Uptime.now)
    private let clock = ManualClock()
    private let audit: AuditLog

    init() {
        self.audit = AuditLog.sample(store: TestDatabase(self.database).auditStore, clock: self.clock)
    }

    private func tokens(configured: String? = Self.text, maxStale: Duration = .seconds(900)) -> AdminTokens {
        let time = self.time
        return AdminTokens(
            configured: configured.map { Secret($0) },
            store: self.database.adminTokenStore,
            pepper: .sample,
            audit: self.audit,
            clock: self.clock,
            maxStale: maxStale,
            uptime: { time.current }
        )
    }

    private func role(_ secret: Secret, _ tokens: AdminTokens) -> OperatorRole? {
        guard case .authenticated(let caller) = self.outcome(secret.revealText(), tokens) else { return nil }
        return caller.role
    }

    private func outcome(_ text: String, _ tokens: AdminTokens) -> AdminTokens.Outcome {
        tokens.authenticate(Array(text.utf8)[...], at: self.clock.now())
    }

    @Test(
        "The token of the configuration is an admin's, and any other text is no token",
        arguments: [
            "", "correct-horse-batter", "correct-horse-battery ", "Correct-horse-battery", "correct-horse-battery\u{0}",
            "fga_", "fga_correct-horse-battery",
        ]
    )
    func configured(other: String) async {
        let tokens = self.tokens()
        #expect(self.role(Secret(Self.text), tokens) == .admin)
        await tokens.refresh(for: Self.prefix)
        guard case .unknown = self.outcome(other, tokens) else {
            Issue.record("\(other) was taken for a token")
            return
        }
    }

    @Test("A named token has its role until it expires or is revoked, on each replica within two seconds")
    func named() async throws {
        try await self.audit.whileRunning {
            let (one, other) = (self.tokens(), self.tokens())
            let end = self.clock.now().advanced(by: .seconds(60))
            let (token, secret) = try await one.create(
                name: "alice",
                role: .operator,
                expiresAt: end,
                origin: Self.origin
            )
            #expect(try await one.list() == [token] && secret.revealText().hasPrefix("fga_"))
            #expect(self.role(secret, one) == .operator)
            await other.refresh(for: Self.prefix)
            #expect(self.role(secret, other) == .operator)
            #expect(self.role(Secret(secret.revealText() + "0"), other) == nil)

            try await one.revoke("alice", origin: Self.origin)
            #expect(self.role(secret, one) == nil)
            // Its last reading is not old enough.
            await other.refresh(for: Self.prefix)
            #expect(self.role(secret, other) == .operator)
            self.time.change { $0 = $0.advanced(by: .seconds(2)) }
            await other.refresh(for: Self.prefix)
            #expect(self.role(secret, other) == nil)

            let (_, brief) = try await one.create(name: "bob", role: .viewer, expiresAt: end, origin: Self.origin)
            self.clock.advance(by: .seconds(60))
            #expect(self.role(brief, one) == nil)
        }
    }

    @Test(
        "A row that was changed in the store matches no token",
        arguments: ["name = 'eve'", "role = 'admin'", "expires_at = NULL"]
    )
    func forged(change: String) async throws {
        try await self.audit.whileRunning {
            let tokens = self.tokens()
            let (_, secret) = try await tokens.create(
                name: "alice",
                role: .viewer,
                expiresAt: self.clock.now().advanced(by: .seconds(60)),
                origin: Self.origin
            )
            try await self.database.execute("UPDATE admin_tokens SET \(change)")
            let other = self.tokens()
            await other.refresh(for: Self.prefix)
            #expect(self.role(secret, other) == nil)
        }
    }

    @Test("While the store can't be read, named tokens are valid for a time, and the configured one stays valid")
    func stale() async throws {
        try await self.audit.whileRunning {
            let tokens = self.tokens(maxStale: .seconds(60))
            let (_, secret) = try await tokens.create(name: "a", role: .admin, expiresAt: nil, origin: Self.origin)
            self.database.refuse()
            for (seconds, isValid) in [(59, true), (1, false)] {
                self.time.change { $0 = $0.advanced(by: .seconds(seconds)) }
                await tokens.refresh(for: Self.prefix)
                #expect((self.role(secret, tokens) == .admin) == isValid)
            }
            guard case .stale = self.outcome(secret.revealText(), tokens) else {
                Issue.record("A token that can't be checked was refused as unknown")
                return
            }
            #expect(self.role(Secret(Self.text), tokens) == .admin)
            self.database.refuse(false)
            await tokens.refresh(for: Self.prefix)
            #expect(self.role(secret, tokens) == .admin)
        }
    }

    private static func expect(_ code: GatewayError.Code, _ body: () async throws -> Void) async {
        do {
            try await body()
            Issue.record("It was done")
        } catch {
            #expect((error as? GatewayError)?.code == code)
        }
    }

    @Test("The last token of an admin can be revoked only while the configuration has one")
    func last() async throws {
        try await self.audit.whileRunning {
            let configured = self.tokens()
            try await configured.requireAdmin()
            let alone = self.tokens(configured: nil)
            await Self.expect(.invalid) { try await alone.requireAdmin() }
            let end = self.clock.now().advanced(by: .seconds(60))
            _ = try await configured.create(name: "brief", role: .admin, expiresAt: end, origin: Self.origin)
            _ = try await configured.create(name: "chief", role: .admin, expiresAt: nil, origin: Self.origin)
            _ = try await configured.create(name: "clerk", role: .operator, expiresAt: nil, origin: Self.origin)
            try await alone.requireAdmin()
            try await alone.revoke("clerk", origin: Self.origin)
            // The other admin's token expires.
            await Self.expect(.conflict) { try await alone.revoke("chief", origin: Self.origin) }
            try await configured.revoke("chief", origin: Self.origin)
            // A gateway whose only admin's token has expired restarts all the same.
            self.clock.advance(by: .seconds(60))
            try await alone.requireAdmin()
            try await configured.revoke("brief", origin: Self.origin)
            await Self.expect(.invalid) { try await alone.requireAdmin() }
            await Self.expect(.notFound) { try await configured.revoke("chief", origin: Self.origin) }
        }
    }

    @Test("Names are unique, and each change is recorded by the operator's name")
    func recorded() async throws {
        try await self.audit.whileRunning {
            let tokens = self.tokens()
            let origin = RequestOrigin(
                method: "POST",
                requestID: "request",
                operator: Operator(name: "chief", role: .admin)
            )
            _ = try await tokens.create(name: "alice", role: .viewer, expiresAt: nil, origin: origin)
            await Self.expect(.conflict) {
                _ = try await tokens.create(name: "alice", role: .admin, expiresAt: nil, origin: origin)
            }
            try await tokens.revoke("alice", origin: Self.origin)
            let records = try await self.database.auditRecords().filter { $0.action.hasPrefix("admin_token") }
            let outcomes = records.filter { $0.outcome != .intent }
                .map { "\($0.principal) \($0.action) \($0.object ?? "")" }
            #expect(
                outcomes == [
                    "admin:chief admin_token.create alice viewer", "admin:chief admin_token.create alice admin",
                    "admin admin_token.revoke alice",
                ]
            )
        }
    }
}
