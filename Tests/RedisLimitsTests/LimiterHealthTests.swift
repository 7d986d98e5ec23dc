import Testing

@testable import RedisLimits

@Suite("LimiterHealth")
struct LimiterHealthTests {
    @Test("Three failures in a row end the sharing of limits, once; one answer begins it again")
    func failures() {
        var health = LimiterHealth()
        #expect([health.failed(), health.failed(), health.succeeded()] == [false, false, false])
        #expect([health.failed(), health.failed(), health.isShared] == [false, false, true])
        #expect([health.failed(), health.isShared] == [true, false])
        #expect([health.failed(), health.failed(), health.failed()] == [false, false, false])
        #expect([health.succeeded(), health.isShared, health.succeeded()] == [true, true, false])
    }
}
