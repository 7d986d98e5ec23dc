package import Metrics
import Synchronization

/// What is measured of retired tokens.
package final class RetiredTokenMetrics: Sendable {
    private let refusals: Counter
    private let written: Counter
    private let dropped: Counter
    private let failures: Counter
    private let tokens: [RetiredTokenState: Meter]
    private let guards: Mutex<Guards>
    private let tenantLabels: TenantLabels

    /// Which tenants' reports are held back, by label: many share one.
    private struct Guards {
        var meters: MetricFamily<String, Meter>
        var active: [String: Set<TenantID>] = [:]
    }

    /// Metrics made by a factory.
    ///
    /// - Parameters:
    ///   - factory: makes them.
    ///   - tenantLabels: names tenants.
    package init(factory: any MetricsFactory, tenantLabels: TenantLabels = TenantLabels()) {
        self.tenantLabels = tenantLabels
        func changes(_ result: String) -> Counter {
            Counter(
                label: "fcmgw_retired_token_changes_total",
                dimensions: [("result", result)],
                factory: factory
            )
        }
        self.refusals = Counter(label: "fcmgw_retired_token_refusals_total", factory: factory)
        self.written = changes("written")
        self.dropped = changes("dropped")
        self.failures = changes("refused")
        self.tokens = Dictionary(
            uniqueKeysWithValues: RetiredTokenState.allCases.map { state in
                (
                    state,
                    Meter(label: "fcmgw_retired_tokens", dimensions: [("state", state.rawValue)], factory: factory)
                )
            }
        )
        self.guards = Mutex(
            Guards(
                meters: MetricFamily { tenant in
                    Meter(label: "fcmgw_purge_guard_active", dimensions: [("tenant", tenant)], factory: factory)
                }
            )
        )
    }

    /// Counts recipients that were refused without asking FCM.
    func refused(_ count: Int) {
        self.refusals.increment(by: count)
    }

    /// Counts changes that became durable together.
    func wrote(_ count: Int) {
        self.written.increment(by: count)
    }

    /// Counts changes that the store refused, once for each attempt.
    func failed(_ count: Int) {
        self.failures.increment(by: count)
    }

    /// Counts reports that found no place in the queue, and changes that were lost with the process's end.
    func lost(_ count: Int) {
        self.dropped.increment(by: count)
    }

    /// Notes how many tokens are in a state.
    func count(_ count: Int, in state: RetiredTokenState) {
        self.tokens[state]?.set(count)
    }

    /// Notes whether a tenant's reports are held back.
    func holdsBack(_ isHeldBack: Bool, of tenant: TenantID) {
        let label = self.tenantLabels.label(of: tenant)
        let (meter, count) = self.guards.withLock { guards in
            if isHeldBack {
                guards.active[label, default: []].insert(tenant)
            } else {
                guards.active[label]?.remove(tenant)
            }
            return (guards.meters.member(of: label), guards.active[label]?.count ?? 0)
        }
        meter.set(count)
    }
}
