import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("Pacer")
struct PacerTests {
    private let start = Uptime.now

    /// The departures of a runner that always has work, as seconds since the start and recipients.
    private func departures(
        _ pacer: inout Pacer,
        limit: Double,
        size: Int = 1,
        from begin: Double = 0,
        for seconds: Double
    ) -> [(time: Double, count: Int)] {
        var departures: [(time: Double, count: Int)] = []
        var now = self.at(begin)
        while true {
            now = pacer.departure(of: size, limit: limit, at: now)
            let time = (now - self.start) / .seconds(1)
            guard time < begin + seconds else { return departures }
            departures.append((time, size))
        }
    }

    private func at(_ seconds: Double) -> Uptime { self.start + .seconds(seconds) }

    /// The most recipients within any second.
    private static func peak(_ departures: [(time: Double, count: Int)]) -> Int {
        var (peak, sum, first) = (0, 0, 0)
        for departure in departures {
            sum += departure.count
            // Two departures a second apart are not in the same second, however their times were rounded.
            while departures[first].time <= departure.time - 1 + 1e-6 {
                sum -= departures[first].count
                first += 1
            }
            peak = max(peak, sum)
        }
        return peak
    }

    private static func count(_ departures: [(time: Double, count: Int)], in seconds: Range<Double>) -> Int {
        departures.filter { seconds.contains($0.time) }.reduce(0) { $0 + $1.count }
    }

    @Test(
        "No second has more recipients than the limit, with calls of any size",
        arguments: [1, 3.5, 99, 100, 101, 150, 700, 4_321],
        [1, 33, 100]
    )
    func bounded(limit: Double, size: Int) {
        var pacer = Pacer()
        let size = min(size, Int(limit))
        let departures = self.departures(&pacer, limit: limit, size: size, for: 100)
        #expect(Self.peak(departures) <= Int(limit))
        // The limit is used: at least half of it, since a call does not leave in parts.
        #expect(Double(Self.count(departures, in: 70..<100)) >= limit * 30 / 2)
    }

    @Test("Single recipients use the whole limit", arguments: [1, 50, 100, 1_000])
    func used(limit: Double) {
        var pacer = Pacer()
        let departures = self.departures(&pacer, limit: limit, for: 100)
        #expect(abs(Double(Self.count(departures, in: 70..<100)) - limit * 30) <= 2)
    }

    @Test(
        "The ramp takes 60 s from a sixtieth of the limit or 100/s, and a small limit has none",
        arguments: [(50.0, 50), (100, 100), (101, 100), (1_000, 100), (12_000, 200)]
    )
    func ramp(limit: Double, first: Int) {
        var pacer = Pacer()
        let departures = self.departures(&pacer, limit: limit, for: 90)
        let rise = Int((limit - Double(first)) / 60)
        #expect((first - 1...first + rise + 1).contains(Self.count(departures, in: 0..<1)))
        for second in 0..<60 {
            let most = Double(first) + (limit - Double(first)) * Double(second + 1) / 60
            #expect(Double(Self.count(departures, in: Double(second)..<Double(second + 1))) <= most + 1)
        }
        #expect(Double(Self.count(departures, in: 61..<62)) >= limit - 2)
    }

    @Test("A rest of a minute begins the ramp again, a shorter one does not")
    func rest() {
        for (rest, isRamp) in [(59.0, false), (61, true)] {
            var pacer = Pacer()
            _ = self.departures(&pacer, limit: 1_000, for: 100)
            let after = self.departures(&pacer, limit: 1_000, from: 100 + rest, for: 1)
            #expect((Self.count(after, in: 0..<1_000) < 200) == isRamp)
        }
    }

    @Test("After a 429 nothing leaves until its end, then at most half of the limit, which recovers within ten minutes")
    func setback() {
        let limit = 1_000.0
        var pacer = Pacer()
        _ = self.departures(&pacer, limit: limit, for: 100)
        pacer.take(Pacer.Setback(end: self.at(160), factor: pacer.halvedFactor(at: self.at(100))))
        let after = self.departures(&pacer, limit: limit, from: 100, for: 700)
        #expect(after.first.map { $0.time >= 160 } == true)
        for second in stride(from: 160.0, to: 800, by: 1) {
            let most = limit / 2 + limit * (second + 1 - 160) / 600
            #expect(Double(Self.count(after, in: second..<second + 1)) <= min(limit, most) + 1)
        }
        // The ramp again.
        #expect(Self.count(after, in: 160..<161) <= 110)
        #expect(Self.count(after, in: 225..<226) >= 590)
        #expect(Self.count(after, in: 465..<466) >= 990)
    }

    @Test("Each 429 halves the limit again, and one that another replica met counts once")
    func setbacks() {
        var pacer = Pacer()
        let first = Pacer.Setback(end: self.at(60), factor: pacer.halvedFactor(at: self.at(0)))
        #expect(first.factor == 0.5)
        pacer.take(first)
        pacer.take(first)
        pacer.take(Pacer.Setback(end: self.at(59), factor: 0.1))
        #expect(pacer.setback == first)
        #expect(pacer.halvedFactor(at: self.at(60)) == 0.25)
        #expect(pacer.halvedFactor(at: self.at(210)) == 0.375)
        #expect(pacer.halvedFactor(at: self.at(1_000)) == 0.5)
    }

    @Test("However many 429s follow each other, something may leave after each")
    func manySetbacks() {
        var pacer = Pacer()
        for number in 0..<50 {
            let end = self.at(Double(number * 60))
            pacer.take(Pacer.Setback(end: end, factor: pacer.halvedFactor(at: end)))
            let departure = pacer.departure(of: 1, limit: 1, at: end)
            #expect(departure == end && pacer.delay(at: end) < .seconds(60), "\(number)")
        }
    }

    @Test("A limit that changes counts from the next departure")
    func changedLimit() {
        var (pacer, now) = (Pacer(), self.start)
        for step in 0..<2_000 {
            let limit = Double(1 + step * 37 % 500)
            let departure = pacer.departure(of: 1, limit: limit, at: now)
            #expect(departure >= now)
            let after = pacer.departure(of: 1, limit: limit, at: departure)
            #expect(after - departure >= .seconds(1 / limit) - .microseconds(1))
            now = after + .milliseconds(step * 91 % 300)
        }
    }

    @Test("A slice has the recipients of two seconds, at least one and at most as many as asked for")
    func slices() {
        var pacer = Pacer()
        #expect(pacer.sliceSize(limit: 0.1, atMost: 500, at: self.start) == 1)
        #expect(pacer.sliceSize(limit: 30, atMost: 500, at: self.start) == 60)
        #expect(pacer.sliceSize(limit: 6_000, atMost: 500, at: self.start) == 200)
        #expect(pacer.sliceSize(limit: 6_000, atMost: 100, at: self.start) == 100)
        #expect(pacer.sliceSize(limit: 30, atMost: 100, inOneCall: true, at: self.start) == 30)
        _ = self.departures(&pacer, limit: 6_000, for: 70)
        #expect(pacer.sliceSize(limit: 6_000, atMost: 500, at: self.at(70)) == 500)
    }
}
