import EventLoopHTTP
import GatewayUpstream
import Testing

@testable import GatewayService

struct DescriptorPlanTests {
    /// A descriptor limit, and the connections that the plan allows.
    struct Case: Sendable {
        var limit: Int?
        var loops = 4
        var data: Int
        var admin: Int
        var upstream: Int
        var perLoop: Int
    }

    @Test(
        "Each kind of connection has a share of the descriptors, bounded by the configuration",
        arguments: [
            Case(limit: 65_536, data: 16_384, admin: 256, upstream: 48_816, perLoop: 256),
            Case(limit: 32_768, loops: 16, data: 16_384, admin: 256, upstream: 16_000, perLoop: 256),
            Case(limit: 20_000, data: 14_664, admin: 256, upstream: 5_000, perLoop: 256),
            Case(limit: 4_096, data: 2_736, admin: 256, upstream: 1_024, perLoop: 128),
            Case(limit: 1_024, data: 624, admin: 64, upstream: 256, perLoop: 32),
            Case(limit: 1_024, loops: 64, data: 384, admin: 64, upstream: 256, perLoop: 2),
            Case(limit: 64, loops: 1, data: 12, admin: 4, upstream: 16, perLoop: 8),
            Case(limit: 8, data: 1, admin: 1, upstream: 2, perLoop: 1),
            Case(limit: 0, data: 1, admin: 1, upstream: 1, perLoop: 1),
        ]
    )
    func shares(expected: Case) {
        let plan = DescriptorPlan(.sample(eventLoops: expected.loops), limit: expected.limit)
        #expect(plan.dataConnections == expected.data)
        #expect(plan.adminConnections == expected.admin)
        #expect(plan.upstreamConnections == expected.upstream)
        #expect(plan.upstreamConnectionsPerLoop == expected.perLoop)
    }

    @Test("Without a limit the plan allows all configured connections", arguments: [nil, Int.max])
    func unlimited(limit: Int?) {
        let plan = DescriptorPlan(Self.configuration(loops: 1024, data: 1_000_000, admin: 1_000_000), limit: limit)
        #expect(plan.dataConnections == 1_000_000 && plan.adminConnections == 1_000_000)
        #expect(plan.upstreamConnectionsPerLoop == 256)
    }

    @Test("The shares stay within the limit, and the process keeps its own part", arguments: [1, 2, 4, 16, 64])
    func sum(loops: Int) {
        for limit in stride(from: 64, through: 40_000, by: 37) {
            let plan = DescriptorPlan(.sample(eventLoops: loops), limit: limit)
            let connections = plan.dataConnections + plan.adminConnections + plan.upstreamConnections
            #expect(limit - connections == min(64 + 4 * loops, limit / 2), "of \(limit)")
        }
    }

    @Test(
        "The limit reported as enough allows all configured connections",
        arguments: [
            (1, 16_384, 256), (4, 16_384, 256), (64, 16_384, 256), (4, 1, 1), (1, 1, 1_000_000), (2, 1_000_000, 1),
            (1024, 1_000_000, 1_000_000), (3, 17, 5), (3, 18, 5), (3, 19, 5),
        ]
    )
    func enough(loops: Int, data: Int, admin: Int) {
        let configuration = Self.configuration(loops: loops, data: data, admin: admin)
        let plan = DescriptorPlan(configuration, limit: DescriptorPlan.descriptors(for: configuration))
        #expect(plan.dataConnections == data)
        #expect(plan.adminConnections == admin)
        #expect(plan.upstreamConnectionsPerLoop == 256)
    }

    private static func configuration(loops: Int, data: Int, admin: Int) -> GatewayConfiguration {
        var configuration = GatewayConfiguration.sample(eventLoops: loops)
        configuration.http.server.maxConnections = data
        configuration.admin.server.maxConnections = admin
        return configuration
    }
}

extension GatewayConfiguration {
    /// The defaults with a number of event loops.
    static func sample(eventLoops: Int) -> GatewayConfiguration {
        var configuration = GatewayConfiguration()
        configuration.eventLoops = eventLoops
        return configuration
    }
}
