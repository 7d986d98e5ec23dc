import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("GCRA")
struct GCRATests {
    /// One question to a bucket that admits one event a second and five at once.
    struct Step {
        /// In milliseconds.
        var at: Int64
        var ask: Int
        var granted: Int
        var left: Int
        /// In seconds.
        var reset: Int
        /// In milliseconds.
        var wait: Int64
        var what: String
    }

    /// The life of one bucket, step after step.
    static let life = [
        Step(at: 0, ask: 0, granted: 0, left: 5, reset: 0, wait: 0, what: "a first peek sees a whole bucket"),
        Step(at: 0, ask: 1, granted: 1, left: 4, reset: 1, wait: 0, what: "one event leaves four"),
        Step(at: 0, ask: 0, granted: 0, left: 4, reset: 1, wait: 0, what: "a peek takes nothing"),
        Step(at: 0, ask: 10, granted: 4, left: 0, reset: 1, wait: 1_000, what: "too many at once get what is there"),
        Step(at: 0, ask: 1, granted: 0, left: 0, reset: 1, wait: 1_000, what: "an empty bucket refuses"),
        Step(at: 0, ask: 1_000_000_000, granted: 0, left: 0, reset: 1, wait: 1_000, what: "very many do not overflow"),
        Step(at: 500, ask: 1, granted: 0, left: 0, reset: 1, wait: 500, what: "half an interval is too little"),
        Step(at: 999, ask: 1, granted: 0, left: 0, reset: 1, wait: 1, what: "so is a millisecond less than one"),
        Step(at: 1_000, ask: 0, granted: 0, left: 1, reset: 4, wait: 0, what: "after an interval one is back"),
        Step(at: 1_000, ask: 1, granted: 1, left: 0, reset: 1, wait: 1_000, what: "and is taken"),
        Step(at: 3_500, ask: 9, granted: 2, left: 0, reset: 1, wait: 500, what: "two and a half are worth two"),
        Step(at: 8_000, ask: 0, granted: 0, left: 5, reset: 0, wait: 0, what: "the bucket fills up"),
        Step(at: 90_000, ask: 0, granted: 0, left: 5, reset: 0, wait: 0, what: "and no further"),
        Step(at: 90_000, ask: 5, granted: 5, left: 0, reset: 1, wait: 1_000, what: "five at once"),
        Step(at: 89_999, ask: 1, granted: 0, left: 0, reset: 2, wait: 1_001, what: "a late thread wins nothing"),
        Step(at: 89_000, ask: 1, granted: 0, left: 0, reset: 2, wait: 2_000, what: "nor does one a second late"),
        Step(at: 90_000, ask: 1, granted: 0, left: 0, reset: 1, wait: 1_000, what: "and costs the others nothing"),
        Step(at: 60_000, ask: 1, granted: 0, left: 0, reset: 1, wait: 1_000, what: "a clock set back empties it"),
        Step(at: 61_000, ask: 1, granted: 1, left: 0, reset: 1, wait: 1_000, what: "which fills from then on"),
        Step(at: 3_661_000, ask: 9, granted: 5, left: 0, reset: 1, wait: 1_000, what: "one set forward gives a burst"),
    ]

    @Test("One bucket's life goes as the table says")
    func life() throws {
        let table = LimitTable(.device, maxEntries: 1)
        let policies = LimitPolicies.device([try .sample(1, per: 1, burst: 5)])
        let key = LimitKey.sample("bucket")
        for step in Self.life {
            let now = step.at * 1_000_000
            let charge = table.charge(key, step.ask, under: policies, now: now)
            let status = table.bucket(key, under: policies).quotas(at: now)
            #expect(charge.granted == step.granted, "\(step.what)")
            #expect(charge.bucket.wait(at: now) == step.wait * 1_000_000, "\(step.what)")
            #expect(table.bucket(key, under: policies).wait(at: now) == charge.bucket.wait(at: now), "\(step.what)")
            #expect(status.map(\.remaining) == [step.left], "\(step.what)")
            #expect(status.map(\.resetSeconds) == [step.reset], "\(step.what)")
        }
    }

    @Test("The slowest and the largest policies stay within 64 bits")
    func extremes() throws {
        let now: Int64 = 1 << 61
        for (rate, period, burst) in [(1, 86_400, 30), (1_000_000_000, 1, 1_000_000_000), (1, 1, 2_592_000)] {
            let gcra = GCRA(try RatePolicy.sample(rate, per: period, burst: burst))
            #expect(gcra.available(0, at: now) == burst)
            let empty = gcra.charged(0, burst, at: now)
            #expect(gcra.available(empty, at: now) == 0)
            #expect(gcra.refunded(empty, burst) == now)
        }
    }
}
