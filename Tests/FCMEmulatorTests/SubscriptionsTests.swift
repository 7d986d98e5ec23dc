import Testing

@testable import FCMEmulator

@Suite("Subscriptions")
struct SubscriptionsTests {
    @Test("A topic has the devices subscribed to it, each once")
    func topic() {
        var subscriptions = Subscriptions()
        #expect(subscriptions.subscribe(["b", "a"], to: "news") == 2)
        #expect(subscriptions.subscribe(["a"], to: "news") == 2)
        #expect(subscriptions.tokens(of: "news") == ["a", "b"])
        #expect(subscriptions.tokens(of: "other").isEmpty)
    }

    @Test(
        "A condition selects devices by all their topics",
        arguments: [
            ("'x' in topics && 'y' in topics", ["both"]),
            ("'x' in topics || 'y' in topics", ["both", "onlyX", "onlyY"]),
            ("'x' in topics && ('y' in topics || 'z' in topics)", ["both"]),
            ("'z' in topics", []),
        ]
    )
    func condition(text: String, expected: [String]) throws {
        var subscriptions = Subscriptions()
        subscriptions.subscribe(["both", "onlyX"], to: "x")
        subscriptions.subscribe(["both", "onlyY"], to: "y")
        #expect(subscriptions.tokens(matching: try ConditionEvaluator(text)) == expected)
    }

    @Test(
        "A negation selects among all devices that follow any topic",
        arguments: [
            ("!('x' in topics)", ["onlyY"]), ("'x' in topics && !('y' in topics)", ["onlyX"]),
            ("!('z' in topics)", ["both", "onlyX", "onlyY"]),
        ]
    )
    func negation(text: String, expected: [String]) throws {
        var subscriptions = Subscriptions()
        subscriptions.subscribe(["both", "onlyX"], to: "x")
        subscriptions.subscribe(["both", "onlyY"], to: "y")
        #expect(subscriptions.tokens(matching: try ConditionEvaluator(text, profile: .v1)) == expected)
    }
}
