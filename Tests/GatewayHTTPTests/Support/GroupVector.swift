import Foundation
import GatewayTestKit
import Testing

/// The lives of groups in `device-groups.json`, with their markers expanded.
enum GroupVector {
    static func scenarios() throws -> [JSON] {
        let json = try JSON(parsing: Data(contentsOf: .inRepository("Tests/Vectors/device-groups.json")))
        let vectors = try #require(json["vectors"]).elements
        #expect(vectors.count == json["count"]?.int)
        return vectors.filter { $0["kind"]?.text == "scenario" }.map(\.expanded)
    }
}

extension JSON {
    /// The value with every `$list` written out.
    fileprivate var expanded: JSON {
        switch self {
        case .null, .bool, .integer, .number, .string: return self
        case .array(let elements): return .array(elements.map(\.expanded))
        case .object(let members):
            guard let template = members["$list"]?.text, let count = members["count"]?.int else {
                return .object(members.mapValues(\.expanded))
            }
            return .array((0..<count).map { .string(template.replacing("{i}", with: String($0))) })
        }
    }

    /// True if an answer is what a vector expects; `$any` is a matcher.
    func matches(_ actual: JSON) -> Bool {
        if self["$any"]?.text == "nonempty_string" { return actual.text?.isEmpty == false }
        guard case .object(let expected) = self, case .object(let members) = actual else { return self == actual }
        return expected.keys == members.keys
            && expected.allSatisfy { key, value in
                members[key].map { value.matches($0) } ?? false
            }
    }

    /// The value with every `{"$ref": name}` replaced.
    func resolving(_ references: [String: String]) -> JSON {
        if let name = self["$ref"]?.text { return .string(references[name] ?? "unknown reference") }
        guard case .object(let members) = self else { return self }
        return .object(members.mapValues { $0.resolving(references) })
    }
}
