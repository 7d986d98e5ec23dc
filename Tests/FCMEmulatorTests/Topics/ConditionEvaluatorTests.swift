import Testing
import VectorTestKit

@testable import FCMEmulator

@Suite("ConditionEvaluator")
struct ConditionEvaluatorTests {
    @Test("Conditions are parsed and evaluated as in the vectors", arguments: try ConditionVector.all())
    func vectors(vector: ConditionVector) throws {
        try Self.check(vector, vector.isLegacyValid) { text in try ConditionEvaluator(text) }
        try Self.check(vector, vector.isV1Valid) { text in try ConditionEvaluator(text, profile: .v1) }
    }

    private static func check(
        _ vector: ConditionVector,
        _ isValid: Bool,
        by read: (String) throws -> ConditionEvaluator
    ) throws {
        guard isValid else {
            #expect(throws: ConditionEvaluator.Refusal.self) { try read(vector.condition) }
            return
        }
        let condition = try read(vector.condition)
        let reading = try #require(vector.reading)
        #expect(condition.canonical == reading.canonical)
        #expect(condition.topics == reading.topics)
        for evaluation in reading.evaluations {
            #expect(condition.matches { evaluation.subscribed.contains($0) } == evaluation.matches)
        }
    }

    @Test("A refusal has a reason")
    func reasons() {
        #expect(throws: ConditionEvaluator.Refusal(reason: "the legacy protocol has no \"!\"")) {
            try ConditionEvaluator("!('a' in topics)")
        }
        #expect(throws: ConditionEvaluator.Refusal(reason: "more than 2 operators")) {
            try ConditionEvaluator("'a' in topics || 'b' in topics || 'c' in topics || 'd' in topics")
        }
    }
}

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
        "A condition selects devices by their topics, and a negation only devices with a topic",
        arguments: [
            ("'x' in topics && 'y' in topics", ["both"]),
            ("'x' in topics || 'y' in topics", ["both", "onlyX", "onlyY"]),
            ("'x' in topics && ('y' in topics || 'z' in topics)", ["both"]), ("'z' in topics", []),
            ("!('x' in topics)", ["onlyY"]), ("'x' in topics && !('y' in topics)", ["onlyX"]),
            ("!('z' in topics)", ["both", "onlyX", "onlyY"]),
        ]
    )
    func condition(text: String, expected: [String]) throws {
        var subscriptions = Subscriptions()
        subscriptions.subscribe(["both", "onlyX"], to: "x")
        subscriptions.subscribe(["both", "onlyY"], to: "y")
        #expect(subscriptions.tokens(matching: try ConditionEvaluator(text, profile: .v1)) == expected)
    }
}
