import Foundation
import Testing

/// A JSON value as tests write and compare it, read by Foundation and thus without the gateway's own parser.
enum JSON: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    /// Reads a text.
    init(parsing text: String) throws {
        self = try JSONDecoder().decode(JSON.self, from: Data(text.utf8))
    }

    subscript(key: String) -> JSON? {
        get { if case .object(let members) = self { members[key] } else { nil } }
        set {
            guard case .object(var members) = self else { return }
            members[key] = newValue
            self = .object(members)
        }
    }

    subscript(index: Int) -> JSON? {
        if case .array(let elements) = self, elements.indices.contains(index) { elements[index] } else { nil }
    }

    var text: String? { if case .string(let text) = self { text } else { nil } }

    var int: Int? { if case .integer(let integer) = self { integer } else { nil } }

    var elements: [JSON] { if case .array(let elements) = self { elements } else { [] } }

    var keys: Set<String> { if case .object(let members) = self { Set(members.keys) } else { [] } }

    /// The value without some members.
    func without(_ keys: String...) -> JSON {
        guard case .object(let members) = self else { return self }
        return .object(members.filter { !keys.contains($0.key) })
    }
}

extension JSON: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let bool = try? container.decode(Bool.self) {
            self = .bool(bool)
        } else if let integer = try? container.decode(Int.self) {
            self = .integer(integer)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else if let string = try? container.decode(String.self) {
            self = .string(string)
        } else if let elements = try? container.decode([JSON].self) {
            self = .array(elements)
        } else {
            self = .object(try container.decode([String: JSON].self))
        }
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int) { self = .integer(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(arrayLiteral elements: JSON...) { self = .array(elements) }

    init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }
}

extension URL {
    /// A file of the repository, by its path from the root.
    static func inRepository(_ path: String) -> URL {
        var root = URL(filePath: #filePath)
        var file = root
        repeat {
            root.deleteLastPathComponent()
            file = root.appending(path: path)
        } while root.path != "/" && !FileManager.default.fileExists(atPath: file.path)
        return file
    }
}

extension JSON {
    /// The vectors of a file of `Tests/Vectors`.
    static func vectors(_ name: String) throws -> [JSON] {
        let data = try Data(contentsOf: .inRepository("Tests/Vectors/\(name).json"))
        let json = try JSON(parsing: String(decoding: data, as: UTF8.self))
        let vectors = try #require(json["vectors"]).elements
        #expect(vectors.count == json["count"]?.int)
        return vectors
    }
}
