import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("LimitTable")
struct LimitTableTests {
    private static let second: Int64 = 1_000_000_000

    @Test("Idle buckets are dropped when new ones are added")
    func idleBucketsAreDropped() throws {
        let table = LimitTable(.device, maxEntries: 1_000_000)
        let policies = LimitPolicies.device([try .sample(1, per: 1, burst: 1)])
        for (name, now) in [("old", 0), ("new", 10 * Self.second)] {
            for index in 0..<20_000 { _ = table.charge(.sample("\(name) \(index)"), 1, under: policies, now: now) }
            #expect(table.count == 20_000)
        }
    }

    @Test("The table never exceeds its bound, and it keeps exhausted buckets")
    func boundAndEviction() throws {
        let bound = 64 * 256
        let table = LimitTable(.device, maxEntries: bound)
        let policies = LimitPolicies.device([try .sample(1, per: 60, burst: 60)])
        let exhausted = (0..<500).map { LimitKey.sample("exhausted \($0)") }
        for key in exhausted { #expect(table.charge(key, 60, under: policies, now: 0).granted == 60) }
        var highest = 0
        for index in 0..<3 * bound {
            _ = table.charge(.sample("\(index)"), 1, under: policies, now: Int64(index))
            if index % 97 == 0 { highest = max(highest, table.count) }
        }
        #expect(highest <= bound)
        #expect(highest > bound / 2)
        let forgotten = exhausted.filter { table.charge($0, 1, under: policies, now: Int64(4 * bound)).granted > 0 }
        #expect(forgotten.isEmpty)
    }

    @Test("The third and fourth policy of a key are limited as well and take a second entry of the table")
    func manyPolicies() throws {
        let table = LimitTable(.device, maxEntries: 1_000)
        let key = LimitKey.sample("key")
        let policies = LimitPolicies.device(try [4, 3, 2, 1].map { try .sample(1, per: 60, burst: $0) })
        #expect(table.charge(key, 5, under: policies, now: 0).granted == 1)
        #expect(table.bucket(key, under: policies).quotas(at: 0).map(\.remaining) == [3, 2, 1, 0])
        #expect(table.charge(key, 1, under: policies, now: 0).granted == 0)
        #expect(table.count == 2)
        table.refund(key, 1, under: policies, now: 0)
        #expect(table.bucket(key, under: policies).quotas(at: 0).map(\.remaining) == [4, 3, 2, 1])
    }

    @Test("A refund is exact even after another charge", arguments: [1, 3, 7])
    func refund(count: Int) throws {
        let table = LimitTable(.device, maxEntries: 1)
        let policies = LimitPolicies.device([try .sample(7, per: 3, burst: 20), try .sample(11, per: 60, burst: 30)])
        let (key, twin) = (LimitKey.sample("key"), LimitKey.sample("twin"))
        for now in [0, Self.second / 3, Self.second] {
            #expect(table.charge(key, count, under: policies, now: now).granted == count)
            #expect(table.charge(key, 2, under: policies, now: now).granted == 2)
            #expect(table.charge(twin, 2, under: policies, now: now).granted == 2)
            table.refund(key, count, under: policies, now: now)
            let twins = table.bucket(twin, under: policies).quotas(at: now)
            #expect(table.bucket(key, under: policies).quotas(at: now) == twins)
        }
    }

    @Test("A refund for an unknown key creates no bucket")
    func refundOfNothing() {
        let table = LimitTable(.device, maxEntries: 1)
        table.refund(.sample("key"), 3, under: LimitPolicies(), now: 0)
        #expect(table.count == 0)
    }
}
