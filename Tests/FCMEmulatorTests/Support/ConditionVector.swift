import Foundation
import Testing

/// One vector of `conditions.json`.
struct ConditionVector: Sendable, CustomTestStringConvertible {
    struct Evaluation: Sendable {
        let subscribed: Set<String>
        let matches: Bool
    }

    let id: String
    let condition: String
    let isLegacyValid: Bool
    let isV1Valid: Bool
    let canonical: String?
    let topics: [String]?
    let evaluations: [Evaluation]

    var testDescription: String { self.id }

    static func all() throws -> [Self] {
        try VectorFile.read("conditions").map(Self.init)
    }

    private init(_ members: [String: Any]) throws {
        try VectorFile.allow(
            [
                "id", "why", "ref", "condition", "legacy_valid", "v1_valid", "canonical", "operators", "topics",
                "evaluate",
            ],
            in: members
        )
        guard let id = members["id"] as? String, let condition = members["condition"] as? String,
            let isLegacyValid = members["legacy_valid"] as? Bool, let isV1Valid = members["v1_valid"] as? Bool
        else {
            throw VectorFile.Problem(message: "incomplete condition vector")
        }
        self.id = id
        self.condition = condition
        self.isLegacyValid = isLegacyValid
        self.isV1Valid = isV1Valid
        self.canonical = members["canonical"] as? String
        self.topics = members["topics"] as? [String]
        self.evaluations = try (members["evaluate"] as? [[String: Any]] ?? [])
            .map { evaluation in
                guard let subscribed = evaluation["subscribed"] as? [String],
                    let matches = evaluation["matches"] as? Bool
                else {
                    throw VectorFile.Problem(message: "\(id): incomplete evaluation")
                }
                return Evaluation(subscribed: Set(subscribed), matches: matches)
            }
    }
}
