import Testing

/// One vector of `conditions.json`: an expression, who allows it, and what it comes to.
struct ConditionVector: Sendable, CustomTestStringConvertible {
    /// What a valid expression is read as.
    struct Reading: Sendable {
        let canonical: String
        let operators: Int
        let topics: [String]
    }

    /// A device's topics and whether the expression selects it; a matter of the emulator's tests.
    struct Evaluation: Sendable {
        let subscribed: [String]
        let matches: Bool
    }

    let id: String
    let condition: String
    let isLegacyValid: Bool
    let isV1Valid: Bool
    let reading: Reading?
    let evaluations: [Evaluation]

    var testDescription: String { self.id }

    static func all() throws -> [ConditionVector] {
        try VectorFile.read("conditions").map { try ConditionVector($0) }
    }

    private init(_ value: VectorJSON) throws {
        var members = try value.members()
        self.id = try members.takeHeading()
        self.condition = try members.take("condition").text()
        self.isLegacyValid = try members.take("legacy_valid").flag()
        self.isV1Valid = try members.take("v1_valid").flag()
        if self.isLegacyValid || self.isV1Valid {
            self.reading = Reading(
                canonical: try members.take("canonical").text(),
                operators: try members.take("operators").integer(),
                topics: try members.take("topics").elements().map { try $0.text() }
            )
            self.evaluations = try members.takeIfPresent("evaluate")?.elements().map { try Self.evaluation($0) } ?? []
        } else {
            self.reading = nil
            self.evaluations = []
        }
        try members.finish()
    }

    private static func evaluation(_ value: VectorJSON) throws -> Evaluation {
        var members = try value.members()
        let evaluation = Evaluation(
            subscribed: try members.take("subscribed").elements().map { try $0.text() },
            matches: try members.take("matches").flag()
        )
        try members.finish()
        return evaluation
    }
}
