import FCMModel

/// Properties of every text in the place of a topic condition.
enum ConditionProperties {
    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard let text = String(validating: input, as: UTF8.self) else { return }
        let condition: TopicCondition?
        do {
            condition = try TopicCondition(parsing: text)
        } catch {
            switch error {
            case .syntax(let offset), .topicName(let offset), .tooDeep(let offset):
                try FuzzFinding.require((0...input.count).contains(offset), "the offset lies outside: \(error)")
            }
            condition = nil
        }
        for isV1 in [false, true] {
            let fitting = condition.flatMap { $0.fits(isV1 ? .v1 : .legacy) ? $0 : nil }
            let ours = fitting.map {
                EmulatorOpinion.Condition(canonical: $0.canonical, topics: $0.topics.map(\.text))
            }
            let theirs = EmulatorOpinion.condition(text, isV1: isV1)
            try FuzzFinding.requireEqual(ours, theirs, "the emulator disagrees\(isV1 ? " by v1" : "")")
        }
        guard let condition else { return }
        guard let again = try? TopicCondition(parsing: condition.canonical) else {
            throw FuzzFinding("the canonical form is refused: \(condition.canonical)")
        }
        try FuzzFinding.requireEqual(again, condition, "the canonical form means something else")
        try FuzzFinding.requireEqual(condition.containsNegation, text.utf8.contains(UInt8(ascii: "!")), "negation")
    }
}
