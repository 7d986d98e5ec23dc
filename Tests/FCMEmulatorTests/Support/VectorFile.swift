import Foundation

/// The conformance vectors in `Tests/Vectors`, with their markers expanded.
enum VectorFile {
    struct Problem: Error {
        let message: String
    }

    /// The vectors of one file.
    static func read(_ name: String) throws -> [[String: Any]] {
        let file = try self.directory().appending(path: name + ".json")
        let document = try JSONSerialization.jsonObject(with: try Data(contentsOf: file))
        guard let members = document as? [String: Any], let vectors = members["vectors"] as? [Any] else {
            throw Problem(message: "\(name) has no vectors")
        }
        let expanded = try vectors.map { try self.expand($0) }.compactMap { $0 as? [String: Any] }
        guard expanded.count == members["count"] as? Int else { throw Problem(message: "\(name): the count is wrong") }
        return expanded
    }

    /// Refuses members a test does not understand.
    static func allow(_ names: Set<String>, in members: [String: Any]) throws {
        let unknown = Set(members.keys).subtracting(names)
        guard unknown.isEmpty else { throw Problem(message: "unknown members \(unknown.sorted())") }
    }

    /// The first directory above this file that is the project's root.
    private static func directory() throws -> URL {
        var root = URL(filePath: #filePath)
        while root.path != "/" {
            root.deleteLastPathComponent()
            let vectors = root.appending(path: "Tests/Vectors")
            let manifest = root.appending(path: "Package.swift")
            let files = FileManager.default
            if files.fileExists(atPath: manifest.path), files.fileExists(atPath: vectors.path) { return vectors }
        }
        throw Problem(message: "there is no Tests/Vectors above \(#filePath)")
    }

    private static func expand(_ value: Any) throws -> Any {
        if let list = value as? [Any] { return try list.map { try self.expand($0) } }
        guard let members = value as? [String: Any] else { return value }
        switch Set(members.keys) {
        case ["$repeat", "times"]:
            guard let text = members["$repeat"] as? String, let times = members["times"] as? Int else { break }
            return String(repeating: text, count: times)
        case ["$concat"]:
            guard let parts = try self.expand(members["$concat"] ?? []) as? [String] else { break }
            return parts.joined()
        case ["$list", "count"]:
            guard let count = members["count"] as? Int, let template = members["$list"] else { break }
            return try (0..<count).map { try self.expand(self.substitute(template, index: $0)) }
        default:
            return try members.mapValues { try self.expand($0) }
        }
        throw Problem(message: "bad marker \(members.keys)")
    }

    private static func substitute(_ value: Any, index: Int) -> Any {
        switch value {
        case let text as String: text.replacing("{i}", with: String(index))
        case let list as [Any]: list.map { self.substitute($0, index: index) }
        case let members as [String: Any]: members.mapValues { self.substitute($0, index: index) }
        default: value
        }
    }
}
