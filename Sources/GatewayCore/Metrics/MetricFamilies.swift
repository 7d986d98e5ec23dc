import FCMModel
package import Metrics
import Synchronization

/// The values of up to three labels, in the order of ``GatewayMetric/Row/labels``.
package struct MetricLabels: Hashable, Sendable {
    package var first: String
    package var second: String
    package var third: String
}

/// The handles of one metric by its labels' values, each made at its first use.
///
/// It is in the target of the send, because another target's generic code is not specialised for its handles: each
/// message would cost thousands of instructions more.
package final class MetricFamily<Handle: Sendable>: Sendable {
    /// Bounds the set of handles: returns the labels under which new ones are measured, their own or shared ones.
    ///
    /// Called for every new set of labels, by one caller at a time.
    package typealias Folding = @Sendable (MetricLabels) -> MetricLabels

    private struct State {
        var members: [MetricLabels: Handle] = [:]
        /// The member used last: most requests are alike, and comparing labels costs less than hashing them.
        var latest: (labels: MetricLabels, member: Handle)?

        mutating func known(_ labels: MetricLabels) -> Handle? {
            if let latest = self.latest, latest.labels == labels { return latest.member }
            guard let member = self.members[labels] else { return nil }
            self.latest = (labels, member)
            return member
        }
    }

    private let state = Mutex(State())
    private let fold: Folding
    private let make: @Sendable (MetricLabels) -> Handle

    init(folding fold: @escaping Folding = { $0 }, make: @escaping @Sendable (MetricLabels) -> Handle) {
        self.fold = fold
        self.make = make
    }

    package subscript(_ first: String, _ second: String = "", _ third: String = "") -> Handle {
        let labels = MetricLabels(first: first, second: second, third: third)
        return self.state.withLock { state in
            if let member = state.known(labels) { return member }
            let folded = self.fold(labels)
            if let member = state.known(folded) { return member }
            let member = self.make(folded)
            state.members[folded] = member
            state.latest = (folded, member)
            return member
        }
    }
}

extension GatewayMetrics {
    package func counters(
        _ metric: GatewayMetric,
        folding fold: @escaping MetricFamily<Counter>.Folding = { $0 }
    ) -> MetricFamily<Counter> {
        MetricFamily(folding: fold) { self.counter(metric, metric.values(of: $0)) }
    }

    package func gauges(_ metric: GatewayMetric) -> MetricFamily<Meter> {
        MetricFamily { self.gauge(metric, metric.values(of: $0)) }
    }

    package func timers(
        _ metric: GatewayMetric,
        folding fold: @escaping MetricFamily<Timer>.Folding = { $0 }
    ) -> MetricFamily<Timer> {
        MetricFamily(folding: fold) { self.timer(metric, metric.values(of: $0)) }
    }
}

extension GatewayMetric {
    fileprivate func values(of labels: MetricLabels) -> [String] {
        Array([labels.first, labels.second, labels.third].prefix(self.row.labels.count))
    }
}

extension GatewayMetrics.TenantLabels {
    /// Outcomes that alerts watch for each tenant.
    ///
    /// Each tenant with a label has reserved room for these series. They begin with the trouble, when the common room
    /// may be used up.
    static let watchedOutcomes: Set<String> = [
        OutcomeCode.upstreamUnavailable.rawValue, OutcomeCode.upstreamCredentials.rawValue,
    ]

    func label(of tenant: TenantID) -> String { self.label(of: tenant.text) }
}

/// Counts tenants' requests by tenant, kind of request, and outcome.
///
/// If there is no more room for a tenant's series, its requests count under the shared label. Outcomes that alerts
/// watch stay under the tenant's own label, with a shared kind of request. The shared label's series for success exist
/// from the start, so that a metric is never empty.
package struct TenantCounters: Sendable {
    private let counters: MetricFamily<Counter>
    private let labels: GatewayMetrics.TenantLabels

    init(
        _ metric: GatewayMetric,
        _ metrics: GatewayMetrics,
        watching watched: Set<String> = GatewayMetrics.TenantLabels.watchedOutcomes,
        startingWith asked: [String] = [],
        _ success: String = TenantCounters.accepted
    ) {
        let labels = metrics.tenantLabels
        self.labels = labels
        self.counters = metrics.counters(metric) { own in
            var shared = own
            if own.first != GatewayMetrics.TenantLabels.shared, watched.contains(own.third) {
                shared.second = GatewayMetrics.TenantLabels.shared
            } else {
                shared.first = GatewayMetrics.TenantLabels.shared
            }
            return own == shared || labels.takeRoom() ? own : shared
        }
        for each in asked { _ = self.counters[GatewayMetrics.TenantLabels.shared, each, success] }
    }

    private func add(_ amount: Int, label: String, _ asked: String, _ outcome: String) {
        self.counters[label, asked, outcome].increment(by: amount)
    }

    // MARK: Messages

    func count(_ command: SendCommand, _ result: SendResult) {
        let label = self.labels.label(of: command.principal.profile.id)
        let kind = command.target.kind.rawValue
        switch result.answer {
        case .recipients(let results) where results.count == 1:
            self.add(1, label: label, kind, results[0].metricLabel)
        case .recipients(let results):
            var (accepted, amounts): (Int, [String: Int]) = (0, [:])
            for result in results {
                switch result {
                case .accepted: accepted += 1
                case .rejected: amounts[result.metricLabel, default: 0] += 1
                }
            }
            if accepted > 0 { self.add(accepted, label: label, kind, Self.accepted) }
            for (outcome, amount) in amounts { self.add(amount, label: label, kind, outcome) }
        case .group(let group):
            if group.success > 0 { self.add(group.success, label: label, kind, Self.accepted) }
            if group.failure > 0 {
                self.add(group.failure, label: label, kind, OutcomeCode.upstreamUnavailable.rawValue)
            }
        case .refused(let refusal):
            self.add(command.recipientCount, label: label, kind, refusal.code.rawValue)
        }
    }

    fileprivate static let accepted = "accepted"

    // MARK: Subscriptions

    func count(_ call: SubscriptionCall, _ result: Result<[SubscriptionOutcome], Refusal>) {
        var amounts: [String: Int] = [:]
        switch result {
        case .failure(let refusal):
            amounts[refusal.code.rawValue] = call.tokens.count
        case .success(let outcomes):
            for outcome in outcomes {
                switch outcome {
                case .done: amounts[Self.accepted, default: 0] += 1
                case .rejected(let rejection): amounts[rejection.code.rawValue, default: 0] += 1
                }
            }
        }
        let label = self.labels.label(of: call.profile.id)
        for (outcome, amount) in amounts { self.add(amount, label: label, call.change.rawValue, outcome) }
    }

    // MARK: Device groups

    /// Counts a request by its outcome: `done`, or a refusal's code.
    func count(_ action: AuditRecord.Action, of tenant: TenantID, outcome: String) {
        self.add(1, label: self.labels.label(of: tenant), action.rawValue, outcome)
    }

    // MARK: All of them

    /// Counts a request that was refused before it was read.
    func count(_ refusal: Refusal, of principal: Principal, asking asked: String) {
        self.add(1, label: self.labels.label(of: principal.profile.id), asked, refusal.code.rawValue)
    }
}

extension RecipientOutcome {
    fileprivate var metricLabel: String {
        switch self {
        case .accepted: TenantCounters.accepted
        case .rejected(let rejection): rejection.code.rawValue
        }
    }
}

/// A gauge for each tenant. The tenant's label is the last one, after the value of another label if the metric has one.
/// Tenants that share a label are shown together, from the start.
package final class TenantGauges: Sendable {
    private let gauges: MetricFamily<Meter>
    private let labels: GatewayMetrics.TenantLabels
    private let first: String?
    private let combine: @Sendable (_ values: [Int]) -> Int
    /// The tenants' values by label, without zeros.
    private let values = Mutex<[String: [TenantID: Int]]>([:])

    package init(
        _ metric: GatewayMetric,
        _ metrics: GatewayMetrics,
        first: String? = nil,
        combine: @escaping @Sendable (_ values: [Int]) -> Int
    ) {
        self.gauges = metrics.gauges(metric)
        self.labels = metrics.tenantLabels
        self.first = first
        self.combine = combine
        self.gauge(GatewayMetrics.TenantLabels.shared).set(0)
    }

    private func gauge(_ label: String) -> Meter {
        if let first = self.first { self.gauges[first, label] } else { self.gauges[label] }
    }

    package func set(_ value: Int, of tenant: TenantID) {
        let label = self.labels.label(of: tenant)
        let gauge = self.gauge(label)
        self.values.withLock { values in
            values[label, default: [:]][tenant] = value == 0 ? nil : value
            // Set under the lock, so that an older value is never the last.
            gauge.set(self.combine(values[label].map { Array($0.values) } ?? []))
        }
    }
}
