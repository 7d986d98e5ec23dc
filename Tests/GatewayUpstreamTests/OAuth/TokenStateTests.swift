import GatewayCore
import Testing

@testable import GatewayUpstream

struct TokenStateTests {
    private final class Token: Sendable {}

    /// A reference to the state, so that an expectation can call mutating methods.
    private final class State {
        private var state = TokenState<Token, Uptime>()

        var isExchanging: Bool { self.state.isExchanging }

        func current(at now: Uptime) -> (token: Token, renews: Bool)? {
            self.state.current(at: now)
        }

        /// Returns the next step of a caller without a token, as text.
        @discardableResult
        func next(at now: Uptime) -> String {
            switch self.state.next(at: now) {
            case .use(let token): "use \(ObjectIdentifier(token))"
            case .exchange: "exchange"
            case .wait: "wait"
            case .refuse(let failure): "refuse: \(failure.code)"
            }
        }

        func succeeded(_ token: Token, lifetime: Duration, since start: Uptime, chance: Double) {
            self.state.succeeded(token, lifetime: lifetime, since: start, chance: chance)
        }

        func failed(_ failure: TokenFailure, at now: Uptime, chance: Double) {
            self.state.failed(failure, at: now, chance: chance)
        }

        func refused(_ token: Token, at now: Uptime) -> Bool {
            self.state.refused(token, at: now)
        }
    }

    private static let start = Uptime.now

    private func at(_ seconds: Double) -> Uptime {
        Self.start.advanced(by: .seconds(seconds))
    }

    /// A state with a token that lives from 0 to 1,000 s, to be renewed at 800 s.
    private func state(with token: Token, chance: Double = 0) -> State {
        let state = State()
        state.next(at: self.at(0))
        state.succeeded(token, lifetime: .seconds(1_000), since: self.at(0), chance: chance)
        return state
    }

    @Test("One caller exchanges, the others wait for it")
    func singleFlight() {
        let state = State()
        #expect(state.current(at: self.at(0)) == nil)
        #expect(state.next(at: self.at(0)) == "exchange", "no exchange began")
        #expect(state.next(at: self.at(1)) == "wait", "a second exchange began")
        let token = Token()
        state.succeeded(token, lifetime: .seconds(1_000), since: self.at(0), chance: 0)
        #expect(state.current(at: self.at(2))?.token === token)
        #expect(state.next(at: self.at(2)) == "use \(ObjectIdentifier(token))")
    }

    @Test("A token is renewed once before its end, and used until its end", arguments: [(0.0, 800.0), (0.5, 750.0)])
    func renewal(chance: Double, renewal: Double) {
        let token = Token()
        let state = self.state(with: token, chance: chance)
        #expect(state.current(at: self.at(renewal - 1))?.renews == false)
        #expect(state.current(at: self.at(renewal))?.renews == true)
        #expect(state.current(at: self.at(renewal))?.renews == false)
        #expect(state.current(at: self.at(999))?.token === token)
        #expect(state.current(at: self.at(1_000)) == nil)
        #expect(state.next(at: self.at(1_000)) == "wait", "the renewal is forgotten")
    }

    @Test("A failed renewal leaves the token in use and is tried again after a pause")
    func failedRenewal() {
        let token = Token()
        let state = self.state(with: token)
        #expect(state.current(at: self.at(800))?.renews == true)
        state.failed(TokenFailure(.unreachable, "down"), at: self.at(801), chance: 0)
        #expect(state.current(at: self.at(801.9))?.renews == false)
        #expect(state.current(at: self.at(802))?.token === token)
        #expect(state.isExchanging)
    }

    @Test("Pauses double up to one minute, jitter halves them at most, and a success resets them")
    func pauses() {
        let state = State()
        var now = 0.0
        let failure = TokenFailure(.unreachable, "down")
        for (count, pause) in [1.0, 2, 4, 8, 16, 32, 60, 60, 60].enumerated() {
            #expect(state.next(at: self.at(now)) == "exchange", "no exchange \(count)")
            state.failed(failure, at: self.at(now), chance: count % 2 == 0 ? 0 : 1)
            let end = count % 2 == 0 ? pause : pause / 2
            #expect(state.next(at: self.at(now + end - 0.1)) == "refuse: down", "failure \(count) is forgotten")
            now += end
        }
        state.next(at: self.at(now))
        state.succeeded(Token(), lifetime: .seconds(10), since: self.at(now), chance: 0)
        state.next(at: self.at(now + 10))
        state.failed(failure, at: self.at(now + 10), chance: 0)
        #expect(state.next(at: self.at(now + 11)) == "exchange", "a success does not reset the pause")
    }

    @Test("The endpoint's Retry-After sets the pause, up to one minute", arguments: [(5, 5.0), (3_600, 60.0)])
    func demandedPause(seconds: Int, pause: Double) {
        let state = State()
        state.next(at: self.at(0))
        state.failed(TokenFailure(.unreachable, "busy", retryAfter: seconds), at: self.at(0), chance: 0)
        #expect(state.next(at: self.at(pause - 0.1)) == "refuse: busy", "asked too soon")
        #expect(state.next(at: self.at(pause)) == "exchange", "never asked again")
    }

    @Test("Refusing a token discards only that token")
    func refusal() {
        let (first, second) = (Token(), Token())
        let state = self.state(with: first)
        #expect(state.refused(first, at: self.at(1)))
        #expect(state.current(at: self.at(1)) == nil)
        #expect(state.next(at: self.at(1)) == "exchange", "no exchange began")
        // Other calls in flight used the same token.
        #expect(state.refused(first, at: self.at(1)))
        state.succeeded(second, lifetime: .seconds(1_000), since: self.at(1), chance: 0)
        #expect(state.refused(first, at: self.at(2)))
        #expect(state.current(at: self.at(2))?.token === second)
    }

    @Test("A new token refused in its first 5 seconds is kept; a later refusal discards it")
    func refusedReplacement() {
        let (first, second) = (Token(), Token())
        let state = self.state(with: first)
        _ = state.refused(first, at: self.at(1))
        state.next(at: self.at(1))
        state.succeeded(second, lifetime: .seconds(1_000), since: self.at(1), chance: 0)
        #expect(!state.refused(second, at: self.at(5)))
        #expect(state.current(at: self.at(5))?.token === second)
        #expect(state.refused(second, at: self.at(6)))
        #expect(state.current(at: self.at(6)) == nil)
    }
}
