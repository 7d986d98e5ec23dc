import FCMModel
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayCore

@Suite("TenantLabels")
struct TenantLabelsTests {
    private let labels = TenantLabels()
    private let factory = TestMetrics()

    private func takeAllRoom() {
        while self.labels.takeRoom() {}
    }

    /// The counters of a metric that were made, by their labels' values.
    private func counts(_ label: String) -> [String: Int64] {
        self.factory.counters(label: label)
            .reduce(into: [:]) { $0[$1.dimensions.map(\.1).joined(separator: " ")] = $1.totalValue }
    }

    @Test("A tenant by the name of the shared label has no label of its own, and takes none from another")
    func namedOther() throws {
        #expect(self.labels.ownLabel(of: try .sample("other")) == nil)
        #expect(self.labels.label(of: try .sample("other")) == "other")
        for index in 0..<TenantLabels.maxLabels {
            #expect(self.labels.ownLabel(of: try .sample("t\(index)")) == "t\(index)")
        }
        #expect(self.labels.ownLabel(of: try .sample("late")) == nil)
        #expect(self.labels.ownLabel(of: try .sample("t0")) == "t0")
    }

    @Test("Without room, what alerts ask for is counted under the tenant's own label, all else under the shared one")
    func messages() throws {
        let metrics = SendMetrics(factory: self.factory, tenantLabels: self.labels)
        let shop = try Principal.sample(tenant: "shop")
        metrics.count(.sample(from: shop, to: .token("a")), .refused(Refusal(.upstreamUnavailable)))
        self.takeAllRoom()
        for target in [Target.token("a"), .tokens(["a", "b"]), .installation("a")] {
            for code in [OutcomeCode.upstreamUnavailable, .upstreamCredentials, .unregistered] {
                metrics.count(.sample(from: shop, to: target), .refused(Refusal(code)))
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

    @Test("Tenants without a label share one for the same, by kind")
    func withoutLabel() throws {
        let metrics = SendMetrics(factory: self.factory, tenantLabels: self.labels)
        self.takeAllRoom()
        let other = try Principal.sample(tenant: "other")
        metrics.count(.sample(from: other, to: .token("a")), .refused(Refusal(.upstreamUnavailable)))
        #expect(self.counts("fcmgw_messages_total") == ["other token upstream_unavailable": 1])
    }

    @Test("Subscriptions that fail for want of a credential are counted under the tenant's own label too")
    func subscriptions() throws {
        let metrics = TopicMetrics(factory: self.factory, tenantLabels: self.labels)
        self.takeAllRoom()
        for change in SubscriptionChange.allCases {
            let command = SubscriptionCommand(
                principal: try .sample(tenant: "shop"),
                change: change,
                topic: try #require(TopicName("news")),
                tokens: ["a", "b"],
                origin: .sample,
                deadline: .now
            )
            metrics.count(command, .refused(Refusal(.upstreamCredentials)))
            metrics.count(command, .value([.done, .rejected(.unregistered)]))
        }
        let counts = self.counts("fcmgw_subscription_changes_total")
        #expect(counts["shop other upstream_credentials"] == Int64(2 * SubscriptionChange.allCases.count))
        #expect(counts.keys.filter { $0.hasPrefix("shop") }.count == 1)
        #expect(
            counts.filter { $0.key.hasPrefix("other") }.values.reduce(0, +)
                == Int64(2 * SubscriptionChange.allCases.count)
        )
    }
}
