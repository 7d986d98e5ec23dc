import Configuration
import Foundation
import Yams

/// A YAML file walked against the schema: its values, their lines, and everything that does not belong.
struct ConfigurationFile {
    /// The largest file read; a configuration is a few hundred lines.
    static let maxBytes = 1 << 20

    /// The most uses of anchors: each can multiply what the uses before it stand for, and the reader of YAML compares
    /// keys by all they stand for.
    static let maxAliases = 16

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
        self.name = path
        guard let data = FileManager.default.contents(atPath: path) else {
            self.report(nil, nil, "cannot be read")
            return
        }
        guard data.count <= Self.maxBytes else {
            self.report(nil, nil, "is larger than \(Self.maxBytes) bytes")
            return
        }
        guard let text = String(bytes: data, encoding: .utf8) else {
            self.report(nil, nil, "is not UTF-8")
            return
        }
        self.parse(text)
    }

    /// Reads text under a file's name.
    init(name: String, text: String) {
        self.name = name
        self.parse(text)
    }

    private mutating func parse(_ text: String) {
        if let line = Self.lineOfExcessAlias(in: text) {
            let message = "holds more than \(Self.maxAliases) uses of anchors (such as *name)"
            self.problems.append(ConfigurationProblem(place: .file(self.name, line: line), message: message))
            return
        }
        do {
            guard let root = try Yams.compose(yaml: text) else { return }
            self.walkSection(root, path: "")
        } catch let error as YamlError {
            self.report(error, in: text)
        } catch {
            self.report(nil, nil, "cannot be parsed: \(error)")
        }
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
                self.report(value, known.path, "expected a whole number\(Self.butFound(value))")
                return
            }
            content = .int(number)
        case .textList:
            guard case .sequence(let sequence) = value else {
                self.report(value, known.path, "expected a list of texts\(Self.butFound(value))")
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
            self.report(node, path, "expected text\(Self.butFound(node))")
            return nil
        }
        return scalar.string
    }

    private static func butFound(_ node: Node) -> String {
        switch node {
        case .mapping: return ", but found keys and values"
        case .sequence: return ", but found a list"
        case .alias: return ""
        case .scalar(let scalar):
            switch scalar.resolvedTagName {
            case .null: return ", but there is no value"
            case .str: return ", but found the text \"\(scalar.string)\""
            case .bool: return ", but \(scalar.string) is true or false in YAML; put text in quotes"
            default: return ", but found \(scalar.string); put text in quotes, write numbers in plain decimal"
            }
        }
    }

    private mutating func report(_ node: Node?, _ key: String?, _ message: String) {
        self.problems.append(
            ConfigurationProblem(place: .file(self.name, line: node?.mark?.line), key: key, message: message)
        )
    }

    private mutating func report(_ error: YamlError, in text: String) {
        let line: Int?
        var key: String?
        let message: String
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            // What is missing at the end is noticed on a line behind the last one.
            line = min(mark.line, Self.lineCount(of: text))
            message = problem
        case .duplicatedKeysInMapping(let duplicates, let context):
            line = context.mark.line
            key = duplicates.first
            message = "appears more than once in one place; this is the first"
        case .reader(let problem, _, _, _):
            line = nil
            message = problem
        case .no, .memory, .writer, .emitter, .representer, .dataCouldNotBeDecoded:
            line = nil
            message = "cannot be parsed"
        }
        self.problems.append(ConfigurationProblem(place: .file(self.name, line: line), key: key, message: message))
    }

    /// The lines of a text, as YAML breaks them; an empty text has one.
    private static func lineCount(of text: String) -> Int {
        let breaks = text.count(where: \.isNewline)
        return max(1, text.last?.isNewline == true ? breaks : breaks + 1)
    }

    /// The line of the first use of an anchor that is one too many; nil where there is none.
    ///
    /// Whatever looks like one is counted, in comments and quotes too.
    private static func lineOfExcessAlias(in text: String) -> Int? {
        var aliases = 0
        var line = 1
        var previous = UInt8(ascii: " ")
        var isAfterAsterisk = false
        for byte in text.utf8 {
            if isAfterAsterisk, Self.isAnchorName(byte) {
                aliases += 1
                guard aliases <= Self.maxAliases else { return line }
            }
            isAfterAsterisk = byte == UInt8(ascii: "*") && !Self.isAnchorName(previous)
            line += byte == UInt8(ascii: "\n") ? 1 : 0
            previous = byte
        }
        return nil
    }

    /// Whether a byte may stand in the name of an anchor, as the reader of YAML has it.
    private static func isAnchorName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default:
            false
        }
    }
}
