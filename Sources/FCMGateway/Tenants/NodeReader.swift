import GatewayCore
import GatewayService
import Yams

/// Reads values from a YAML file's nodes and notes, with file, line and key, what is wrong with them.
struct NodeReader {
    /// Everything wrong so far.
    private(set) var problems: [ConfigurationProblem] = []

    private let file: String

    /// Creates a reader.
    ///
    /// - Parameter file: The file's name, for problems.
    init(file: String) {
        self.file = file
    }

    /// Everything wrong, in the order of the file's lines.
    var problemsByLine: [ConfigurationProblem] {
        func line(_ problem: ConfigurationProblem) -> Int {
            if case .file(_, let line?) = problem.place { line } else { 0 }
        }
        return self.problems.enumerated()
            .sorted { (line($0.element), $0.offset) < (line($1.element), $1.offset) }
            .map(\.element)
    }

    /// Notes a problem.
    mutating func report(_ node: Node?, _ key: String?, _ message: String) {
        self.report(line: node?.mark?.line, key, message)
    }

    /// Notes a problem at a line.
    mutating func report(line: Int?, _ key: String?, _ message: String) {
        self.problems.append(ConfigurationProblem(place: .file(self.file, line: line), key: key, message: message))
    }

    /// The members of a mapping by name, or nil when it is none; those that are not known are noted and left out.
    mutating func members(_ node: Node, _ path: String, known: [String]) -> [String: Node]? {
        guard case .mapping(let mapping) = node else {
            self.report(node, path, "expected keys and values, but found \(YAMLSource.kind(of: node))")
            return nil
        }
        var members: [String: Node] = [:]
        for (key, value) in mapping {
            guard case .scalar(let scalar) = key else {
                self.report(key, path, "keys must be plain text")
                continue
            }
            guard known.contains(scalar.string) else {
                let hint = NearestName.hint(for: scalar.string, among: known)
                self.report(key, Self.path(path, scalar.string), "is not known\(hint)")
                continue
            }
            members[scalar.string] = value
        }
        return members
    }

    /// The elements of a list, each with its path, or nil when it is none.
    mutating func elements(_ node: Node, _ path: String) -> [(node: Node, path: String)]? {
        guard case .sequence(let sequence) = node else {
            self.report(node, path, "expected a list, but found \(YAMLSource.kind(of: node))")
            return nil
        }
        return sequence.enumerated().map { (node: $1, path: "\(path)[\($0)]") }
    }

    /// A text that is not empty, or nil.
    mutating func text(_ node: Node, _ path: String) -> String? {
        guard case .scalar(let scalar) = node, scalar.resolvedTagName == .str else {
            self.report(node, path, "expected text\(YAMLSource.butFound(node))")
            return nil
        }
        guard !scalar.string.isEmpty else {
            self.report(node, path, "must not be empty; leave it out instead")
            return nil
        }
        return scalar.string
    }

    /// Texts, or nil when one of them is none.
    mutating func texts(_ node: Node, _ path: String) -> [String]? {
        guard let elements = self.elements(node, path) else { return nil }
        var texts: [String] = []
        for element in elements {
            guard let text = self.text(element.node, element.path) else { return nil }
            texts.append(text)
        }
        return texts
    }

    /// `true` or `false`, or nil.
    mutating func bool(_ node: Node, _ path: String) -> Bool? {
        guard case .scalar(let scalar) = node, scalar.resolvedTagName == .bool,
            ["true", "false"].contains(scalar.string)
        else {
            self.report(node, path, "must be true or false")
            return nil
        }
        return scalar.string == "true"
    }

    /// A whole number within a range, or nil.
    mutating func wholeNumber(_ node: Node, _ path: String, in range: ClosedRange<Int>) -> Int? {
        guard let number = node.wholeNumber, range.contains(number) else {
            self.report(node, path, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        return number
    }

    /// A moment, which YAML may take for one of its own timestamps, or nil.
    mutating func time(_ node: Node, _ path: String) -> Timestamp? {
        guard case .scalar(let scalar) = node, let time = Timestamp(rfc3339: scalar.string) else {
            self.report(node, path, "must be a time such as 2026-03-01T12:00:00Z")
            return nil
        }
        return time
    }

    /// One of some words, or nil.
    mutating func word(_ node: Node, _ path: String, among words: [String]) -> String? {
        guard let text = self.text(node, path) else { return nil }
        guard words.contains(text) else {
            let hint = NearestName.hint(for: text, among: words)
            self.report(node, path, "must be one of \(words.joined(separator: ", "))\(hint)")
            return nil
        }
        return text
    }

    /// The path of a member.
    static func path(_ path: String, _ member: String) -> String {
        path.isEmpty ? member : "\(path).\(member)"
    }
}
