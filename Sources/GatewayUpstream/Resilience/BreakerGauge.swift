import GatewayCore
import Metrics

/// Shows what one breaker is in: 0 closed, 1 letting some calls through, 2 open.
enum BreakerGauge: Sendable {
    /// Shown to nobody.
    case none
    /// A gauge of its own.
    case own(Meter)
    /// A tenant's part of a gauge that several share.
    case shared(SharedBreakers, TenantID)

    func set(_ condition: CircuitBreaker.Condition) {
        switch self {
        case .none: break
        case .own(let meter): meter.set(condition.rawValue)
        case .shared(let breakers, let tenant): breakers.set(condition, of: tenant)
        }
    }
}
