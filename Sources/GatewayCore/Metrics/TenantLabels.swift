import FCMModel
import Synchronization

/// Keeps the labels that name tenants within bounds: the first 200 tenants have their own, the others share one.
///
/// All metrics of a gateway share these, so that they speak of the same tenants and are bounded together. A label is its
/// tenant's until the process ends.
package final class TenantLabels: Sendable {
    /// The label of all tenants that have none of their own, and of what they share.
    package static let shared = "other"
    /// Tenants that have a label of their own, at most.
    package static let maxLabels = 200
    /// Series that tenants have of their own, over all metrics that differ in more than the tenant.
    static let maxSeries = 600
    /// Outcomes by which alerts tell that a tenant is in trouble.
    ///
    /// Each tenant with a label has room of its own for these: they begin when the trouble does, and others may have
    /// taken all the common room by then.
    static let watchedOutcomes: Set<String> = [
        OutcomeCode.upstreamUnavailable.rawValue, OutcomeCode.upstreamCredentials.rawValue,
    ]

    private let known = Mutex<Set<TenantID>>([])
    private let seriesCount = Atomic(0)

    /// Labels that nobody has yet.
    package init() {}

    /// The label of a tenant: its own, or the one that tenants share.
    func label(of tenant: TenantID) -> String {
        self.ownLabel(of: tenant) ?? Self.shared
    }

    /// The label under which an outcome is counted when there is no more room for a tenant's series: the tenant's own where
    /// alerts ask for the outcome, `nil` for the label that tenants share.
    static func kept(_ label: String, for outcome: String) -> String? {
        label != Self.shared && Self.watchedOutcomes.contains(outcome) ? label : nil
    }

    /// Takes room for one more series of a tenant, if there is any left.
    func takeRoom() -> Bool {
        guard self.seriesCount.load(ordering: .relaxed) < Self.maxSeries else { return false }
        return self.seriesCount.wrappingAdd(1, ordering: .relaxed).oldValue < Self.maxSeries
    }

    /// The label that is a tenant's alone; `nil` for one that came too late, and for one whose name is the shared label.
    package func ownLabel(of tenant: TenantID) -> String? {
        guard tenant.text != Self.shared else { return nil }
        let isKnown = self.known.withLock { known in
            if known.contains(tenant) { return true }
            guard known.count < Self.maxLabels else { return false }
            known.insert(tenant)
            return true
        }
        return isKnown ? tenant.text : nil
    }
}
