import Testing

@testable import RedisLimits

@Suite("LimiterHealth")
struct LimiterHealthTests {
    private static func failed() -> LimiterHealth {
        var health = LimiterHealth()
        for _ in 0..<LimiterHealth.maxFailures { _ = health.decided(isAnswered: false) }
        return health
    }

    @Test("Three failures more than answers end the sharing of limits, once")
    func failures() {
        var health = LimiterHealth()
        let decisions = [false, false, true, false, false, false].map { health.decided(isAnswered: $0) }
        #expect(decisions == [false, false, false, false, true, false])
        #expect(!health.isShared)
    }

    @Test(
        "A server that answers one decision of three is not asked for long, one that answers two of three is",
        arguments: [([false, false, true], false), ([false, true, true], true)]
    )
    func partly(answers: [Bool], isShared: Bool) {
        var health = LimiterHealth()
        for _ in 0..<100 {
            for isAnswered in answers { _ = health.decided(isAnswered: isAnswered) }
        }
        #expect(health.isShared == isShared)
    }

    @Test("Answers that came before the first failure don't make up for later ones")
    func noCredit() {
        var health = LimiterHealth()
        for _ in 0..<100 { _ = health.decided(isAnswered: true) }
        let decisions = (0..<3).map { _ in health.decided(isAnswered: false) }
        #expect(decisions == [false, false, true])
    }

    @Test("Only probes begin the sharing again, after four answers in a row")
    func probes() {
        var health = Self.failed()
        let late = (0..<10).map { _ in health.decided(isAnswered: true) }
        #expect(!late.contains(true))
        let probes = [true, true, true, false, true, true, true].map { health.probed(isAnswered: $0) }
        #expect(!probes.contains(true))
        #expect([health.decided(isAnswered: false), health.isShared] == [false, false])
        #expect([health.probed(isAnswered: true), health.isShared] == [true, true])
    }

    @Test("What is shared again fails by three failures as before, and a probe has no say meanwhile")
    func again() {
        var health = Self.failed()
        for _ in 0..<LimiterHealth.goodProbes { _ = health.probed(isAnswered: true) }
        #expect(health == LimiterHealth())
        #expect([health.decided(isAnswered: false), health.probed(isAnswered: true)] == [false, false])
        #expect([health.probed(isAnswered: false), health.decided(isAnswered: false)] == [false, false])
        #expect([health.decided(isAnswered: false), health.isShared] == [true, false])
    }
}
