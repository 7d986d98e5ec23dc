import EventLoopHTTP
import GatewayCore
import Metrics
import ServiceLifecycle
import Synchronization

/// The authorisation of calls, as header fields that are rendered once.
///
/// A class: tokens are compared by identity.
final class Authorization: Sendable {
    let fields: HTTPHeaderLines
    /// The fields of a call to one of Google's older servers: the Instance ID API, device groups.
    let olderFields: HTTPHeaderLines

    /// Stars in place of a credential, for requests that are shown.
    static let maskedToken = Authorization(accessToken: Secret("***"))
    static let maskedServerKey = Authorization(serverKey: Secret("***"))

    init(accessToken: Secret) {
        var fields = HTTPHeaderLines()
        fields.append(.authorization, Array("Bearer ".utf8) + accessToken.revealBytes())
        var olderFields = fields
        fields.append(.contentType, "application/json; charset=UTF-8")
        olderFields.append(.contentType, "application/json")
        olderFields.append(.accessTokenAuth, "true")
        (self.fields, self.olderFields) = (fields, olderFields)
    }

    init(serverKey: Secret) {
        var fields = HTTPHeaderLines()
        fields.append(.authorization, Array("key=".utf8) + serverKey.revealBytes())
        fields.append(.contentType, "application/json")
        (self.fields, self.olderFields) = (fields, fields)
    }
}

extension Authorization: CustomStringConvertible, CustomReflectable {
    var description: String { "<redacted>" }
    /// A mirror without children, so that dumps reveal nothing either.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The source of the calls' authorisation.
enum Authorizer: Sendable {
    /// Never changes: a server key, or a token under test.
    case fixed(Authorization)
    case tokens(AccessTokenSource)

    /// The authorisation that is available without waiting.
    var current: Authorization? {
        switch self {
        case .fixed(let authorization): authorization
        case .tokens(let source): source.current()
        }
    }

    func authorization(
        until deadline: Uptime,
        in trace: RequestTrace?
    ) async -> AccessTokenSource.Outcome {
        switch self {
        case .fixed(let authorization): .success(authorization)
        case .tokens(let source): await source.token(until: deadline, in: trace)
        }
    }

    /// Notes that FCM refused an authorisation with 401; returns true if a retry with another is worthwhile.
    func refused(_ authorization: Authorization) -> Bool {
        switch self {
        case .fixed: false
        case .tokens(let source): source.refused(authorization)
        }
    }
}

/// The access tokens of one credential; see ``TokenState`` for the times.
///
/// At most one exchange is in flight. All callers that wait share its result.
final class AccessTokenSource: Sendable {
    typealias Outcome = Result<Authorization, TokenFailure>

    private struct State {
        var tokens = TokenState<Authorization, Uptime>()
        var waiters: [Int: CheckedContinuation<Outcome, Never>] = [:]
        var lastWaiter = 0

        /// Adds a waiter; returns an outcome if there is nothing to wait for.
        mutating func wait(
            _ number: Int,
            _ continuation: CheckedContinuation<Outcome, Never>,
            at now: Uptime
        ) -> Outcome? {
            guard self.tokens.isExchanging else { return self.tokens.settled(at: now) }
            self.waiters[number] = continuation
            return nil
        }
    }

    let credential: V1Credential
    private let state = Mutex(State())
    private let now: @Sendable () -> Uptime
    private let startExchange: @Sendable (AccessTokenSource, RequestTrace?) -> Bool

    /// Creates a source without a token; `startExchange` has ``exchange(with:counting:in:)`` called soon, or returns
    /// false.
    init(
        _ credential: V1Credential,
        now: @escaping @Sendable () -> Uptime,
        startExchange: @escaping @Sendable (AccessTokenSource, RequestTrace?) -> Bool
    ) {
        self.credential = credential
        self.now = now
        self.startExchange = startExchange
    }

    /// Returns the current token. If its renewal is due, the renewal begins, but the caller does not wait for it.
    func current() -> Authorization? {
        let now = self.now()
        guard let (token, renews) = self.state.withLock({ $0.tokens.current(at: now) }) else { return nil }
        // No request waits for the renewal, so it is part of no trace.
        if renews { self.start(in: nil) }
        return token
    }

    /// Waits for a token until a deadline; an exchange that begins for it is a span of the request's trace.
    func token(until deadline: Uptime, in trace: RequestTrace?) async -> Outcome {
        if let token = self.current() { return .success(token) }
        let now = self.now()
        switch self.state.withLock({ $0.tokens.next(at: now) }) {
        case .use(let token): return .success(token)
        case .refuse(let failure): return .failure(failure)
        case .wait: break
        case .exchange: self.start(in: trace)
        }
        return await withTaskGroup(of: Outcome.self) { group in
            group.addTask { await self.outcome() }
            group.addTask {
                try? await Task.sleep(until: deadline)
                return .failure(.timedOut)
            }
            defer { group.cancelAll() }
            return await group.next() ?? .failure(.timedOut)
        }
    }

    func refused(_ token: Authorization) -> Bool {
        let now = self.now()
        return self.state.withLock { $0.tokens.refused(token, at: now) }
    }

    func exchange(
        with exchange: any TokenExchange,
        counting refreshes: [TokenRefresh: Counter],
        in trace: RequestTrace?
    ) async {
        let start = self.now()
        let outcome = await exchange.issue(for: self.credential, in: trace)
        refreshes[TokenRefresh(outcome)]?.increment()
        self.finish(outcome, since: start)
    }

    private func start(in trace: RequestTrace?) {
        if !self.startExchange(self, trace) { self.finish(.failure(.shutDown), since: self.now()) }
    }

    private func finish(_ outcome: Result<IssuedToken, TokenFailure>, since start: Uptime) {
        let now = self.now()
        let chance = Double.random(in: 0..<1)
        let result = outcome.map { Authorization(accessToken: $0.text) }
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
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = self.now()
                if let outcome = self.state.withLock({ $0.wait(number, continuation, at: now) }) {
                    continuation.resume(returning: outcome)
                } else if Task.isCancelled {
                    // The cancellation handler may have run before the waiter was added.
                    self.giveUp(number)
                }
            }
        } onCancel: {
            self.giveUp(number)
        }
    }

    private func giveUp(_ number: Int) {
        let waiter = self.state.withLock { $0.waiters.removeValue(forKey: number) }
        waiter?.resume(returning: .failure(.timedOut))
    }
}

/// Runs the exchanges for access tokens that calls request.
///
/// A service of its own, because an exchange outlives the call that began it: other calls wait for the same token.
package final class AccessTokens: Service {
    private let exchange: any TokenExchange
    private let refreshes: [TokenRefresh: Counter]
    private let now: @Sendable () -> Uptime
    private let requests: AsyncStream<(AccessTokenSource, RequestTrace?)>
    private let requester: AsyncStream<(AccessTokenSource, RequestTrace?)>.Continuation
    private let hasRun = Atomic(false)
    /// The sources that an account still holds, by their credentials' fingerprints; the endpoint does not matter.
    private let sources = Mutex<[String: WeakSource]>([:])

    private struct WeakSource {
        weak var source: AccessTokenSource?
    }

    init(
        exchange: any TokenExchange,
        metrics: GatewayMetrics = GatewayMetrics(),
        now: @escaping @Sendable () -> Uptime = { .now }
    ) {
        self.exchange = exchange
        self.refreshes = metrics.counters(.oauthRefreshes, by: TokenRefresh.self)
        self.now = now
        (self.requests, self.requester) = AsyncStream.makeStream()
    }

    /// Makes exchanges until graceful shutdown or cancellation; finishes those already requested.
    package func run() async throws {
        let isFirst = !self.hasRun.exchange(true, ordering: .acquiringAndReleasing)
        precondition(isFirst, "a service runs once")
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                for await (source, trace) in self.requests {
                    group.addTask { await source.exchange(with: self.exchange, counting: self.refreshes, in: trace) }
                }
            }
        } onGracefulShutdown: {
            self.requester.finish()
        }
        self.requester.finish()
    }

    /// Returns the source of tokens for a credential: the one already in use, or a new one without a token.
    func source(for credential: V1Credential) -> AccessTokenSource {
        let key = credential.fingerprint
        return self.sources.withLock { sources in
            if let source = sources[key]?.source { return source }
            let source = AccessTokenSource(credential, now: self.now) { [requester] source, trace in
                if case .enqueued = requester.yield((source, trace)) { true } else { false }
            }
            sources = sources.filter { $0.value.source != nil }
            sources[key] = WeakSource(source: source)
            return source
        }
    }
}

/// The end of an exchange for an access token, as it is counted.
enum TokenRefresh: String, CaseIterable {
    case done
    case refused
    case unreachable

    init(_ outcome: Result<IssuedToken, TokenFailure>) {
        switch outcome {
        case .success: self = .done
        case .failure(let failure): self = failure.kind == .refused ? .refused : .unreachable
        }
    }
}
