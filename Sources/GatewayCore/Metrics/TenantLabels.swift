import Synchronization

/// Keeps the values of the label `tenant` within bounds: the first 200 tenants have their own, the others share one.
final class TenantLabels: Sendable {
    private static let maxLabels = 200
    private let known = Mutex<Set<TenantID>>([])

    func label(of tenant: TenantID) -> String {
        let isKnown = self.known.withLock { known in
            if known.contains(tenant) { return true }
            guard known.count < Self.maxLabels else { return false }
            known.insert(tenant)
            return true
        }
        return isKnown ? tenant.text : "other"
    }
}
