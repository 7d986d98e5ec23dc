import Testing

@testable import RedisLimits

@Suite("LimiterHealth")
struct LimiterHealthTests {
    private static func doubted() -> LimiterHealth {
        var health = LimiterHealth()
        for _ in 0..<LimiterHealth.maxFailures { _ = health.decided(isAnswered: false) }
        return health
    }

    private static func failed() -> LimiterHealth {
        var health = Self.doubted()
        _ = health.probed(isAnswered: false)
        return health
    }

    @Test("Three more failures than answers raise a doubt, and only once")
    func failures() {
        var health = LimiterHealth()
        let decisions = [false, false, true, false, false, false].map { health.decided(isAnswered: $0) }
        #expect(decisions == [false, false, false, false, true, false])
        #expect(health.isShared)
    }

    @Test("During a doubt a failed probe ends the sharing of limits, and an answered probe ends the doubt")
    func doubt() {
        var health = Self.doubted()
        #expect([health.probed(isAnswered: false), health.probed(isAnswered: false)] == [.failed, nil])
        #expect(!health.isShared)
        health = Self.doubted()
        #expect(health.probed(isAnswered: true) == nil)
        #expect(health == LimiterHealth())
    }

    @Test(
        "A server that answers one decision in three is doubted; one that answers two in three is not",
        arguments: [([false, false, true], true), ([false, true, true], false)]
    )
    func partly(answers: [Bool], isDoubted: Bool) {
        var health = LimiterHealth()
        var doubts = 0
        for _ in 0..<100 {
            for isAnswered in answers where health.decided(isAnswered: isAnswered) { doubts += 1 }
        }
        #expect((doubts > 0) == isDoubted)
    }

    @Test("Answers before the first failure do not offset later failures")
    func noCredit() {
        var health = LimiterHealth()
        for _ in 0..<100 { _ = health.decided(isAnswered: true) }
        let decisions = (0..<3).map { _ in health.decided(isAnswered: false) }
        #expect(decisions == [false, false, true])
    }

    @Test("Only four answered probes in a row resume sharing; answered decisions do not")
    func probes() {
        var health = Self.failed()
        let late = (0..<10).map { _ in health.decided(isAnswered: true) }
        #expect(!late.contains(true))
        let probes = [true, true, true, false, true, true, true].map { health.probed(isAnswered: $0) }
        #expect(probes.allSatisfy { $0 == nil })
        #expect([health.decided(isAnswered: false), health.isShared] == [false, false])
        #expect(health.probed(isAnswered: true) == .recovered)
        #expect(health == LimiterHealth())
    }

    @Test("A failure at start begins the fallback at once and is reported once")
    func start() {
        var health = LimiterHealth()
        #expect([health.fail(), health.fail(), health.isShared] == [true, false, false])
    }
}
