import GatewaySupport
import Testing

@Suite("Uptime")
struct UptimeTests {
    private let now = Uptime.now

    @Test("A moment moves by durations, and two moments have a distance")
    func durations() {
        #expect(self.now + .milliseconds(1_500) - self.now == .milliseconds(1_500))
        #expect(self.now + .seconds(-2) < self.now)
        #expect(self.now.duration(to: self.now + .nanoseconds(-1)) == .nanoseconds(-1))
        var moment = self.now
        moment += .nanoseconds(7)
        #expect(moment - self.now == .nanoseconds(7))
        #expect(self.now + Duration(secondsComponent: 0, attosecondsComponent: 1) == self.now)
    }

    @Test("Moments stop at their bounds, centuries away")
    func bounds() {
        let (never, always) = (self.now + .seconds(Int64.max), self.now + .seconds(Int64.min))
        #expect(always < self.now && self.now < never)
        #expect(never + .seconds(1) == never)
        #expect(never - self.now > .seconds(100 * 365 * 86_400))
        #expect(never - always > never - self.now)
    }

    @Test("Uptime does not go back")
    func order() {
        var last = self.now
        for _ in 0..<1_000 {
            let next = Uptime.now
            #expect(next >= last)
            last = next
        }
    }

    @Test("A sleep ends at once if its moment has passed or its task is cancelled")
    func sleeping() async throws {
        try await Task.sleep(until: self.now)
        let sleeper = Task { try await Task.sleep(until: Uptime.now + .seconds(3_600)) }
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
    }
}
