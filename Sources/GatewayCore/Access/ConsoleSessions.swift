import FCMModel
import Synchronization

/// An operator's log-in to the console, as it is stored.
package struct ConsoleSession: Sendable, Hashable {
    /// The longest time without a request.
    package static let idleLimit = Duration.seconds(30 * 60)
    package static let lifetime = Duration.seconds(12 * 3600)

    /// The keyed digest of the session's secret.
    package var digest: [UInt8]
    /// The name of the operator's token; `nil` for the token of the configuration.
    package var tokenName: String?
    /// The keyed digest of the secret, the token and the beginning: a row that was changed in the store is no session.
    package var ownerDigest: [UInt8]
    package var createdAt: Timestamp
    package var usedAt: Timestamp

    package init(
        digest: [UInt8],
        tokenName: String?,
        ownerDigest: [UInt8],
        createdAt: Timestamp,
        usedAt: Timestamp
    ) {
        (self.digest, self.tokenName, self.ownerDigest) = (digest, tokenName, ownerDigest)
        (self.createdAt, self.usedAt) = (createdAt, usedAt)
    }

    func isOver(at now: Timestamp) -> Bool {
        now >= self.usedAt.advanced(by: Self.idleLimit) || now >= self.createdAt.advanced(by: Self.lifetime)
    }
}

/// The store of sessions. Calls throw `storeUnavailable`.
package protocol ConsoleSessionStore: Sendable {
    func session(_ digest: [UInt8]) async throws(GatewayError) -> ConsoleSession?

    /// Adds a session, and deletes those that are over.
    func add(_ session: ConsoleSession) async throws(GatewayError)

    /// Notes that a session was used.
    func touch(_ digest: [UInt8], at time: Timestamp) async throws(GatewayError)

    func remove(_ digest: [UInt8]) async throws(GatewayError)
}

/// The sessions of operators in the console.
///
/// A session is a random secret that the browser holds in a cookie, followed by its code under the gateway's key, so that
/// guesses do not reach the store. It is valid on every replica, with the role of the token by which it began. It ends by
/// a log-out, with the token, and after a time. Like tokens, sessions are in memory for two seconds, and stay valid for
/// `store.maxStaleMs` if the store can't be read.
package final class ConsoleSessions: Sendable {
    private static let freshness = Duration.seconds(2)
    /// The use of a session is stored at most this often.
    private static let touchInterval = Duration.seconds(60)

    private struct State {
        var known: [[UInt8]: (session: ConsoleSession?, readAt: Uptime)] = [:]
        /// True after a reading that failed.
        var isStoreDown = false
    }

    private let tokens: AdminTokens
    private let store: any ConsoleSessionStore
    private let pepper: APIKey.Pepper
    private let clock: any WallClock
    private let maxStale: Duration
    private let uptime: @Sendable () -> Uptime
    private let state = Mutex(State())

    package init(
        tokens: AdminTokens,
        store: any ConsoleSessionStore,
        pepper: APIKey.Pepper,
        clock: any WallClock,
        maxStale: Duration,
        uptime: @escaping @Sendable () -> Uptime = { .now }
    ) {
        (self.tokens, self.store, self.pepper, self.clock) = (tokens, store, pepper, clock)
        (self.maxStale, self.uptime) = (maxStale, uptime)
    }

    /// Begins a session of an operator, and returns its secret.
    package func begin(by caller: Operator, origin: RequestOrigin) async throws(GatewayError) -> Secret {
        let random = Hex.text(Secret(randomBytes: 32).revealBytes())
        let code = Hex.text(self.pepper.digest(of: Array(random.utf8)[...], after: Self.cookie))
        let secret = Secret(random + code)
        let now = self.clock.now()
        let session = ConsoleSession(
            digest: self.digest(of: secret.revealBytes()[...]),
            tokenName: caller.name,
            ownerDigest: self.pepper.digest(of: secret.revealBytes()[...], after: Self.owner(caller, since: now)),
            createdAt: now,
            usedAt: now
        )
        var origin = origin
        origin.operator = caller
        try await self.tokens.recorded(.consoleLogIn, nil, origin) { () throws(GatewayError) in
            try await self.store.add(session)
        }
        return secret
    }

    /// Ends a session on all replicas.
    package func end(_ secret: ArraySlice<UInt8>, origin: RequestOrigin) async throws(GatewayError) {
        let digest = self.digest(of: secret)
        try await self.tokens.recorded(.consoleLogOut, nil, origin) { () throws(GatewayError) in
            try await self.store.remove(digest)
        }
        self.state.withLock { $0.known[digest] = (nil, self.uptime()) }
    }

    /// Reads a session and the tokens, unless they were read just now, before ``authenticate(_:at:)``. A failure leaves
    /// them as they are.
    ///
    /// - Parameter isUse: false for a request that the page makes by itself.
    package func refresh(_ secret: ArraySlice<UInt8>, isUse: Bool) async {
        guard self.isGenuine(secret) else { return }
        await self.tokens.refresh()
        let (digest, now, time) = (self.digest(of: secret), self.uptime(), self.clock.now())
        if self.state.withLock({ $0.known[digest].map { now - $0.readAt >= Self.freshness } ?? true }) {
            let reading: ConsoleSession??
            do { reading = .some(try await self.store.session(digest)) } catch { reading = nil }
            self.state.withLock { state in
                state.isStoreDown = reading == nil
                // Of two readings, the one that began later is kept.
                guard let session = reading, state.known[digest].map({ $0.readAt <= now }) ?? true else { return }
                state.known = state.known.filter { now - $0.value.readAt < self.maxStale }
                state.known[digest] = (session, now)
            }
        }
        guard isUse, let session = self.state.withLock({ $0.known[digest]?.session }), !session.isOver(at: time),
            time >= session.usedAt.advanced(by: Self.touchInterval)
        else { return }
        try? await self.store.touch(digest, at: time)
        self.state.withLock { $0.known[digest]?.session?.usedAt = time }
    }

    package func authenticate(_ secret: ArraySlice<UInt8>, at now: Timestamp) -> AdminTokens.Outcome {
        guard self.isGenuine(secret) else { return .unknown }
        let digest = self.digest(of: secret)
        let (known, isStoreDown) = self.state.withLock { ($0.known[digest], $0.isStoreDown) }
        guard let known, self.uptime() - known.readAt < self.maxStale else { return isStoreDown ? .stale : .unknown }
        guard let session = known.session, !session.isOver(at: now) else { return .unknown }
        let outcome = self.tokens.outcome(name: session.tokenName, at: now)
        guard case .authenticated(let caller) = outcome else { return outcome }
        let owner = Self.owner(caller, since: session.createdAt)
        return self.pepper.matches(secret, after: owner, digest: session.ownerDigest) ? outcome : .unknown
    }

    // MARK: Codes

    /// Returns the text that proves that a form comes from a page of a session, or of the browser with this cookie.
    package func formToken(of secret: ArraySlice<UInt8>) -> String {
        Hex.text(self.pepper.digest(of: secret, after: Self.form))
    }

    package func isFormToken(_ text: String, of secret: ArraySlice<UInt8>) -> Bool {
        Hex.bytes(text).map { self.pepper.matches(secret, after: Self.form, digest: $0) } ?? false
    }

    private static let cookie = "console cookie\0"
    private static let form = "console form\0"

    private static func owner(_ caller: Operator, since time: Timestamp) -> String {
        "console owner\0\(caller.name ?? "")\0\(time.microseconds)\0\(Hex.text(caller.tokenDigest))\0"
    }

    private func digest(of secret: ArraySlice<UInt8>) -> [UInt8] {
        self.pepper.digest(of: secret, after: "console session\0")
    }

    private func isGenuine(_ secret: ArraySlice<UInt8>) -> Bool {
        guard secret.count == 128, let code = Hex.bytes(String(decoding: secret.suffix(64), as: UTF8.self)) else {
            return false
        }
        return self.pepper.matches(secret.prefix(64), after: Self.cookie, digest: code)
    }
}
