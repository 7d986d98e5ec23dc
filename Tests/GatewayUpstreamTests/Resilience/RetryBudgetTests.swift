import GatewayTestKit
import Testing

@testable import GatewayUpstream

struct RetryBudgetTests {
    /// A reference to a budget, so that an expectation can call mutating methods.
    private final class Subject {
        private var budget = UpstreamHealth.RetryBudget()

        func deposit() { self.budget.deposit() }

        func withdraw() -> Bool { self.budget.withdraw() }
    }

    @Test("The budget starts with three retries")
    func start() {
        let budget = Subject()
        #expect((1...5).map { _ in budget.withdraw() } == [true, true, true, false, false])
    }

    @Test("Ten calls earn one retry")
    func tenth() {
        let budget = Subject()
        while budget.withdraw() {}
        for _ in 1...9 { budget.deposit() }
        #expect(!budget.withdraw())
        budget.deposit()
        #expect(budget.withdraw())
        #expect(!budget.withdraw())
    }

    @Test("The budget holds at most 100 retries")
    func savings() {
        let budget = Subject()
        for _ in 1...1_000_000 { budget.deposit() }
        #expect((1...1_000).count { _ in budget.withdraw() } == 100)
    }

    @Test("In random sequences, retries stay within a tenth of the calls plus three", arguments: 0..<50)
    func bound(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let budget = Subject()
        var (calls, repeats) = (0, 0)
        for _ in 1...5_000 {
            if Bool.random(using: &generator) {
                budget.deposit()
                calls += 1
            } else if budget.withdraw() {
                repeats += 1
            }
            #expect(repeats * 10 <= calls + 30)
        }
        #expect(repeats > 100)
    }
}
