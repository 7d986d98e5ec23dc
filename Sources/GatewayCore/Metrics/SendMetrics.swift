import FCMModel
package import Metrics
import Synchronization

/// What is counted of sends.
package final class SendMetrics: Sendable {
    private struct MessageKey: Hashable {
        var tenant: String
        /// `nil` for any.
        var kind: TargetKind?
        var outcome: String

        /// The same where there is no more room.
        var shared: Self {
            guard let tenant = TenantLabels.kept(self.tenant, for: self.outcome) else {
                return Self(tenant: TenantLabels.shared, kind: self.kind, outcome: self.outcome)
            }
            return Self(tenant: tenant, kind: nil, outcome: self.outcome)
        }
    }

    private let messages: Mutex<MetricFamily<MessageKey, Counter>>
    private let tenantLabels: TenantLabels

    /// Metrics made by a factory.
    ///
    /// - Parameters:
    ///   - factory: makes them.
    ///   - tenantLabels: names tenants.
    package init(factory: any MetricsFactory, tenantLabels: TenantLabels = TenantLabels()) {
        self.tenantLabels = tenantLabels
        self.messages = Mutex(
            MetricFamily { key in
                Counter(
                    label: "fcmgw_messages_total",
                    dimensions: [
                        ("tenant", key.tenant), ("kind", key.kind?.rawValue ?? TenantLabels.shared),
                        ("outcome", key.outcome),
                    ],
                    factory: factory
                )
            }
        )
    }

    /// Counts a send's recipients by what became of them.
    func count(_ command: SendCommand, _ answer: SendOutcome.Answer) {
        let tenant = self.tenantLabels.label(of: command.principal.profile.id)
        let kind = command.target.kind
        func add(_ outcome: String, _ amount: Int) {
            self.add(amount, MessageKey(tenant: tenant, kind: kind, outcome: outcome))
        }
        switch answer {
        case .single(let result):
            add(result.metricLabel, 1)
        case .multiple(let results):
            let amounts: [String: Int] = results.reduce(into: [:]) { $0[$1.metricLabel, default: 0] += 1 }
            for (outcome, amount) in amounts {
                add(outcome, amount)
            }
        case .group(let group):
            if group.success > 0 { add("accepted", group.success) }
            if group.failure > 0 { add(OutcomeCode.upstreamUnavailable.rawValue, group.failure) }
        case .refused(let refusal):
            add(refusal.code.rawValue, command.target.recipientCount)
        }
    }

    /// Counts a send that was refused before it was known whom it is for.
    func count(_ refusal: Refusal, of principal: Principal) {
        let tenant = self.tenantLabels.label(of: principal.profile.id)
        self.add(1, MessageKey(tenant: tenant, kind: nil, outcome: refusal.code.rawValue))
    }

    private func add(_ amount: Int, _ key: MessageKey) {
        let counter = self.messages.withLock { $0.member(of: key, in: self.tenantLabels, else: key.shared) }
        counter.increment(by: amount)
    }
}

extension RecipientOutcome {
    fileprivate var metricLabel: String {
        switch self {
        case .accepted: "accepted"
        case .rejected(let rejection): rejection.code.rawValue
        }
    }
}
