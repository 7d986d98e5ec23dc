import Foundation
import Testing

/// The vectors of `device-groups.json`, with their markers expanded.
enum GroupVector {
    static func all(kind: String) throws -> [JSON] {
        try JSON.vectors("device-groups").filter { $0["kind"]?.text == kind }.map(\.expanded)
    }
}

extension JSON {
    /// The value with `$list` carried out.
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

    /// The value as JSON text.
    var encoded: String {
        switch self {
        case .null: return "null"
        case .bool(let flag): return flag ? "true" : "false"
        case .integer(let integer): return String(integer)
        case .number(let number): return String(number)
        case .string(let text):
            let data = try? JSONEncoder().encode([text])
            return String(decoding: (data ?? Data()).dropFirst().dropLast(), as: UTF8.self)
        case .array(let elements): return "[\(elements.map(\.encoded).joined(separator: ","))]"
        case .object(let members):
            let pairs = members.keys.sorted().map { JSON.string($0).encoded + ":" + (members[$0]?.encoded ?? "null") }
            return "{\(pairs.joined(separator: ","))}"
        }
    }

    /// Whether an answer is what a vector expects; `$any` is a matcher.
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
