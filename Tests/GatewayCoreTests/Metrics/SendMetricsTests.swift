import FCMModel
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayCore

@Suite("SendMetrics")
struct SendMetricsTests {
    @Test("The first 200 tenants have labels of their own, the others share one")
    func tenantLabels() throws {
        let factory = TestMetrics()
        let metrics = SendMetrics(factory: factory)
        let accepted = SendOutcome.Answer.single(.accepted(Acceptance(messageID: "1")))
        for _ in 0..<2 {
            for index in 0..<250 {
                let command = SendCommand.sample(from: try .sample(tenant: "t\(index)"), to: .token("a"))
                metrics.count(command, accepted)
            }
        }
        let counters = factory.counters(label: "fcmgw_messages_total")
        #expect(counters.count == 201)
        #expect(counters.allSatisfy { $0.dimensions.map(\.0) == ["tenant", "kind", "outcome"] })
        func total(_ tenant: String) -> Int64 {
            factory.counterTotal(
                label: "fcmgw_messages_total",
                dimensions: [("tenant", tenant), ("kind", "token"), ("outcome", "accepted")]
            )
        }
        #expect(total("t0") == 2)
        #expect(total("t199") == 2)
        #expect(total("other") == 100)
    }

    @Test("A group's members are counted by what became of them")
    func groups() throws {
        let factory = TestMetrics()
        let metrics = SendMetrics(factory: factory)
        let command = SendCommand.sample(from: try .sample(), to: .notificationKey("group"))
        metrics.count(command, .group(GroupOutcome(success: 3, failure: 2, failedTokens: [])))
        metrics.count(command, .refused(Refusal(.upstreamCredentials)))
        func total(_ outcome: String) -> Int64 {
            factory.counterTotal(
                label: "fcmgw_messages_total",
                dimensions: [("tenant", "acme"), ("kind", "group"), ("outcome", outcome)]
            )
        }
        #expect(total("accepted") == 3)
        #expect(total("upstream_unavailable") == 2)
        #expect(total("upstream_credentials") == 1)
    }
}
