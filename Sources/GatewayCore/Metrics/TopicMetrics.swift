import FCMModel
package import Metrics
import Synchronization

/// What is counted of changes of subscriptions.
package final class TopicMetrics: Sendable {
    private struct Key: Hashable {
        var tenant: String
        /// `nil` for any.
        var change: SubscriptionChange?
        var outcome: String

        /// The same where there is no more room.
        var shared: Self {
            guard let tenant = TenantLabels.kept(self.tenant, for: self.outcome) else {
                return Self(tenant: TenantLabels.shared, change: self.change, outcome: self.outcome)
            }
            return Self(tenant: tenant, change: nil, outcome: self.outcome)
        }
    }

    private let changes: Mutex<MetricFamily<Key, Counter>>
    private let tenantLabels: TenantLabels

    /// Metrics made by a factory.
    ///
    /// - Parameters:
    ///   - factory: makes them.
    ///   - tenantLabels: names tenants.
    package init(factory: any MetricsFactory, tenantLabels: TenantLabels = TenantLabels()) {
        self.tenantLabels = tenantLabels
        self.changes = Mutex(
            MetricFamily { key in
                Counter(
                    label: "fcmgw_subscription_changes_total",
                    dimensions: [
                        ("tenant", key.tenant), ("change", key.change?.rawValue ?? TenantLabels.shared),
                        ("outcome", key.outcome),
                    ],
                    factory: factory
                )
            }
        )
    }

    /// Counts the devices of a change by what became of them.
    func count(_ command: SubscriptionCommand, _ content: TopicAnswer<[SubscriptionOutcome]>.Content) {
        var amounts: [String: Int] = [:]
        switch content {
        case .refused(let refusal):
            amounts[refusal.code.rawValue] = command.tokens.count
        case .value(let outcomes):
            for outcome in outcomes {
                switch outcome {
                case .done: amounts["accepted", default: 0] += 1
                case .rejected(let rejection): amounts[rejection.code.rawValue, default: 0] += 1
                }
            }
        }
        let tenant = self.tenantLabels.label(of: command.principal.profile.id)
        for (outcome, amount) in amounts {
            self.add(amount, Key(tenant: tenant, change: command.change, outcome: outcome))
        }
    }

    /// Counts a change that was refused before its devices were known.
    func count(_ refusal: Refusal, of principal: Principal, _ change: SubscriptionChange) {
        let tenant = self.tenantLabels.label(of: principal.profile.id)
        self.add(1, Key(tenant: tenant, change: change, outcome: refusal.code.rawValue))
    }

    private func add(_ amount: Int, _ key: Key) {
        let counter = self.changes.withLock { $0.member(of: key, in: self.tenantLabels, else: key.shared) }
        counter.increment(by: amount)
    }
}
