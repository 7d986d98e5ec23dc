import Logging
import MetricsTestKit
import Testing

@testable import GatewaySupport

struct ReplicaRosterTests {
    private static let own = ReplicaID(text: "own/1")

    private static func roster(_ ages: [(String, Duration)]) -> Replicas.Roster {
        var roster = Replicas.Roster(of: Self.own)
        roster.update(ages.map { Replicas.Sighting(id: ReplicaID(text: $0.0), age: $0.1) }, at: .now)
        return roster
    }

    @Test("A roster without other replicas counts one live replica")
    func alone() {
        #expect(Replicas.Roster(of: Self.own).aliveCount == 1)
        #expect(Self.roster([]).aliveCount == 1)
        #expect(Self.roster([("own/1", .seconds(100))]).aliveCount == 1)
    }

    @Test("Another replica counts as live until its last heartbeat is ten seconds old")
    func ages() {
        let ages: [(String, Duration)] = [
            ("a/1", .milliseconds(9_999)), ("b/1", .seconds(10)), ("own/0", .seconds(61)), ("own/1", .zero),
        ]
        #expect(Self.roster(ages).aliveCount == 2)
    }

    @Test("A roster is steady after ten seconds of heartbeats, and a gap of ten seconds restarts the wait")
    func steady() {
        let start = Uptime.now
        func at(_ seconds: Int) -> Uptime { start + .seconds(seconds) }
        var roster = Replicas.Roster(of: Self.own)
        #expect(!roster.isSteady(at: at(100)))
        for second in [0, 2, 9] { roster.update([], at: at(second)) }
        #expect(!roster.isSteady(at: at(9)))
        #expect(roster.isSteady(at: at(10)))
        #expect(roster.isSteady(at: at(18)))
        // Paused, or cut off from the store.
        #expect(!roster.isSteady(at: at(19)))
        for second in [190, 192, 199] {
            roster.update([], at: at(second))
            #expect(!roster.isSteady(at: at(second)))
        }
        roster.update([], at: at(200))
        #expect(roster.isSteady(at: at(200)))
    }

    @Test("Two replica IDs with the same name and start time differ")
    func names() {
        let time = Timestamp(microseconds: 0)
        let ids = [ReplicaID(name: "gateway-0", startedAt: time), ReplicaID(name: "gateway-0", startedAt: time)]
        #expect(ids[0] != ids[1])
        #expect(ids.allSatisfy { $0.text.hasPrefix("gateway-0/") })
    }
}

struct ReplicasTests {
    private struct Store: ReplicaStore {
        func heartbeat(of id: ReplicaID) async throws(GatewayError) -> [Replicas.Sighting] {
            [Replicas.Sighting(id: ReplicaID(text: "a/1"), age: .seconds(1)), Replicas.Sighting(id: id, age: .zero)]
        }

        func leave(_ id: ReplicaID) async throws(GatewayError) {}

        func removeSilent(for age: Duration) async throws(GatewayError) {}
    }

    @Test("The replica gauge is 1 at the start and includes other replicas after a heartbeat")
    func count() async throws {
        let factory = TestMetrics()
        let replicas = Replicas(
            id: ReplicaID(text: "own/1"),
            store: Store(),
            metrics: GatewayMetrics(factory: factory),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        let shown = try factory.expectMeter("fcmgw_replicas")
        #expect(shown.lastValue == 1)
        await replicas.beat()
        #expect(shown.lastValue == 2)
    }
}
