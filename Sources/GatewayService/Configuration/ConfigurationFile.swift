import Configuration
import Yams

/// A YAML file walked against the schema: its values, their lines, and everything that does not belong.
struct ConfigurationFile {
    /// The largest file read; a configuration is a few hundred lines.
    static let maxBytes = 1 << 20

    /// The path as the operator wrote it.
    let name: String

    /// The values that could be read.
    private(set) var values: [AbsoluteConfigKey: ConfigValue] = [:]

    /// The line of each key that was set, by path.
    private(set) var lines: [String: Int] = [:]

    /// Everything wrong with the file.
    private(set) var problems: [ConfigurationProblem] = []

    /// Reads a file.
    init(path: String) {
        self.init(YAMLSource(path: path, maxBytes: Self.maxBytes))
    }

    /// Reads text under a file's name.
    init(name: String, text: String) {
        self.init(YAMLSource(name: name, text: text))
    }

    private init(_ source: YAMLSource) {
        self.name = source.name
        self.problems = source.problem.map { [$0] } ?? []
        if let root = source.root { self.walkSection(root, path: "") }
    }

    private mutating func walkSection(_ node: Node, path: String) {
        if case .scalar(let scalar) = node, scalar.resolvedTagName == .null {
            // A section whose keys are all commented out.
            return
        }
        guard case .mapping(let mapping) = node else {
            self.report(node, path.isEmpty ? nil : path, "expected keys and values")
            return
        }
        for (key, value) in mapping {
            guard case .scalar(let scalar) = key else {
                self.report(key, path.isEmpty ? nil : path, "keys must be plain text")
                continue
            }
            self.walkEntry(value, key: key, path: path.isEmpty ? scalar.string : "\(path).\(scalar.string)")
        }
    }

    private mutating func walkEntry(_ value: Node, key: Node, path: String) {
        if ConfigurationSchema.sections.contains(path) {
            self.walkSection(value, path: path)
        } else if let known = ConfigurationSchema.keysByPath[path] {
            self.lines[path] = key.mark?.line
            self.read(value, key: key, known)
        } else {
            let names = ConfigurationSchema.sections.union(ConfigurationSchema.keysByPath.keys)
            let hint = NearestName.find(path, among: names).map { "; did you mean \($0)?" } ?? ""
            self.report(key, path, "is not known\(hint)")
        }
    }

    private mutating func read(_ value: Node, key: Node, _ known: ConfigurationKey) {
        let content: ConfigContent
        switch known.kind {
        case .secret:
            let names = known.variables.joined(separator: " or ")
            self.report(key, known.path, "secrets do not belong in this file; set \(names)")
            return
        case .text:
            guard let text = self.text(value, known.path) else { return }
            content = .string(text)
        case .wholeNumber:
            guard let number = WholeNumberNode.value(value) else {
                self.report(value, known.path, "expected a whole number\(YAMLSource.butFound(value))")
                return
            }
            content = .int(number)
        case .textList:
            guard case .sequence(let sequence) = value else {
                self.report(value, known.path, "expected a list of texts\(YAMLSource.butFound(value))")
                return
            }
            var texts: [String] = []
            for element in sequence {
                guard let text = self.text(element, known.path) else { return }
                texts.append(text)
            }
            content = .stringArray(texts)
        case .policies:
            let list = RatePolicyList(node: value)
            self.problems += list.problems.map {
                ConfigurationProblem(
                    place: .file(self.name, line: $0.line),
                    key: known.path,
                    message: $0.message
                )
            }
            guard list.problems.isEmpty else { return }
            content = .string(RatePolicyList.json(list.policies))
        }
        self.values[AbsoluteConfigKey(known.components)] = ConfigValue(content, isSecret: false)
    }

    private mutating func text(_ node: Node, _ path: String) -> String? {
        guard case .scalar(let scalar) = node, scalar.resolvedTagName == .str else {
            self.report(node, path, "expected text\(YAMLSource.butFound(node))")
            return nil
        }
        return scalar.string
    }

    private mutating func report(_ node: Node?, _ key: String?, _ message: String) {
        self.problems.append(
            ConfigurationProblem(place: .file(self.name, line: node?.mark?.line), key: key, message: message)
        )
    }
}
