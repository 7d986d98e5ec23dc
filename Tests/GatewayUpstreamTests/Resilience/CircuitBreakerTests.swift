import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

struct CircuitBreakerTests {
    /// A reference to a breaker, so that an expectation can call mutating methods.
    private final class Subject {
        private var breaker = CircuitBreaker()

        var condition: CircuitBreaker.Condition { self.breaker.condition }

        func permit(at now: Uptime) -> CircuitBreaker.Permit { self.breaker.permit(at: now) }

        func report(_ verdict: CircuitBreaker.Verdict, at now: Uptime) -> Bool {
            self.breaker.report(verdict, at: now)
        }
    }

    private let start = Uptime.now

    private func at(_ seconds: Double) -> Uptime { self.start.advanced(by: .seconds(seconds)) }

    /// A breaker that has just opened for the n-th time in a row, the time when it opened, and its rest.
    private func opened(times: Int = 1) -> (breaker: Subject, at: Double, rest: Double) {
        let breaker = Subject()
        for _ in 1...5 { _ = breaker.report(.trouble, at: self.at(0)) }
        var (now, rest) = (0.0, 30.0)
        for _ in 1..<max(1, times) {
            now += rest
            _ = breaker.permit(at: self.at(now))
            _ = breaker.report(.trouble, at: self.at(now))
            rest = min(rest * 2, 300)
        }
        return (breaker, now, rest)
    }

    @Test("Five consecutive failures open the breaker; a success resets the count")
    func row() {
        let breaker = Subject()
        for _ in 1...3 {
            for _ in 1...4 { #expect(!breaker.report(.trouble, at: self.at(0))) }
            #expect(!breaker.report(.healthy, at: self.at(0)))
        }
        // Twelve of fifteen calls failed, but the failure rate needs 20 calls.
        #expect(breaker.condition == .closed)
        let other = Subject()
        for number in 1...5 { #expect(other.report(.trouble, at: self.at(0)) == (number == 5)) }
        #expect(other.condition == .open)
        #expect(other.permit(at: self.at(1)) == .refused(wait: .seconds(29)))
    }

    @Test("The failure rate opens the breaker at half of at least 20 recent calls")
    func share() {
        for (before, pairs, opens) in [(0, 10, true), (0, 9, false), (1, 9, false), (30, 100, false)] {
            let breaker = Subject()
            for _ in 0..<before { _ = breaker.report(.healthy, at: self.at(0)) }
            var isOpened = false
            // Pairs avoid five consecutive failures.
            for _ in 1...pairs {
                isOpened = breaker.report(.healthy, at: self.at(0)) || isOpened
                isOpened = breaker.report(.trouble, at: self.at(0)) || isOpened
            }
            #expect(isOpened == opens, "\(before) before \(pairs) pairs")
        }
    }

    @Test("Failures older than ten seconds don't count")
    func window() {
        let breaker = Subject()
        for _ in 1...9 {
            _ = breaker.report(.trouble, at: self.at(0))
            _ = breaker.report(.healthy, at: self.at(0))
        }
        _ = breaker.report(.healthy, at: self.at(11))
        #expect(!breaker.report(.trouble, at: self.at(11)))
        #expect(!breaker.report(.trouble, at: self.at(11)))
        #expect(breaker.condition == .closed)
    }

    @Test("After its rest the breaker permits one probe; an unreported probe blocks others for 15 seconds")
    func probe() {
        let (breaker, _, _) = self.opened()
        #expect(breaker.permit(at: self.at(29.9)) != .granted)
        #expect(breaker.permit(at: self.at(30)) == .granted)
        #expect(breaker.condition == .halfOpen)
        for _ in 1...100 { #expect(breaker.permit(at: self.at(31)) == .refused(wait: .seconds(1))) }
        #expect(breaker.permit(at: self.at(45)) == .granted)
    }

    @Test("Trouble after a silent probe opens the breaker again for twice as long")
    func lateVerdict() {
        let (breaker, _, _) = self.opened()
        #expect(breaker.permit(at: self.at(30)) == .granted)
        #expect(!breaker.report(.silent, at: self.at(30.1)))
        #expect(breaker.report(.trouble, at: self.at(30.1)))
        #expect(breaker.permit(at: self.at(31)) == .refused(wait: .milliseconds(59_100)))
        // A call that began before the breaker opened changes nothing.
        #expect(!breaker.report(.trouble, at: self.at(40)))
        #expect(breaker.permit(at: self.at(91)) == .granted)
    }

    @Test("Calls lost at the same time count as one failure; five such times in a row open the breaker")
    func lost() {
        let breaker = Subject()
        for moment in 1...4 {
            for _ in 1...100 {
                let isOpened = breaker.report(.lost, at: self.at(Double(moment)))
                #expect(!isOpened)
            }
        }
        #expect(breaker.condition == .closed)
        #expect(breaker.report(.lost, at: self.at(5)))
        #expect(breaker.permit(at: self.at(5)) == .refused(wait: .seconds(30)))
        // A lost probe counts immediately.
        #expect(breaker.permit(at: self.at(35)) == .granted)
        #expect(breaker.report(.lost, at: self.at(35)))
        #expect(breaker.permit(at: self.at(36)) == .refused(wait: .seconds(59)))
    }

    @Test("Each failed probe doubles the rest, up to five minutes", arguments: 1...7)
    func relapse(times: Int) {
        let (breaker, now, rest) = self.opened(times: times)
        #expect(rest == [30, 60, 120, 240, 300, 300, 300][times - 1])
        #expect(breaker.permit(at: self.at(now + rest - 0.5)) == .refused(wait: .milliseconds(500)))
        #expect(breaker.permit(at: self.at(now + rest)) == .granted)
    }

    @Test("A silent probe permits another probe")
    func silentProbe() {
        let (breaker, _, _) = self.opened()
        #expect(breaker.permit(at: self.at(30)) == .granted)
        #expect(!breaker.report(.silent, at: self.at(31)))
        #expect(breaker.permit(at: self.at(31)) == .granted)
    }

    @Test("After recovery, permitted calls ramp up over ten seconds, and the next rest is 30 seconds again")
    func ramp() {
        let (breaker, opened, rest) = self.opened(times: 3)
        let now = opened + rest
        _ = breaker.permit(at: self.at(now))
        #expect(!breaker.report(.healthy, at: self.at(now)))
        func granted(at time: Double) -> Int {
            (1...100).count { _ in breaker.permit(at: self.at(time)) == .granted }
        }
        #expect((9...11).contains(granted(at: now + 0.5)))
        #expect((49...51).contains(granted(at: now + 5)))
        #expect((89...91).contains(granted(at: now + 9)))
        #expect(granted(at: now + 10) == 100)
        #expect(breaker.condition == .closed)
        for _ in 1...5 { _ = breaker.report(.trouble, at: self.at(now + 11)) }
        #expect(breaker.permit(at: self.at(now + 11)) == .refused(wait: .seconds(30)))
    }

    @Test("Trouble during the ramp-up opens the breaker again for twice as long")
    func rampRelapse() {
        let (breaker, _, _) = self.opened()
        _ = breaker.permit(at: self.at(30))
        _ = breaker.report(.healthy, at: self.at(30))
        for number in 1...5 { #expect(breaker.report(.trouble, at: self.at(32)) == (number == 5)) }
        #expect(breaker.permit(at: self.at(32)) == .refused(wait: .seconds(60)))
    }

    @Test("Reports of calls that began before the breaker opened change nothing")
    func latecomers() {
        let (breaker, _, _) = self.opened()
        for _ in 1...50 {
            #expect(!breaker.report(.trouble, at: self.at(5)))
            _ = breaker.report(.healthy, at: self.at(5))
        }
        #expect(breaker.permit(at: self.at(29)) == .refused(wait: .seconds(1)))
        #expect(breaker.permit(at: self.at(30)) == .granted)
    }

    @Test("In random sequences, an open breaker permits only probes, and successes alone close it", arguments: 0..<50)
    func anything(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let breaker = Subject()
        var now = 0.0
        for _ in 1...2_000 {
            now += Double.random(in: 0...2, using: &generator)
            let before = breaker.condition
            if case .refused(let wait) = breaker.permit(at: self.at(now)) {
                #expect(before != .closed)
                #expect(wait > .zero && wait <= .seconds(300))
            } else {
                #expect(before != .open || breaker.condition == .halfOpen)
            }
            let verdict: CircuitBreaker.Verdict =
                [.healthy, .trouble, .lost, .silent].randomElement(using: &generator) ?? .silent
            _ = breaker.report(verdict, at: self.at(now))
        }
        for _ in 1...60 {
            now += 10
            if breaker.permit(at: self.at(now)) == .granted { _ = breaker.report(.healthy, at: self.at(now)) }
        }
        #expect(breaker.condition == .closed)
    }
}
