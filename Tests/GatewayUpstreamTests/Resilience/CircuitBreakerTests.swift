import GatewayTestKit
import Testing

@testable import GatewayUpstream

struct CircuitBreakerTests {
    /// A breaker that expectations can ask.
    private final class Subject {
        private var breaker = CircuitBreaker()

        var condition: CircuitBreaker.Condition { self.breaker.condition }

        func permit(at now: ContinuousClock.Instant) -> CircuitBreaker.Permit { self.breaker.permit(at: now) }

        func report(_ verdict: CircuitBreaker.Verdict, at now: ContinuousClock.Instant) -> Bool {
            self.breaker.report(verdict, at: now)
        }
    }

    private let start = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant { self.start.advanced(by: .seconds(seconds)) }

    /// A breaker that has just opened for the n-th time in a row, and when it may be asked again.
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

    @Test("Five failures in a row open it; an answer in between starts the count anew")
    func row() {
        let breaker = Subject()
        for _ in 1...3 {
            for _ in 1...4 { #expect(!breaker.report(.trouble, at: self.at(0))) }
            #expect(!breaker.report(.healthy, at: self.at(0)))
        }
        // Twelve of fifteen failed, but fifteen calls are too few to judge by their share.
        #expect(breaker.condition == .closed)
        let other = Subject()
        for number in 1...5 { #expect(other.report(.trouble, at: self.at(0)) == (number == 5)) }
        #expect(other.condition == .open)
        #expect(other.permit(at: self.at(1)) == .refused(wait: .seconds(29)))
    }

    @Test("Half of twenty recent calls open it, half of nineteen do not")
    func share() {
        for (before, pairs, opens) in [(0, 10, true), (0, 9, false), (1, 9, false), (30, 100, false)] {
            let breaker = Subject()
            for _ in 0..<before { _ = breaker.report(.healthy, at: self.at(0)) }
            var isOpened = false
            // In pairs, so that no five failures come in a row.
            for _ in 1...pairs {
                isOpened = breaker.report(.healthy, at: self.at(0)) || isOpened
                isOpened = breaker.report(.trouble, at: self.at(0)) || isOpened
            }
            #expect(isOpened == opens, "\(before) before \(pairs) pairs")
        }
    }

    @Test("Failures of more than ten seconds ago are forgotten")
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

    @Test("After its rest one call goes through to see, and no second one meanwhile")
    func probe() {
        let (breaker, _, _) = self.opened()
        #expect(breaker.permit(at: self.at(29.9)) != .granted)
        #expect(breaker.permit(at: self.at(30)) == .granted)
        #expect(breaker.condition == .halfOpen)
        for _ in 1...100 { #expect(breaker.permit(at: self.at(31)) == .refused(wait: .seconds(1))) }
        // One whose end is never reported does not keep the others out for good.
        #expect(breaker.permit(at: self.at(45)) == .granted)
    }

    @Test("A call to see that is neither good nor bad, but turns out to be trouble, has it rest again, and for longer")
    func lateVerdict() {
        let (breaker, _, _) = self.opened()
        #expect(breaker.permit(at: self.at(30)) == .granted)
        #expect(!breaker.report(.silent, at: self.at(30.1)))
        #expect(breaker.report(.trouble, at: self.at(30.1)))
        #expect(breaker.permit(at: self.at(31)) == .refused(wait: .seconds(59.1)))
        // One that had begun before the rest changes nothing.
        #expect(!breaker.report(.trouble, at: self.at(40)))
        #expect(breaker.permit(at: self.at(91)) == .granted)
    }

    @Test("A connection that is lost with a hundred calls is one failure; five such moments in a row are five")
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
        // The one that is to see counts, however soon it is lost.
        #expect(breaker.permit(at: self.at(35)) == .granted)
        #expect(breaker.report(.lost, at: self.at(35)))
        #expect(breaker.permit(at: self.at(36)) == .refused(wait: .seconds(59)))
    }

    @Test("A relapse doubles the rest, up to five minutes", arguments: 1...7)
    func relapse(times: Int) {
        let (breaker, now, rest) = self.opened(times: times)
        #expect(rest == [30, 60, 120, 240, 300, 300, 300][times - 1])
        #expect(breaker.permit(at: self.at(now + rest - 0.5)) == .refused(wait: .milliseconds(500)))
        #expect(breaker.permit(at: self.at(now + rest)) == .granted)
    }

    @Test("A probe that says nothing makes room for another")
    func silentProbe() {
        let (breaker, _, _) = self.opened()
        #expect(breaker.permit(at: self.at(30)) == .granted)
        #expect(!breaker.report(.silent, at: self.at(31)))
        #expect(breaker.permit(at: self.at(31)) == .granted)
    }

    @Test("Once the server is well, calls follow little by little, and the next trouble rests the first time again")
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

    @Test("Trouble while calls come back opens it again, for longer")
    func rampRelapse() {
        let (breaker, _, _) = self.opened()
        _ = breaker.permit(at: self.at(30))
        _ = breaker.report(.healthy, at: self.at(30))
        for number in 1...5 { #expect(breaker.report(.trouble, at: self.at(32)) == (number == 5)) }
        #expect(breaker.permit(at: self.at(32)) == .refused(wait: .seconds(60)))
    }

    @Test("Calls that had begun before it opened change nothing when they end")
    func latecomers() {
        let (breaker, _, _) = self.opened()
        for _ in 1...50 {
            #expect(!breaker.report(.trouble, at: self.at(5)))
            _ = breaker.report(.healthy, at: self.at(5))
        }
        #expect(breaker.permit(at: self.at(29)) == .refused(wait: .seconds(1)))
        #expect(breaker.permit(at: self.at(30)) == .granted)
    }

    @Test(
        "Whatever happens, an open one lets no call through, and one that hears of health alone closes",
        arguments: 0..<50
    )
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
