import Crypto
import FCMModel
import Synchronization

/// The rights of an operator. Each role has those of the roles before it.
package enum OperatorRole: String, Sendable, Hashable, CaseIterable, Comparable {
    /// Reads tenants, keys without their secrets, limits and batches.
    case viewer
    /// Reads the audit.
    case auditor
    /// Changes keys, limits and batches.
    case `operator`
    /// Changes tenants, credentials and admin tokens.
    case admin

    package static func < (one: OperatorRole, other: OperatorRole) -> Bool { one.rank < other.rank }

    private var rank: Int {
        switch self {
        case .viewer: 0
        case .auditor: 1
        case .operator: 2
        case .admin: 3
        }
    }
}

/// An authenticated operator. It is a class because it travels with every request.
package final class Operator: Sendable {
    /// The name of the token; `nil` for the token of the configuration.
    package let name: String?
    package let role: OperatorRole
    /// The keyed digest of the token.
    package let tokenDigest: [UInt8]

    package init(name: String? = nil, role: OperatorRole = .admin, tokenDigest: [UInt8] = []) {
        (self.name, self.role, self.tokenDigest) = (name, role, tokenDigest)
    }

    /// The operator's name in the audit.
    package var auditName: String { self.name.map { "admin:\($0)" } ?? "admin" }
}

/// The named token of an operator as it is stored: everything but the token itself.
package struct AdminToken: Sendable, Hashable {
    /// The beginning of every token's text.
    package static let prefix = "fga_"

    package var name: String
    package var role: OperatorRole
    package var createdAt: Timestamp
    /// The time from which it is refused.
    package var expiresAt: Timestamp?
    /// The keyed digest of the token and of all above: a row that was changed in the store matches no token.
    package var digest: [UInt8]

    package init(name: String, role: OperatorRole, createdAt: Timestamp, expiresAt: Timestamp?, digest: [UInt8] = []) {
        (self.name, self.role, self.createdAt, self.expiresAt) = (name, role, createdAt, expiresAt)
        self.digest = digest
    }

    /// The text that the digest covers before the token.
    fileprivate var digested: String {
        let end = self.expiresAt.map { "\($0.microseconds)" } ?? ""
        return "admin token\0\(self.name)\0\(self.role.rawValue)\0\(self.createdAt.microseconds)\0\(end)\0"
    }
}

extension AdminToken {
    fileprivate func outcome(at now: Timestamp) -> AdminTokens.Outcome {
        guard self.expiresAt.map({ now < $0 }) ?? true else { return .unknown }
        return .authenticated(Operator(name: self.name, role: self.role, tokenDigest: self.digest))
    }
}

/// The store of operators' tokens. Calls throw `storeUnavailable`, besides what they say.
package protocol AdminTokenStore: Sendable {
    /// All tokens, by name.
    func tokens() async throws(GatewayError) -> [AdminToken]

    /// Adds a token. Throws `conflict` if there is one of its name, or if there are so many.
    func add(_ token: AdminToken, atMost count: Int) async throws(GatewayError)

    /// Deletes a token. Returns false if there is none of this name. Throws `conflict` if no token of an admin that never
    /// expires would be left, and one is needed.
    func remove(_ name: String, keepsAdmin: Bool) async throws(GatewayError) -> Bool
}

/// The tokens by which operators are authenticated: the one of the configuration, and the named ones of the store.
///
/// The named tokens are in memory. They are read again before a request with a token if they are older than two seconds,
/// so a token that another replica has revoked is refused soon. If the store can't be read, they stay valid for
/// `store.maxStaleMs`.
package final class AdminTokens: Sendable {
    /// The result of an authentication.
    package enum Outcome: Sendable {
        case authenticated(Operator)
        case unknown
        /// The store could not be read for too long, so the token may have been revoked.
        case stale
    }

    /// The most named tokens. Each request is compared with all of them.
    package static let maxCount = 100
    private static let freshness = Duration.seconds(2)

    private struct State {
        var tokens: [AdminToken] = []
        /// The moment at which the last reading that succeeded began.
        var readAt: Uptime?
        /// True if a token was changed here since.
        var isOutdated = false
        var isReading = false
    }

    private let configured: Secret?
    private let comparisonKey = SymmetricKey(size: .bits256)
    private let store: any AdminTokenStore
    private let pepper: APIKey.Pepper
    private let audit: AuditLog
    private let clock: any WallClock
    private let maxStale: Duration
    private let uptime: @Sendable () -> Uptime
    /// The operator with the token of the configuration.
    private let owner: Operator
    private let state = Mutex(State())

    /// - Parameters:
    ///   - configured: the token of the configuration, whose role is `admin`.
    ///   - maxStale: the age at which named tokens are refused if the store can't be read.
    ///   - uptime: a monotonic clock.
    package init(
        configured: Secret?,
        store: any AdminTokenStore,
        pepper: APIKey.Pepper,
        audit: AuditLog,
        clock: any WallClock,
        maxStale: Duration,
        uptime: @escaping @Sendable () -> Uptime = { .now }
    ) {
        (self.configured, self.store, self.pepper, self.audit) = (configured, store, pepper, audit)
        (self.clock, self.maxStale, self.uptime) = (clock, maxStale, uptime)
        let digest = configured.map { pepper.digest(of: $0.revealBytes()[...], after: "configured admin token\0") }
        self.owner = Operator(tokenDigest: digest ?? [])
    }

    // MARK: Authentication

    /// Reads the named tokens before one of them is authenticated, unless they were read just now, or another request
    /// reads them. A failure leaves them as they are.
    package func refresh(for bytes: ArraySlice<UInt8>) async {
        if bytes.starts(with: AdminToken.prefix.utf8) { await self.refresh() }
    }

    func refresh() async {
        let now = self.uptime()
        let isNeeded = self.state.withLock { state in
            let isFresh = !state.isOutdated && state.readAt.map { now - $0 < Self.freshness } ?? false
            let mayWait = state.readAt == nil || !state.isReading
            guard !isFresh, mayWait else { return false }
            state.isReading = true
            return true
        }
        if isNeeded { await self.read() }
    }

    private func read() async {
        let now = self.uptime()
        let tokens = try? await self.store.tokens()
        self.state.withLock { state in
            state.isReading = false
            // Of two readings, the one that began later is kept.
            guard let tokens, state.readAt.map({ $0 <= now }) ?? true else { return }
            (state.tokens, state.readAt, state.isOutdated) = (tokens, now, false)
        }
    }

    /// Authenticates the bytes of a token. Takes the same time whatever part of it is right.
    package func authenticate(_ bytes: ArraySlice<UInt8>, at now: Timestamp) -> Outcome {
        if let configured = self.configured, self.isEqual(configured, bytes) { return .authenticated(self.owner) }
        guard bytes.starts(with: AdminToken.prefix.utf8) else { return .unknown }
        let (tokens, readAt) = self.state.withLock { ($0.tokens, $0.readAt) }
        guard let readAt, self.uptime() - readAt < self.maxStale else { return .stale }
        for token in tokens where self.pepper.matches(bytes, after: token.digested, digest: token.digest) {
            return token.outcome(at: now)
        }
        return .unknown
    }

    /// The operator who has the token of a name, or that of the configuration.
    func outcome(name: String?, at now: Timestamp) -> Outcome {
        guard let name else { return self.configured == nil ? .unknown : .authenticated(self.owner) }
        let (tokens, readAt) = self.state.withLock { ($0.tokens, $0.readAt) }
        guard let readAt, self.uptime() - readAt < self.maxStale else { return .stale }
        return tokens.first { $0.name == name }?.outcome(at: now) ?? .unknown
    }

    private func isEqual(_ secret: Secret, _ bytes: ArraySlice<UInt8>) -> Bool {
        let code = HMAC<SHA256>.authenticationCode(for: secret.revealBytes(), using: self.comparisonKey)
        return code == Array(HMAC<SHA256>.authenticationCode(for: bytes, using: self.comparisonKey))
    }

    /// Throws `invalid` if the configuration has no token and the store has none of an admin. Expired ones count: they must
    /// not keep a gateway that sends from its restart.
    package func requireAdmin() async throws(GatewayError) {
        guard self.configured == nil else { return }
        guard try await self.store.tokens().contains(where: { $0.role == .admin }) else {
            throw GatewayError(.invalid, "Set GATEWAY_ADMIN_TOKEN: the store has no token of the role admin")
        }
    }

    // MARK: Changes

    /// All tokens, by name.
    package func list() async throws(GatewayError) -> [AdminToken] { try await self.store.tokens() }

    /// Makes a token, and returns it in clear: the only time that it is shown. Throws `conflict` for a name in use.
    package func create(
        name: String,
        role: OperatorRole,
        expiresAt: Timestamp?,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (AdminToken, Secret) {
        let now = self.clock.now()
        let secret = Secret(AdminToken.prefix + Hex.text(Secret(randomBytes: 32).revealBytes()))
        var token = AdminToken(name: name, role: role, createdAt: now, expiresAt: expiresAt)
        token.digest = self.pepper.digest(of: secret.revealBytes()[...], after: token.digested)
        let made = token
        try await self.recorded(.adminTokenCreate, "\(name) \(role.rawValue)", origin) { () throws(GatewayError) in
            try await self.store.add(made, atMost: Self.maxCount)
        }
        return (made, secret)
    }

    /// Deletes a token. Throws `notFound`, or `conflict` for the last one of the role `admin` if the configuration has
    /// none.
    package func revoke(_ name: String, origin: RequestOrigin) async throws(GatewayError) {
        try await self.recorded(.adminTokenRevoke, name, origin) { () throws(GatewayError) in
            let keepsAdmin = self.configured == nil
            guard try await self.store.remove(name, keepsAdmin: keepsAdmin) else {
                throw GatewayError(.notFound, "There is no admin token of this name")
            }
        }
    }

    func recorded(
        _ action: AuditRecord.Action,
        _ object: String?,
        _ origin: RequestOrigin,
        _ body: () async throws(GatewayError) -> Void
    ) async throws(GatewayError) {
        var draft = AuditRecord(action, of: nil, origin, at: self.clock.now())
        draft.object = object
        try await self.audit.recording(draft, by: .admin, orThrow: AuditLog.unavailable) {
            record throws(GatewayError) in
            // The change counts here at once, also if its answer was lost.
            defer { self.state.withLock { $0.isOutdated = true } }
            do throws(GatewayError) {
                try await body()
            } catch {
                throw error.noted(in: &record)
            }
        }
        await self.read()
    }
}

extension APIKey.Pepper {
    func matches(_ token: ArraySlice<UInt8>, after text: String, digest: [UInt8]) -> Bool {
        self.code(of: token, after: text) == digest
    }

    func digest(of token: ArraySlice<UInt8>, after text: String) -> [UInt8] {
        Array(self.code(of: token, after: text))
    }
}
