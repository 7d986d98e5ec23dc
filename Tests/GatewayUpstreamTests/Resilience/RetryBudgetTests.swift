import GatewayTestKit
import Testing

@testable import GatewayUpstream

struct RetryBudgetTests {
    /// A budget that expectations can ask.
    private final class Subject {
        private var budget = UpstreamHealth.RetryBudget()

        func deposit() { self.budget.deposit() }

        func withdraw() -> Bool { self.budget.withdraw() }
    }

    @Test("Three repeats are there from the start")
    func start() {
        let budget = Subject()
        #expect((1...5).map { _ in budget.withdraw() } == [true, true, true, false, false])
    }

    @Test("Ten calls pay for one repeat")
    func tenth() {
        let budget = Subject()
        while budget.withdraw() {}
        for _ in 1...9 { budget.deposit() }
        #expect(!budget.withdraw())
        budget.deposit()
        #expect(budget.withdraw())
        #expect(!budget.withdraw())
    }

    @Test("A quiet time saves up a hundred repeats and no more")
    func savings() {
        let budget = Subject()
        for _ in 1...1_000_000 { budget.deposit() }
        #expect((1...1_000).count { _ in budget.withdraw() } == 100)
    }

    @Test("However calls and failures come, repeats stay within a tenth and three", arguments: 0..<50)
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
