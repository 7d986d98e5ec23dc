import FCMModel
import Yams

/// A YAML file checked against the table: the values of its keys, their lines, and all problems.
struct ConfigurationFile {
    /// The maximum size of the file. A configuration has a few hundred lines.
    static let maxBytes = 1 << 20

    let name: String
    /// The values that could be read, by path.
    private(set) var values: [String: ConfigurationKey.Assignment] = [:]
    private(set) var lines: [String: Int] = [:]
    private(set) var problems: [ConfigurationProblem] = []

    init(_ source: YAMLSource) {
        self.name = source.name
        self.problems = source.problem.map { [$0] } ?? []
        if let root = source.root { self.walkSection(root, path: nil) }
    }

    private mutating func walkSection(_ node: Node, path: String?) {
        if case .scalar(let scalar) = node, scalar.resolvedTagName == .null {
            // A section is empty if all its keys are commented out.
            return
        }
        guard case .mapping(let mapping) = node else {
            self.report(node.mark?.line, path, "expected keys and values")
            return
        }
        for (key, value) in mapping {
            guard case .scalar(let scalar) = key else {
                self.report(key.mark?.line, path, "keys must be plain text")
                continue
            }
            self.walkEntry(value, line: key.mark?.line, path: path.map { "\($0).\(scalar.string)" } ?? scalar.string)
        }
    }

    private mutating func walkEntry(_ value: Node, line: Int?, path: String) {
        if ConfigurationTable.sections.contains(path) {
            self.walkSection(value, path: path)
        } else if let known = ConfigurationTable.keysByPath[path] {
            self.lines[path] = line
            guard !known.isSecret else {
                let names = known.variables.joined(separator: " or ")
                self.report(line, path, "secrets do not belong in this file; set \(names)")
                return
            }
            do throws(ConfigurationFaults) {
                self.values[path] = try known.assignmentOfNode(value)
            } catch {
                for fault in error.faults { self.report(fault.line, path, fault.message) }
            }
        } else {
            let names = ConfigurationTable.sections.union(ConfigurationTable.keysByPath.keys)
            self.report(line, path, "is not known\(NearestName.hint(for: path, among: names))")
        }
    }

    private mutating func report(_ line: Int?, _ key: String?, _ message: String) {
        self.problems.append(ConfigurationProblem(.file(self.name, line: line), key: key, message: message))
    }
}
