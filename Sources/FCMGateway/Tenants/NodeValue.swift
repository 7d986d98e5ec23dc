import FCMModel
import GatewayCore
import GatewayService
import Yams

/// A value of a YAML file.
///
/// A value read as the wrong type is `nil`, and the problem is reported with file, line and key.
struct NodeValue {
    /// The problems of a YAML file's values so far.
    final class Problems {
        private let file: String
        private var problems: [(line: Int?, problem: ConfigurationProblem)] = []

        init(file: String) {
            self.file = file
        }

        var isEmpty: Bool { self.problems.isEmpty }

        /// The problems in the order of the file's lines.
        var byLine: [ConfigurationProblem] {
            self.problems.enumerated()
                .sorted { ($0.element.line ?? 0, $0.offset) < ($1.element.line ?? 0, $1.offset) }
                .map { $0.element.problem }
        }

        func report(line: Int?, _ key: String?, _ message: String) {
            self.problems.append((line, ConfigurationProblem(.file(self.file, line: line), key: key, message: message)))
        }
    }

    private let node: Node
    private let path: String
    private let problems: Problems

    init(root: Node, problems: Problems) {
        self.init(root, "", problems)
    }

    private init(_ node: Node, _ path: String, _ problems: Problems) {
        self.node = node
        self.path = path
        self.problems = problems
    }

    var line: Int? { self.node.mark?.line }

    func report(_ message: String, member: String? = nil) {
        let path = member.map { self.path.isEmpty ? $0 : "\(self.path).\($0)" } ?? self.path
        self.problems.report(line: self.line, path, message)
    }

    /// The members of a mapping by name; unknown members are reported and left out.
    func members(known: [String]) -> [String: NodeValue]? {
        guard case .mapping(let mapping) = self.node else {
            self.report("expected keys and values, but found \(YAMLSource.kind(of: self.node))")
            return nil
        }
        var members: [String: NodeValue] = [:]
        for (key, value) in mapping {
            guard case .scalar(let scalar) = key else {
                self.problems.report(line: key.mark?.line, self.path, "keys must be plain text")
                continue
            }
            let path = self.path.isEmpty ? scalar.string : "\(self.path).\(scalar.string)"
            guard known.contains(scalar.string) else {
                let hint = NearestName.hint(for: scalar.string, among: known)
                self.problems.report(line: key.mark?.line, path, "is not known\(hint)")
                continue
            }
            members[scalar.string] = NodeValue(value, path, self.problems)
        }
        return members
    }

    func elements() -> [NodeValue]? {
        guard case .sequence(let sequence) = self.node else {
            self.report("expected a list, but found \(YAMLSource.kind(of: self.node))")
            return nil
        }
        return sequence.enumerated().map { NodeValue($1, "\(self.path)[\($0)]", self.problems) }
    }

    func text() -> String? {
        guard case .scalar(let scalar) = self.node, scalar.resolvedTagName == .str else {
            self.report("expected text\(YAMLSource.butFound(self.node))")
            return nil
        }
        guard !scalar.string.isEmpty else {
            self.report("must not be empty; leave it out instead")
            return nil
        }
        return scalar.string
    }

    func bool() -> Bool? {
        guard case .scalar(let scalar) = self.node, scalar.resolvedTagName == .bool,
            ["true", "false"].contains(scalar.string)
        else {
            self.report("must be true or false")
            return nil
        }
        return scalar.string == "true"
    }

    /// A time, which YAML may parse as its own timestamp type.
    func time() -> Timestamp? {
        guard case .scalar(let scalar) = self.node, let time = Timestamp(argument: scalar.string) else {
            self.report("must be a time such as 2026-03-01T12:00:00Z")
            return nil
        }
        return time
    }

    func word<Word: RawRepresentable<String> & CaseIterable>(as type: Word.Type = Word.self) -> Word? {
        guard let text = self.text() else { return nil }
        guard let word = Word(rawValue: text) else {
            let words = Word.allCases.map { $0.rawValue }
            let hint = NearestName.hint(for: text, among: words)
            self.report("must be one of \(words.joined(separator: ", "))\(hint)")
            return nil
        }
        return word
    }
}
