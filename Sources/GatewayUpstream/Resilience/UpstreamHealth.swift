import FCMModel
import GatewayCore
import Metrics
import Synchronization

/// The health of one tenant's calls to one of FCM's APIs (decision 0017).
///
/// It has a ``CircuitBreaker`` for the server and one for the credential, a ``UpstreamHealth.RetryBudget``, and a pause
/// while the quota is used up.
final class UpstreamHealth: Sendable {
    /// The metrics of retries and breakers.
    struct Metrics: Sendable {
        let retries: [RetryReason: Counter]
        /// Retries that the budget refused.
        let exhaustions: [RetryReason: Counter]
        /// The breakers of messages only, since the alert is about messages. Tenants that share a label show their
        /// worst breaker.
        private let breakers: [FCMAPI: TenantGauges]

        init(_ metrics: GatewayMetrics) {
            func gauges(of api: FCMAPI) -> TenantGauges {
                TenantGauges(.breakerState, metrics, first: api.label) { $0.max() ?? 0 }
            }
            self.retries = metrics.counters(.retries, by: RetryReason.self)
            self.exhaustions = metrics.counters(.retryBudgetExhausted, by: RetryReason.self)
            self.breakers = [.legacy: gauges(of: .legacy), .v1: gauges(of: .v1)]
        }

        func show(_ condition: CircuitBreaker.Condition, _ api: FCMAPI, of tenant: TenantID) {
            self.breakers[api]?.set(condition.rawValue, of: tenant)
        }
    }

    /// Limits retries to a tenth of the calls, so that a server in trouble gets little more load than a healthy one.
    ///
    /// Three retries are there from the start: retries ≤ calls / 10 + 3 at any time. Example: 200 calls allow 23
    /// retries.
    struct RetryBudget {
        /// In tenths of a retry.
        private static let start = 30
        private static let most = 1_000
        private static let cost = 10

        private var tenths = Self.start

        var hasOne: Bool { self.tenths >= Self.cost }

        /// Counts a call that is no retry.
        mutating func deposit() {
            self.tenths = min(self.tenths + 1, Self.most)
        }

        /// Takes a retry from the budget; returns false if there was none.
        mutating func withdraw() -> Bool {
            guard self.hasOne else { return false }
            self.tenths -= Self.cost
            return true
        }
    }

    typealias Instant = Uptime

    private struct State {
        var server = CircuitBreaker()
        var credential = CircuitBreaker()
        var budget = RetryBudget()
        var pausedUntil: Instant?
        /// The server breaker's condition as the gauge shows it.
        var shown = CircuitBreaker.Condition.closed
        /// True if the gauge belongs to another account now.
        var isRetired = false
    }

    private let state = Mutex(State())
    private let api: FCMAPI
    private let tenant: TenantID
    private let metrics: Metrics

    init(_ api: FCMAPI, of tenant: TenantID, metrics: Metrics) {
        self.api = api
        self.tenant = tenant
        self.metrics = metrics
        metrics.show(.closed, api, of: tenant)
    }

    // MARK: Calls

    /// Returns why a first attempt must not be made now; `nil` if it may, and then it is counted.
    func begin(at now: Instant) -> CallFailure? {
        self.state.withLock { state in
            defer { self.show(&state) }
            if let failure = Self.refusal(&state, at: now) { return failure }
            state.budget.deposit()
            return nil
        }
    }

    /// True if waiting for a retry is worthwhile; ``mayRetry(for:at:)`` decides after the wait.
    func mightRetry(for reason: RetryReason) -> Bool {
        let hasBudget = self.state.withLock { $0.budget.hasOne }
        if !hasBudget { self.metrics.exhaustions[reason]?.increment() }
        return hasBudget
    }

    /// True if a call may be retried now: the budget and the breakers allow it.
    func mayRetry(for reason: RetryReason, at now: Instant) -> Bool {
        let isGranted: Bool? = self.state.withLock { state in
            defer { self.show(&state) }
            guard Self.refusal(&state, at: now) == nil else { return nil }
            if state.budget.withdraw() { return true }
            // The breakers granted the call, which is not made.
            _ = state.server.report(.silent, at: now)
            _ = state.credential.report(.silent, at: now)
            return false
        }
        guard let isGranted else { return false }
        let counters = isGranted ? self.metrics.retries : self.metrics.exhaustions
        counters[reason]?.increment()
        return isGranted
    }

    func report(server: CircuitBreaker.Verdict, credential: CircuitBreaker.Verdict, at now: Instant) {
        self.state.withLock { state in
            _ = state.server.report(server, at: now)
            _ = state.credential.report(credential, at: now)
            self.show(&state)
        }
    }

    /// Shows the server breaker's condition; under the lock, so that an older value is never written last.
    private func show(_ state: inout State) {
        guard state.server.condition != state.shown, !state.isRetired else { return }
        state.shown = state.server.condition
        self.metrics.show(state.shown, self.api, of: self.tenant)
    }

    /// Retires this health: only calls under way still use it, and it leaves the gauge alone.
    func retire() {
        self.state.withLock { state in
            state.isRetired = true
            if state.shown != .closed { self.metrics.show(.closed, self.api, of: self.tenant) }
        }
    }

    /// Stops calls for a while, because the project's quota is used up.
    func pause(for time: Duration, at now: Instant) {
        let end = now.advanced(by: time)
        self.state.withLock { $0.pausedUntil = max(end, $0.pausedUntil ?? end) }
    }

    private static func refusal(_ state: inout State, at now: Instant) -> CallFailure? {
        if let end = state.pausedUntil {
            guard now >= end else {
                return CallFailure(.tenantRateExceeded, wait: now.duration(to: end), "project_quota")
            }
            state.pausedUntil = nil
        }
        if case .refused(let wait) = state.credential.permit(at: now) {
            return CallFailure(.upstreamCredentials, wait: wait, "breaker_open")
        }
        if case .refused(let wait) = state.server.permit(at: now) {
            // The credential's breaker may have granted its one probe, which is not made now.
            _ = state.credential.report(.silent, at: now)
            return CallFailure(.upstreamUnavailable, wait: wait, "breaker_open")
        }
        return nil
    }
}

extension CallFailure {
    /// A call that is not worth making for a while; the wait is in whole seconds, at least 1.
    fileprivate init(_ code: OutcomeCode, wait: Duration, _ upstreamCode: String) {
        self.init(code: code, upstreamCode: upstreamCode, retryAfter: max(1, Int((wait / .seconds(1)).rounded(.up))))
    }
}

/// The reason of a retry; the raw value is the metric's label.
enum RetryReason: String, Sendable, CaseIterable {
    case notSent = "not_sent"
    case trouble = "upstream_5xx"
}

/// The times of retries.
enum Backoff {
    /// The most attempts of one call.
    static let maxAttempts = 3
    /// The range that a server's `Retry-After` is clamped to, in seconds.
    private static let demanded = 10...3_600
    private static let first = Duration.seconds(1)

    /// Returns the wait before a retry, after so many attempts, from 1; `retryAfter` is the server's, in seconds.
    ///
    /// A request that was not sent goes at once, by another connection. The chance, 0 to 1, spreads callers that failed
    /// together over the whole wait.
    static func wait(
        after attempts: Int,
        for reason: RetryReason,
        retryAfter: Int?,
        chance: Double = .random(in: 0...1)
    ) -> Duration {
        guard reason == .trouble else { return .zero }
        let spread = Self.first * Double(1 << (attempts - 1)) * chance
        guard let retryAfter else { return spread }
        // Added on top, since all callers that failed together got the same `Retry-After`.
        return .seconds(min(max(retryAfter, Self.demanded.lowerBound), Self.demanded.upperBound)) + spread
    }
}
