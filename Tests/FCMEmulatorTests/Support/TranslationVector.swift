import Foundation
import Testing

/// One vector of `translate.json`: the v1 requests a legacy request becomes.
struct TranslationVector: Sendable, CustomTestStringConvertible {
    let id: String
    let calls: [String]

    var testDescription: String { self.id }

    static func all() throws -> [Self] {
        try VectorFile.read("translate").map(Self.init)
    }

    private init(_ members: [String: Any]) throws {
        try VectorFile.allow(["id", "why", "ref", "now", "request", "body", "expect"], in: members)
        guard let id = members["id"] as? String, let expect = members["expect"] as? [String: Any] else {
            throw VectorFile.Problem(message: "incomplete translation vector")
        }
        self.id = id
        self.calls = try (expect["calls"] as? [Any] ?? [])
            .map { String(decoding: try JSONSerialization.data(withJSONObject: $0), as: UTF8.self) }
    }
}
