import FCMModel
import GatewayCore
import Metrics
import Synchronization

/// What is known of the way to one tenant's project: whether its server and its credential are well, how many repeats are
/// left, and whether its quota is used up.
final class UpstreamHealth: Sendable {
    /// Why a call is not worth making now.
    struct Obstacle: Error {
        /// What callers are told.
        let code: OutcomeCode
        /// Whole seconds until it is, at least 1.
        let retryAfter: Int
        /// What happened, from a bounded set.
        let upstreamCode: String
    }

    typealias Instant = ContinuousClock.Instant

    private struct State {
        var server = CircuitBreaker()
        var credential = CircuitBreaker()
        var budget = RetryBudget()
        var pausedUntil: Instant?
        /// What the gauge shows.
        var shown = CircuitBreaker.Condition.closed
        /// Whether the gauge shows another's.
        var isRetired = false
    }

    private let state = Mutex(State())
    private let tenant: TenantID
    private let metrics: ResilienceMetrics

    init(of tenant: TenantID, metrics: ResilienceMetrics) {
        self.tenant = tenant
        self.metrics = metrics
        metrics.show(.closed, of: tenant)
    }

    // MARK: Calls

    /// Says whether a call that is no repeat may be made, and counts it if so.
    func begin(at now: Instant) -> Obstacle? {
        self.state.withLock { state in
            defer { self.show(&state) }
            if let obstacle = Self.obstacle(&state, at: now) { return obstacle }
            state.budget.deposit()
            return nil
        }
    }

    /// Whether it is worth waiting to repeat a call; whether it then may be, ``mayRepeat(for:at:)`` says.
    func mightRepeat(for reason: RepeatReason) -> Bool {
        let hasBudget = self.state.withLock { $0.budget.hasOne }
        if !hasBudget { self.metrics.exhausted(reason) }
        return hasBudget
    }

    /// Whether a call may be repeated now: there is budget for it, and nothing speaks against another call.
    func mayRepeat(for reason: RepeatReason, at now: Instant) -> Bool {
        let isGranted: Bool? = self.state.withLock { state in
            defer { self.show(&state) }
            guard Self.obstacle(&state, at: now) == nil else { return nil }
            return state.budget.withdraw()
        }
        switch isGranted {
        case .some(true): self.metrics.repeated(reason)
        case .some(false): self.metrics.exhausted(reason)
        case .none: break
        }
        if isGranted == false {
            // It was asked whether it may be made, and will not be.
            self.report(server: .silent, credential: .silent, at: now)
        }
        return isGranted == true
    }

    /// Notes how a call went.
    func report(server: CircuitBreaker.Verdict, credential: CircuitBreaker.Verdict, at now: Instant) {
        self.state.withLock { state in
            _ = state.server.report(server, at: now)
            _ = state.credential.report(credential, at: now)
            self.show(&state)
        }
    }

    /// Shows the server's breaker; under the lock, so that no older picture comes last.
    private func show(_ state: inout State) {
        guard state.server.condition != state.shown, !state.isRetired else { return }
        state.shown = state.server.condition
        self.metrics.show(state.shown, of: self.tenant)
    }

    /// No call but those under way asks any more; the gauge shows nothing of it.
    func retire() {
        self.state.withLock { state in
            state.isRetired = true
            if state.shown != .closed { self.metrics.show(.closed, of: self.tenant) }
        }
    }

    /// Makes no calls for a while, because the project's quota is used up.
    func pause(for seconds: Int, at now: Instant) {
        let end = now.advanced(by: .seconds(seconds))
        self.state.withLock { $0.pausedUntil = max(end, $0.pausedUntil ?? end) }
    }

    private static func obstacle(_ state: inout State, at now: Instant) -> Obstacle? {
        if let end = state.pausedUntil {
            guard now >= end else {
                return Obstacle(.tenantRateExceeded, wait: now.duration(to: end), "project_quota")
            }
            state.pausedUntil = nil
        }
        if case .refused(let wait) = state.credential.permit(at: now) {
            return Obstacle(.upstreamCredentials, wait: wait, "breaker_open")
        }
        if case .refused(let wait) = state.server.permit(at: now) {
            // The credential may have been granted its one call to see, which is not made now.
            _ = state.credential.report(.silent, at: now)
            return Obstacle(.upstreamUnavailable, wait: wait, "breaker_open")
        }
        return nil
    }
}

extension UpstreamHealth.Obstacle {
    fileprivate init(_ code: OutcomeCode, wait: Duration, _ upstreamCode: String) {
        self.code = code
        self.retryAfter = max(1, Int((wait / .seconds(1)).rounded(.up)))
        self.upstreamCode = upstreamCode
    }
}

/// What is counted of repeats of one protocol's calls, and what its breakers show.
struct ResilienceMetrics: Sendable {
    private let repeats: [RepeatReason: Counter]
    private let exhaustions: [RepeatReason: Counter]
    /// Tenants that share a label are shown by the worst of their breakers.
    private let breakers: TenantGauges

    init(_ api: UpstreamKind, _ metrics: GatewayMetrics) {
        self.repeats = metrics.counters(.retries, by: RepeatReason.self)
        self.exhaustions = metrics.counters(.retryBudgetExhausted, by: RepeatReason.self)
        self.breakers = TenantGauges(.breakerState, metrics, first: api.rawValue) { $0.max() ?? 0 }
    }

    func repeated(_ reason: RepeatReason) {
        self.repeats[reason]?.increment()
    }

    /// Counts a repeat that there was no budget for.
    func exhausted(_ reason: RepeatReason) {
        self.exhaustions[reason]?.increment()
    }

    func show(_ condition: CircuitBreaker.Condition, of tenant: TenantID) {
        self.breakers.set(condition.rawValue, of: tenant)
    }
}
