import FCMModel
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayCore

@Suite("Metrics of tenants")
struct TenantCountersTests {
    private let factory = TestMetrics()
    private let metrics: GatewayMetrics
    private var labels: GatewayMetrics.TenantLabels { self.metrics.tenantLabels }

    init() {
        self.metrics = GatewayMetrics(factory: self.factory)
    }

    private func takeAllRoom() {
        while self.labels.takeRoom() {}
    }

    /// The values of a metric's counters, by their labels' values.
    private func counts(_ label: String) -> [String: Int64] {
        self.factory.counters(label: label)
            .reduce(into: [:]) { $0[$1.dimensions.map(\.1).joined(separator: " ")] = $1.totalValue }
    }

    @Test("A tenant named like the shared label has no label of its own and uses up none")
    func namedOther() throws {
        #expect(self.labels.label(of: try .sample("other")) == "other")
        for index in 0..<GatewayMetrics.TenantLabels.maxLabels {
            #expect(self.labels.label(of: try .sample("t\(index)")) == "t\(index)")
        }
        #expect(self.labels.label(of: try .sample("late")) == "other")
        #expect(self.labels.label(of: try .sample("t0")) == "t0")
    }

    @Test("Without free labels, outcomes that alerts watch keep the tenant's label, and others use the shared one")
    func messages() throws {
        let metrics = TenantCounters(.messages, self.metrics)
        let shop = try Principal.sample(tenant: "shop")
        metrics.count(.sample(from: shop, to: .token("a")), SendResult(.refused(Refusal(.upstreamUnavailable))))
        self.takeAllRoom()
        for target in [Target.token("a"), .tokens(["a", "b"]), .installation("a")] {
            for code in [OutcomeCode.upstreamUnavailable, .upstreamCredentials, .unregistered] {
                metrics.count(.sample(from: shop, to: target), SendResult(.refused(Refusal(code))))
            }
        }
        #expect(
            self.counts("fcmgw_messages_total") == [
                "shop token upstream_unavailable": 2, "shop other upstream_unavailable": 3,
                "shop other upstream_credentials": 4, "other token unregistered": 1, "other tokens unregistered": 2,
                "other fid unregistered": 1,
            ]
        )
    }

    @Test("The shared label counts watched outcomes by kind")
    func withoutLabel() throws {
        let metrics = TenantCounters(.messages, self.metrics)
        self.takeAllRoom()
        let other = try Principal.sample(tenant: "other")
        metrics.count(.sample(from: other, to: .token("a")), SendResult(.refused(Refusal(.upstreamUnavailable))))
        #expect(self.counts("fcmgw_messages_total") == ["other token upstream_unavailable": 1])
    }

    @Test("Without free labels, subscriptions that fail for lack of a credential keep the tenant's label")
    func subscriptions() throws {
        let metrics = TenantCounters(.subscriptionChanges, self.metrics)
        self.takeAllRoom()
        for change in SubscriptionChange.allCases {
            let caller = Caller(principal: try .sample(tenant: "shop"), origin: .sample, deadline: .now)
            let topic = try #require(TopicName("news"))
            let call = SubscriptionCall(change, of: ["a", "b"], to: topic, by: caller)
            metrics.count(call, .failure(Refusal(.upstreamCredentials)))
            metrics.count(call, .success([.done, .rejected(.unregistered)]))
        }
        let counts = self.counts("fcmgw_subscription_changes_total")
        #expect(counts["shop other upstream_credentials"] == Int64(2 * SubscriptionChange.allCases.count))
        #expect(counts.keys.filter { $0.hasPrefix("shop") }.count == 1)
        let shared = counts.filter { $0.key.hasPrefix("other") }.values.reduce(0, +)
        #expect(shared == Int64(2 * SubscriptionChange.allCases.count))
    }

    @Test("The first 200 tenants have labels of their own, the others share one")
    func tenantLabels() throws {
        let metrics = TenantCounters(.messages, self.metrics)
        let accepted = SendResult(.recipients([.accepted(Acceptance(messageID: "1"))]))
        for _ in 0..<2 {
            for index in 0..<250 {
                let command = SendCommand.sample(from: try .sample(tenant: "t\(index)"), to: .token("a"))
                metrics.count(command, accepted)
            }
        }
        let counters = self.factory.counters(label: "fcmgw_messages_total")
        #expect(counters.allSatisfy { $0.dimensions.map(\.0) == ["tenant", "kind", "outcome"] })
        let counts = self.counts("fcmgw_messages_total")
        #expect(counts.count == 201)
        #expect(["t0", "t199", "other"].map { counts["\($0) token accepted"] } == [2, 2, 100])
    }

    @Test("The members of a group are counted by outcome")
    func groups() throws {
        let metrics = TenantCounters(.messages, self.metrics)
        let command = SendCommand.sample(from: try .sample(), to: .notificationKey("group"))
        metrics.count(command, SendResult(.group(GroupOutcome(success: 3, failure: 2, failedTokens: []))))
        metrics.count(command, SendResult(.refused(Refusal(.upstreamCredentials))))
        #expect(
            self.counts("fcmgw_messages_total") == [
                "acme group accepted": 3, "acme group upstream_unavailable": 2, "acme group upstream_credentials": 1,
            ]
        )
    }

    @Test("Without free labels, device group requests of any outcome are counted under the shared label")
    func deviceGroups() throws {
        let metrics = TenantCounters(.deviceGroupRequests, self.metrics, watching: [])
        self.takeAllRoom()
        metrics.count(.deviceGroupPut, of: try .sample("shop"), outcome: OutcomeCode.upstreamUnavailable.rawValue)
        let labels = "other device_group.put upstream_unavailable"
        #expect(self.counts("fcmgw_device_group_requests_total") == [labels: 1])
    }

    @Test("The series of the shared label exist from the start")
    func startingSeries() throws {
        let metrics = TenantCounters(.subscriptionChanges, self.metrics, startingWith: ["subscribe", "unsubscribe"])
        _ = TenantGauges(.retiredTokenSpikeActive, self.metrics) { $0.reduce(0, +) }
        let counts = self.counts("fcmgw_subscription_changes_total")
        #expect(counts == ["other subscribe accepted": 0, "other unsubscribe accepted": 0])
        #expect(try self.factory.expectMeter("fcmgw_retired_token_spike_active", [("tenant", "other")]).lastValue == 0)
        metrics.count(Refusal(.forbidden), of: try .sample(tenant: "shop"), asking: "subscribe")
        #expect(self.counts("fcmgw_subscription_changes_total")["shop subscribe forbidden"] == 1)
    }

    @Test("A tenant's gauge shows its last value, and the shared gauge the sum of its tenants' values")
    func gauges() throws {
        let gauges = TenantGauges(.retiredTokenSpikeActive, self.metrics) { $0.reduce(0, +) }
        for index in 0..<GatewayMetrics.TenantLabels.maxLabels { gauges.set(0, of: try .sample("t\(index)")) }
        for tenant in ["t0", "late", "later", "late"] { gauges.set(1, of: try .sample(tenant)) }
        func shown(_ label: String) throws -> Double? {
            try self.factory.expectMeter("fcmgw_retired_token_spike_active", [("tenant", label)]).lastValue
        }
        #expect(try shown("t0") == 1)
        #expect(try shown("other") == 2)
        gauges.set(0, of: try .sample("late"))
        gauges.set(0, of: try .sample("t0"))
        #expect(try shown("t0") == 0)
        #expect(try shown("other") == 1)
    }
}
