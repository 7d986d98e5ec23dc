import FCMModel
import GatewayCore
import Metrics
import Synchronization

/// What is known of one tenant's way to one of FCM's APIs: whether its server and its credential are well, how many
/// retries are left, and whether its quota is used up (decision 0017).
final class UpstreamHealth: Sendable {
    typealias Instant = ContinuousClock.Instant

    private struct State {
        var server = CircuitBreaker()
        var credential = CircuitBreaker()
        var budget = RetryBudget()
        var pausedUntil: Instant?
        /// The server breaker's condition in the gauge.
        var shown = CircuitBreaker.Condition.closed
        /// Whether the gauge belongs to another account now.
        var isRetired = false
    }

    private let state = Mutex(State())
    private let api: FCMAPI
    private let tenant: TenantID
    private let metrics: ResilienceMetrics

    init(_ api: FCMAPI, of tenant: TenantID, metrics: ResilienceMetrics) {
        self.api = api
        self.tenant = tenant
        self.metrics = metrics
        metrics.show(.closed, api, of: tenant)
    }

    // MARK: Calls

    /// Why a call that is no retry must not be made now; `nil` where it may, and then it is counted.
    func begin(at now: Instant) -> CallFailure? {
        self.state.withLock { state in
            defer { self.show(&state) }
            if let failure = Self.refusal(&state, at: now) { return failure }
            state.budget.deposit()
            return nil
        }
    }

    /// Whether it is worth waiting to retry a call; whether it then may be, ``mayRetry(for:at:)`` says.
    func mightRetry(for reason: RetryReason) -> Bool {
        let hasBudget = self.state.withLock { $0.budget.hasOne }
        if !hasBudget { self.metrics.exhaustions[reason]?.increment() }
        return hasBudget
    }

    /// Whether a call may be retried now: there is budget for it, and another call may be made.
    func mayRetry(for reason: RetryReason, at now: Instant) -> Bool {
        let isGranted: Bool? = self.state.withLock { state in
            defer { self.show(&state) }
            guard Self.refusal(&state, at: now) == nil else { return nil }
            if state.budget.withdraw() { return true }
            // It was asked whether it may be made, and will not be.
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

    /// Shows the server's breaker; under the lock, so that no older snapshot comes last.
    private func show(_ state: inout State) {
        guard state.server.condition != state.shown, !state.isRetired else { return }
        state.shown = state.server.condition
        self.metrics.show(state.shown, self.api, of: self.tenant)
    }

    /// No calls but those under way ask any more; the gauge shows nothing of it.
    func retire() {
        self.state.withLock { state in
            state.isRetired = true
            if state.shown != .closed { self.metrics.show(.closed, self.api, of: self.tenant) }
        }
    }

    /// Makes no calls for a while, because the project's quota is used up.
    func pause(for seconds: Int, at now: Instant) {
        let end = now.advanced(by: .seconds(seconds))
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
            // The credential may have been granted its one call to see, which is not made now.
            _ = state.credential.report(.silent, at: now)
            return CallFailure(.upstreamUnavailable, wait: wait, "breaker_open")
        }
        return nil
    }
}

extension CallFailure {
    /// A call that is not worth making for a while, told in whole seconds, at least 1.
    fileprivate init(_ code: OutcomeCode, wait: Duration, _ upstreamCode: String) {
        self.init(code: code, upstreamCode: upstreamCode, retryAfter: max(1, Int((wait / .seconds(1)).rounded(.up))))
    }
}

/// Why a call is retried; the raw value is the metrics' label.
enum RetryReason: String, Sendable, CaseIterable {
    case notSent = "not_sent"
    case trouble = "upstream_5xx"
}

/// Bounds retries to a tenth of the calls, so that a server in trouble is not asked twice as much as one in health.
///
/// A few are there from the start. However calls come, retries ≤ calls / 10 + 3.
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

    /// Takes a retry out; whether there was one.
    mutating func withdraw() -> Bool {
        guard self.hasOne else { return false }
        self.tenths -= Self.cost
        return true
    }
}

/// When a call is retried.
enum Backoff {
    /// Calls made for one message at most.
    static let maxAttempts = 3
    /// The bounds that a server's `Retry-After` is kept to, in seconds.
    private static let demanded = 10...3_600
    private static let first = Duration.seconds(1)

    /// How long to wait before a retry after so many attempts, from 1; what was not sent goes at once, by another
    /// connection.
    ///
    /// The server's `Retry-After` is in seconds. The chance, 0 to 1, spreads callers that failed together over the
    /// whole wait.
    static func wait(
        after attempts: Int,
        for reason: RetryReason,
        retryAfter: Int?,
        chance: Double = .random(in: 0...1)
    ) -> Duration {
        guard reason == .trouble else { return .zero }
        let spread = Self.first * Double(1 << (attempts - 1)) * chance
        guard let retryAfter else { return spread }
        // On top, since all who failed together were told the same.
        return .seconds(min(max(retryAfter, Self.demanded.lowerBound), Self.demanded.upperBound)) + spread
    }
}

/// What is counted of retries, and what breakers show.
struct ResilienceMetrics: Sendable {
    let retries: [RetryReason: Counter]
    /// Retries that there was no budget for.
    let exhaustions: [RetryReason: Counter]
    /// The breakers of messages alone, since the alert is about messages; tenants that share a label are shown by the
    /// worst of theirs.
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
