import Testing

@testable import FCMEmulator

@Suite("ConditionEvaluator")
struct ConditionEvaluatorTests {
    @Test("The legacy grammar is that of the vectors", arguments: try ConditionVector.all())
    func grammar(vector: ConditionVector) throws {
        guard vector.isLegacyValid else {
            #expect(throws: ConditionEvaluator.Refusal.self) { try ConditionEvaluator(vector.condition) }
            return
        }
        let condition = try ConditionEvaluator(vector.condition)
        #expect(condition.canonical == vector.canonical)
        #expect(condition.topics == vector.topics)
    }

    @Test("Conditions mean what the vectors say", arguments: try ConditionVector.all().filter(\.isLegacyValid))
    func meaning(vector: ConditionVector) throws {
        let condition = try ConditionEvaluator(vector.condition)
        for evaluation in vector.evaluations {
            #expect(condition.matches { evaluation.subscribed.contains($0) } == evaluation.matches)
        }
    }

    @Test("The grammar of v1 is that of the vectors", arguments: try ConditionVector.all())
    func grammarV1(vector: ConditionVector) throws {
        guard vector.isV1Valid else {
            #expect(throws: ConditionEvaluator.Refusal.self) {
                try ConditionEvaluator(vector.condition, profile: .v1)
            }
            return
        }
        let condition = try ConditionEvaluator(vector.condition, profile: .v1)
        #expect(condition.canonical == vector.canonical)
        #expect(condition.topics == vector.topics)
        for evaluation in vector.evaluations {
            #expect(condition.matches { evaluation.subscribed.contains($0) } == evaluation.matches)
        }
    }

    @Test("Without parentheses operators go from left to right")
    func leftToRight() throws {
        let plain = try ConditionEvaluator("'a' in topics || 'b' in topics && 'c' in topics")
        let grouped = try ConditionEvaluator("'a' in topics || ('b' in topics && 'c' in topics)")
        #expect(!plain.matches { $0 == "a" })
        #expect(grouped.matches { $0 == "a" })
    }

    @Test("A refusal says why")
    func reasons() {
        #expect(throws: ConditionEvaluator.Refusal(reason: "the legacy protocol knows no \"!\"")) {
            try ConditionEvaluator("!('a' in topics)")
        }
        #expect(throws: ConditionEvaluator.Refusal(reason: "more than 2 operators")) {
            try ConditionEvaluator("'a' in topics || 'b' in topics || 'c' in topics || 'd' in topics")
        }
    }
}
