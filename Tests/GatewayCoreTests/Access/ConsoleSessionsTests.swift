import FCMModel
import GatewayAudit
import GatewayTestKit
import Testing

@testable import GatewayCore

/// Sessions over SQLite, with clocks of the test.
struct ConsoleSessionsTests {
    private static let origin = RequestOrigin(method: "POST", requestID: "request")

    private let database = TestDatabase()
    private let time = Observed(Uptime.now)
    private let clock = ManualClock()
    private let audit: AuditLog

    init() {
        self.audit = AuditLog.sample(store: TestDatabase(self.database).auditStore, clock: self.clock)
    }

    /// A replica's sessions.
    private func replica(configured: String = "configured-token") -> (tokens: AdminTokens, sessions: ConsoleSessions) {
        let time = self.time
        let tokens = AdminTokens(
            configured: Secret(configured),
            store: self.database.adminTokenStore,
            pepper: .sample,
            audit: self.audit,
            clock: self.clock,
            maxStale: .seconds(900),
            uptime: { time.current }
        )
        let sessions = ConsoleSessions(
            tokens: tokens,
            store: self.database.consoleSessionStore,
            pepper: .sample,
            clock: self.clock,
            maxStale: .seconds(900),
            uptime: { time.current }
        )
        return (tokens, sessions)
    }

    private func advance(_ duration: Duration) {
        self.clock.advance(by: duration)
        self.time.change { $0 = $0.advanced(by: duration) }
    }

    private func caller(_ secret: Secret, _ sessions: ConsoleSessions, isUse: Bool = true) async -> Operator? {
        let bytes = secret.revealBytes()[...]
        await sessions.refresh(bytes, isUse: isUse)
        guard case .authenticated(let caller) = sessions.authenticate(bytes, at: self.clock.now()) else { return nil }
        return caller
    }

    private func logIn(_ token: Secret, _ replica: (tokens: AdminTokens, sessions: ConsoleSessions)) async throws
        -> Secret
    {
        await replica.tokens.refresh()
        guard
            case .authenticated(let caller) = replica.tokens.authenticate(
                token.revealBytes()[...],
                at: self.clock.now()
            )
        else { throw GatewayError(.invalid, "The token is unknown") }
        return try await replica.sessions.begin(by: caller, origin: Self.origin)
    }

    @Test(
        "A session is valid on each replica, and ends there within two seconds of a log-out or the token's revocation"
    )
    func life() async throws {
        try await self.audit.whileRunning {
            let (one, other) = (self.replica(), self.replica())
            let (_, token) = try await one.tokens.create(
                name: "alice",
                role: .operator,
                expiresAt: nil,
                origin: Self.origin
            )
            let (first, second) = (try await self.logIn(token, one), try await self.logIn(token, one))
            for replica in [one, other] {
                let caller = await self.caller(first, replica.sessions)
                #expect(caller?.name == "alice" && caller?.role == .operator)
                #expect(await self.caller(second, replica.sessions) != nil)
            }
            #expect(await self.caller(Secret("0"), one.sessions) == nil)

            try await one.sessions.end(first.revealBytes()[...], origin: Self.origin)
            #expect(await self.caller(first, one.sessions) == nil)
            self.advance(.seconds(2))
            #expect(await self.caller(first, other.sessions) == nil)
            #expect(await self.caller(second, other.sessions) != nil)

            try await one.tokens.revoke("alice", origin: Self.origin)
            #expect(await self.caller(second, one.sessions) == nil)
            self.advance(.seconds(2))
            #expect(await self.caller(second, other.sessions) == nil)
            // Another token of the same name does not bring it back.
            _ = try await one.tokens.create(name: "alice", role: .admin, expiresAt: nil, origin: Self.origin)
            #expect(await self.caller(second, one.sessions) == nil)
        }
    }

    @Test("A session ends after 30 minutes without use, and after 12 hours; pages that refresh themselves are no use")
    func time() async throws {
        try await self.audit.whileRunning {
            let replica = self.replica()
            let token = Secret("configured-token")
            let idle = try await self.logIn(token, replica)
            for _ in 0..<29 {
                self.advance(.seconds(60))
                #expect(await self.caller(idle, replica.sessions, isUse: false) != nil)
            }
            self.advance(.seconds(60))
            #expect(await self.caller(idle, replica.sessions) == nil)

            let used = try await self.logIn(token, replica)
            for _ in 0..<(12 * 3 - 1) {
                self.advance(.seconds(20 * 60))
                #expect(await self.caller(used, replica.sessions) != nil)
            }
            self.advance(.seconds(20 * 60))
            #expect(await self.caller(used, replica.sessions) == nil)
        }
    }

    @Test("A session of the configuration's token ends when that changes")
    func configured() async throws {
        try await self.audit.whileRunning {
            let secret = try await self.logIn(Secret("configured-token"), self.replica())
            #expect(await self.caller(secret, self.replica().sessions)?.role == .admin)
            #expect(await self.caller(secret, self.replica(configured: "another-token").sessions) == nil)
        }
    }

    @Test("While the store is down a known session stays valid for a bounded time")
    func outage() async throws {
        try await self.audit.whileRunning {
            let replica = self.replica()
            let secret = try await self.logIn(Secret("configured-token"), replica)
            #expect(await self.caller(secret, replica.sessions) != nil)
            self.database.refuse(true)
            self.advance(.seconds(899))
            #expect(await self.caller(secret, replica.sessions) != nil)
            self.advance(.seconds(1))
            guard case .stale = replica.sessions.authenticate(secret.revealBytes()[...], at: self.clock.now()) else {
                Issue.record("a session that could not be checked for too long")
                return
            }
        }
    }

    @Test("A row that was changed in the store, or copied from another session, is no session")
    func changedRows() async throws {
        try await self.audit.whileRunning {
            let replica = self.replica()
            let (_, token) = try await replica.tokens.create(
                name: "alice",
                role: .viewer,
                expiresAt: nil,
                origin: Self.origin
            )
            let secret = try await self.logIn(token, replica)
            let admin = try await self.logIn(Secret("configured-token"), replica)
            let store = self.database.consoleSessionStore
            let (own, other) = (self.digest(secret), self.digest(admin))
            let session = try #require(try await store.session(own))
            let others = try #require(try await store.session(other))
            #expect(session.tokenName == "alice" && others.tokenName == nil)
            let changes: [(inout ConsoleSession) -> Void] = [
                { $0.tokenName = nil },
                { ($0.tokenName, $0.ownerDigest) = (nil, others.ownerDigest) },
                { $0.createdAt = $0.createdAt.advanced(by: .seconds(1)) },
            ]
            for change in changes {
                var changed = session
                change(&changed)
                try await store.remove(own)
                try await store.add(changed)
                self.advance(.seconds(2))
                #expect(await self.caller(secret, replica.sessions) == nil)
            }
            try await store.remove(own)
            try await store.add(session)
            self.advance(.seconds(2))
            #expect(await self.caller(secret, replica.sessions)?.role == .viewer)
        }
    }

    private func digest(_ secret: Secret) -> [UInt8] {
        APIKey.Pepper.sample.digest(of: secret.revealBytes()[...], after: "console session\0")
    }

    @Test("Guesses do not reach the store")
    func guesses() async throws {
        let sessions = self.replica().sessions
        self.database.refuse(true)
        for guess in ["", "0", String(repeating: "0", count: 128), String(repeating: "é", count: 64)] {
            #expect(await self.caller(Secret(guess), sessions) == nil)
            guard case .unknown = sessions.authenticate(Array(guess.utf8)[...], at: self.clock.now()) else {
                Issue.record("\(guess) was looked up")
                return
            }
        }
    }

    @Test("A replica that has not read a session while the store is down can't tell whether it is valid")
    func unreadable() async throws {
        try await self.audit.whileRunning {
            let secret = try await self.logIn(Secret("configured-token"), self.replica())
            let other = self.replica()
            self.database.refuse(true)
            #expect(await self.caller(secret, other.sessions) == nil)
            guard case .stale = other.sessions.authenticate(secret.revealBytes()[...], at: self.clock.now()) else {
                Issue.record("a session was refused that could not be read")
                return
            }
        }
    }

    @Test("A form's token is of one session, and is not the session's secret")
    func forms() {
        let sessions = self.replica().sessions
        let (one, other) = (sessions.formToken(of: [1]), sessions.formToken(of: [2]))
        #expect(one != other && one == self.replica().sessions.formToken(of: [1]) && one.count == 64)
        #expect(sessions.isFormToken(one, of: [1]) && !sessions.isFormToken(one, of: [2]))
        #expect(!sessions.isFormToken("", of: [1]) && !sessions.isFormToken("0", of: [1]))
    }
}
