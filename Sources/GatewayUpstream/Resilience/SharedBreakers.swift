import GatewayCore
import Metrics
import Synchronization

/// The breakers of tenants that share one gauge, which shows the worst of them.
final class SharedBreakers: Sendable {
    private let meter: Meter
    /// Those that are not closed.
    private let troubled = Mutex<[TenantID: CircuitBreaker.Condition]>([:])

    init(meter: Meter) {
        self.meter = meter
        meter.set(CircuitBreaker.Condition.closed.rawValue)
    }

    /// Notes what a tenant's breaker is in.
    func set(_ condition: CircuitBreaker.Condition, of tenant: TenantID) {
        self.troubled.withLock { troubled in
            troubled[tenant] = condition == .closed ? nil : condition
            let worst = troubled.values.map(\.rawValue).max() ?? CircuitBreaker.Condition.closed.rawValue
            // Under the lock, so that no older picture comes last.
            self.meter.set(worst)
        }
    }
}
