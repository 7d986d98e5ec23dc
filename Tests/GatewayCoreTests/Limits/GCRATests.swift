import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("GCRA")
struct GCRATests {
    /// One question to a bucket that admits one event a second and five at once.
    struct Step {
        var milliseconds: Int64
        var asked: Int
        var granted: Int
        var remaining: Int
        var resetSeconds: Int
        var waitMilliseconds: Int64
        var what: String

    }

    /// The life of one bucket, step after step.
    static let life = [
        Step(0, ask: 0, granted: 0, left: 5, reset: 0, wait: 0, "a first peek sees a whole bucket"),
        Step(0, ask: 1, granted: 1, left: 4, reset: 1, wait: 0, "one event leaves four"),
        Step(0, ask: 0, granted: 0, left: 4, reset: 1, wait: 0, "a peek takes nothing"),
        Step(0, ask: 10, granted: 4, left: 0, reset: 1, wait: 1_000, "too many at once get what is there"),
        Step(0, ask: 1, granted: 0, left: 0, reset: 1, wait: 1_000, "an empty bucket refuses"),
        Step(
            0,
            ask: 1_000_000_000,
            granted: 0,
            left: 0,
            reset: 1,
            wait: 1_000,
            "asking for very many does not overflow"
        ),
        Step(500, ask: 1, granted: 0, left: 0, reset: 1, wait: 500, "half an interval is too little"),
        Step(999, ask: 1, granted: 0, left: 0, reset: 1, wait: 1, "so is a millisecond less than one"),
        Step(1_000, ask: 0, granted: 0, left: 1, reset: 4, wait: 0, "after an interval one is back"),
        Step(1_000, ask: 1, granted: 1, left: 0, reset: 1, wait: 1_000, "and is taken"),
        Step(3_500, ask: 9, granted: 2, left: 0, reset: 1, wait: 500, "two and a half intervals are worth two"),
        Step(8_000, ask: 0, granted: 0, left: 5, reset: 0, wait: 0, "the bucket fills up"),
        Step(90_000, ask: 0, granted: 0, left: 5, reset: 0, wait: 0, "and no further"),
        Step(90_000, ask: 5, granted: 5, left: 0, reset: 1, wait: 1_000, "five at once"),
        Step(89_999, ask: 1, granted: 0, left: 0, reset: 2, wait: 1_001, "a late thread wins nothing"),
        Step(89_000, ask: 1, granted: 0, left: 0, reset: 2, wait: 2_000, "nor does one that is a second late"),
        Step(90_000, ask: 1, granted: 0, left: 0, reset: 1, wait: 1_000, "and changes nothing for the others"),
        Step(60_000, ask: 1, granted: 0, left: 0, reset: 1, wait: 1_000, "a clock set back empties the bucket"),
        Step(61_000, ask: 1, granted: 1, left: 0, reset: 1, wait: 1_000, "which fills from then on"),
        Step(3_661_000, ask: 9, granted: 5, left: 0, reset: 1, wait: 1_000, "a clock set forward gives one burst"),
    ]

    @Test("One bucket's life goes as the table says")
    func life() throws {
        let table = LimitTable(.device, maxEntries: 1)
        let history = PolicyHistory(.device([try .sample(1, per: 1, burst: 5)]))
        let key = LimitKey.sample("bucket")
        for step in Self.life {
            let now = step.milliseconds * 1_000_000
            let charge = table.charge(key, step.asked, under: history, now: now)
            let status = table.bucket(key, under: history).quotas(at: now)
            #expect(charge.granted == step.granted, "\(step.what)")
            #expect(charge.bucket.wait(at: now) == step.waitMilliseconds * 1_000_000, "\(step.what)")
            #expect(table.bucket(key, under: history).wait(at: now) == charge.bucket.wait(at: now), "\(step.what)")
            #expect(status.map(\.remaining) == [step.remaining], "\(step.what)")
            #expect(status.map(\.resetSeconds) == [step.resetSeconds], "\(step.what)")
        }
    }

    @Test(
        "The interval is rounded up, so that the bound holds to the nanosecond",
        arguments: [3, 7, 9_000, 999_999_999]
    )
    func interval(rate: Int) throws {
        let policy = try RatePolicy.sample(rate, per: 1, burst: 1)
        #expect(policy.interval * Int64(rate) >= 1_000_000_000)
        #expect((policy.interval - 1) * Int64(rate) < 1_000_000_000)
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

extension GCRATests.Step {
    fileprivate init(
        _ milliseconds: Int64,
        ask asked: Int,
        granted: Int,
        left: Int,
        reset: Int,
        wait: Int64,
        _ what: String
    ) {
        self.init(
            milliseconds: milliseconds,
            asked: asked,
            granted: granted,
            remaining: left,
            resetSeconds: reset,
            waitMilliseconds: wait,
            what: what
        )
    }
}
