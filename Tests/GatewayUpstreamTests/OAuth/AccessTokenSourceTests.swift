import FCMModel
import GatewayCore
import GatewayTestKit
import ServiceLifecycleTestKit
import Testing

@testable import GatewayUpstream

@Suite("AccessTokenSource", .timeLimit(.minutes(10)))
struct AccessTokenSourceTests {
    /// An exchange that waits until the test gives its answer.
    private final class HeldExchange: TokenExchange {
        struct State: Sendable {
            var asked = 0
            var answers: [Result<IssuedToken, TokenFailure>] = []
        }

        let state = Observed(State())

        func issue(
            for credential: V1Credential,
            in trace: RequestTrace?
        ) async -> Result<IssuedToken, TokenFailure> {
            let number = self.state.change { state in
                state.asked += 1
                return state.asked
            }
            try? await self.state.wait { $0.answers.count >= number }
            return self.state.current.answers[number - 1]
        }
    }

    private func whileRunning(_ body: @Sendable (AccessTokens, HeldExchange) async throws -> Void) async throws {
        let exchange = HeldExchange()
        // The clock stands still, so a failure is remembered for the whole test.
        let now = Uptime.now
        let tokens = AccessTokens(exchange: exchange) { now }
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await tokens.run() }
                try await body(tokens, exchange)
                trigger.triggerGracefulShutdown()
                try await group.waitForAll()
            }
        }
    }

    @Test("Concurrent callers share one exchange and its result", arguments: [true, false])
    func sharing(succeeds: Bool) async throws {
        let answer: Result<IssuedToken, TokenFailure> =
            succeeds
            ? .success(IssuedToken(text: Secret("token"), lifetimeSeconds: 60))
            : .failure(TokenFailure(.refused, "refused"))
        try await self.whileRunning { tokens, exchange in
            let source = tokens.source(for: try .sample())
            let outcomes = await withTaskGroup(of: AccessTokenSource.Outcome.self) { group in
                for _ in 0..<50 { group.addTask { await source.token(until: .now + .seconds(600), in: nil) } }
                try? await exchange.state.wait { $0.asked == 1 }
                exchange.state.change { $0.answers = [answer] }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(outcomes.count == 50)
            let tokens = outcomes.compactMap { try? $0.get() }
            #expect(tokens.count == (succeeds ? 50 : 0))
            #expect(Set(tokens.map(ObjectIdentifier.init)).count == (succeeds ? 1 : 0))
            #expect(exchange.state.current.asked == 1)
        }
    }

    @Test("Cancelling a caller doesn't cancel the exchange, and a later caller gets its token")
    func cancellation() async throws {
        try await self.whileRunning { tokens, exchange in
            let source = tokens.source(for: try .sample())
            let outcome = await withTaskGroup(of: AccessTokenSource.Outcome.self) { group in
                group.addTask { await source.token(until: .now + .seconds(600), in: nil) }
                try? await exchange.state.wait { $0.asked == 1 }
                group.cancelAll()
                return await group.next()
            }
            #expect(throws: TokenFailure.timedOut) { try outcome?.get() }
            exchange.state.change { $0.answers = [.success(IssuedToken(text: Secret("token"), lifetimeSeconds: 60))] }
            let later = await source.token(until: .now + .seconds(600), in: nil)
            #expect(throws: Never.self) { try later.get() }
            #expect(exchange.state.current.asked == 1)
        }
    }

    @Test("After shutdown, a caller gets a shutdown failure instead of a token")
    func afterTheEnd() async throws {
        let held = Observed<[AccessTokens]>([])
        try await self.whileRunning { tokens, _ in held.change { $0 = [tokens] } }
        let source = try #require(held.current.first).source(for: .sample())
        let outcome = await source.token(until: .now + .seconds(600), in: nil)
        #expect(throws: TokenFailure.shutDown) { try outcome.get() }
    }

    @Test("A token's description and dump don't reveal it")
    func redaction() {
        let token = Authorization(accessToken: Secret("ya29.secret"))
        var dumped = "\(token)"
        dump(token, to: &dumped)
        #expect(!dumped.contains("secret"))
    }
}
