import GatewayCore
import Metrics
import Synchronization

/// Has an access token at hand for one credential, and gets the next one in time.
///
/// However many ask, one exchange is in flight at most, and all of them share its result.
final class AccessTokenSource: Sendable {
    typealias Outcome = Result<AccessToken, TokenFailure>

    fileprivate struct State {
        var tokens = TokenState<AccessToken, ContinuousClock.Instant>()
        var waiters: [Int: CheckedContinuation<Outcome, Never>] = [:]
        /// Who gave up before it began to wait.
        var gone: Set<Int> = []
        var lastWaiter = 0
    }

    /// Whose tokens they are.
    let credential: ServiceAccountCredential
    private let state = Mutex(State())
    private let now: @Sendable () -> ContinuousClock.Instant
    private let startExchange: @Sendable (AccessTokenSource) -> Bool

    /// A source without a token.
    ///
    /// - Parameters:
    ///   - credential: whose tokens.
    ///   - now: tells the time that lives are measured by.
    ///   - startExchange: has ``exchange(with:counting:)`` called soon; false when nobody will.
    init(
        _ credential: ServiceAccountCredential,
        now: @escaping @Sendable () -> ContinuousClock.Instant,
        startExchange: @escaping @Sendable (AccessTokenSource) -> Bool
    ) {
        self.credential = credential
        self.now = now
        self.startExchange = startExchange
    }

    /// The token at hand; where its renewal is due, that begins without the caller's waiting for it.
    func atHand() -> AccessToken? {
        let now = self.now()
        guard let (token, renews) = self.state.withLock({ $0.tokens.current(at: now) }) else { return nil }
        if renews { self.start() }
        return token
    }

    /// A token, waiting for one until a deadline; a request that needs one before it can go on has a span of that.
    ///
    /// - Parameters:
    ///   - deadline: when waiting ends.
    ///   - trace: the trace of the request.
    /// - Returns: the token, or why there is none.
    func token(until deadline: ContinuousClock.Instant, in trace: RequestTrace?) async -> Outcome {
        if let token = self.atHand() { return .success(token) }
        guard let trace else { return await self.nextToken(until: deadline) }
        return await trace.step("access token", failure: { $0.failure?.code }) {
            await self.nextToken(until: deadline)
        }
    }

    private func nextToken(until deadline: ContinuousClock.Instant) async -> Outcome {
        let now = self.now()
        switch self.state.withLock({ $0.tokens.next(at: now) }) {
        case .use(let token): return .success(token)
        case .refuse(let failure): return .failure(failure)
        case .wait: break
        case .exchange: self.start()
        }
        return await withTaskGroup(of: Outcome.self) { group in
            group.addTask { await self.outcome() }
            group.addTask {
                try? await Task.sleep(until: deadline, clock: .continuous)
                return .failure(.timedOut)
            }
            defer { group.cancelAll() }
            return await group.next() ?? .failure(.timedOut)
        }
    }

    /// Notes that FCM refused a token with 401.
    ///
    /// - Returns: whether a repeat with another token is worth it.
    func refused(_ token: AccessToken) -> Bool {
        let now = self.now()
        return self.state.withLock { $0.tokens.refused(token, at: now) }
    }

    /// Asks for a token and tells everybody who waits for it.
    func exchange(with exchange: any TokenExchange, counting refreshes: [TokenRefresh: Counter]) async {
        let start = self.now()
        let outcome = await exchange.issue(for: self.credential)
        refreshes[TokenRefresh(outcome)]?.increment()
        self.finish(outcome, since: start)
    }

    private func start() {
        if !self.startExchange(self) { self.finish(.failure(.shutDown), since: self.now()) }
    }

    private func finish(_ outcome: Result<IssuedToken, TokenFailure>, since start: ContinuousClock.Instant) {
        let now = self.now()
        let chance = Double.random(in: 0..<1)
        let result = outcome.map { AccessToken($0.text) }
        let waiters = self.state.withLock { state in
            switch (outcome, result) {
            case (.success(let issued), .success(let token)):
                let lifetime = Duration.seconds(issued.lifetimeSeconds)
                state.tokens.succeeded(token, lifetime: lifetime, since: start, chance: chance)
            case (.failure(let failure), _), (_, .failure(let failure)):
                state.tokens.failed(failure, at: now, chance: chance)
            }
            defer { state.waiters = [:] }
            return state.waiters.values.map(\.self)
        }
        for waiter in waiters { waiter.resume(returning: result) }
    }

    /// The result of the exchange in flight, or of the one that has ended meanwhile.
    private func outcome() async -> Outcome {
        let number = self.state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        defer { self.state.withLock { _ = $0.gone.remove(number) } }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = self.now()
                if let outcome = self.state.withLock({ $0.wait(number, continuation, at: now) }) {
                    continuation.resume(returning: outcome)
                }
            }
        } onCancel: {
            let waiter = self.state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: number)
                if waiter == nil { state.gone.insert(number) }
                return waiter
            }
            waiter?.resume(returning: .failure(.timedOut))
        }
    }
}

extension AccessTokenSource.Outcome {
    /// Why there is no token.
    fileprivate var failure: TokenFailure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}

extension AccessTokenSource.State {
    /// Adds a waiter, unless there is nothing to wait for.
    fileprivate mutating func wait(
        _ number: Int,
        _ continuation: CheckedContinuation<AccessTokenSource.Outcome, Never>,
        at now: ContinuousClock.Instant
    ) -> AccessTokenSource.Outcome? {
        if self.gone.remove(number) != nil { return .failure(.timedOut) }
        if self.tokens.isExchanging {
            self.waiters[number] = continuation
            return nil
        }
        return self.tokens.settled(at: now)
    }
}
