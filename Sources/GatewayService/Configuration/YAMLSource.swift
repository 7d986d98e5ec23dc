import Foundation
package import Yams

/// A YAML file as nodes with their lines, or the problem with the file.
package struct YAMLSource {
    /// The maximum number of uses of anchors. Each use can multiply the content of earlier uses, and the YAML reader
    /// compares keys by their whole content.
    static let maxAliases = 16

    /// The path as the operator wrote it.
    package let name: String
    /// The root node. `nil` for an empty file, or for a file with a problem.
    package private(set) var root: Node?
    /// The reason that the file can't be read. `nil` if the file can be read.
    package private(set) var problem: ConfigurationProblem?

    package init(path: String, maxBytes: Int) {
        do {
            let data = try Data(contentsOfFile: path)
            if data.count > maxBytes {
                self.init(path, "is larger than \(maxBytes) bytes")
            } else if let text = String(bytes: data, encoding: .utf8) {
                self.init(name: path, text: text)
            } else {
                self.init(path, "is not UTF-8")
            }
        } catch {
            self.init(path, error.reason)
        }
    }

    /// Reads text under a file's name.
    package init(name: String, text: String) {
        self.name = name
        if let line = Self.lineOfExcessAlias(in: text) {
            let message = "holds more than \(Self.maxAliases) uses of anchors (such as *name)"
            self.problem = ConfigurationProblem(.file(name, line: line), message: message)
            return
        }
        do {
            self.root = try Yams.compose(yaml: text)
        } catch let error as YamlError {
            self.problem = Self.problem(error, in: text, name)
        } catch {
            let message = "cannot be parsed: \(error)"
            self.problem = ConfigurationProblem(.file(name, line: nil), message: message)
        }
    }

    private init(_ name: String, _ message: String) {
        self.name = name
        self.problem = ConfigurationProblem(.file(name, line: nil), message: message)
    }

    /// Returns the kind of a node. Does not quote the node, because it may be a misplaced secret.
    package static func kind(of node: Node) -> String {
        switch node {
        case .mapping: "keys and values"
        case .sequence: "a list"
        case .alias: "the use of an anchor"
        case .scalar(let scalar): scalar.resolvedTagName == .null ? "no value" : "one value"
        }
    }

    /// Returns what was found instead of the expected node, for the end of a message.
    package static func butFound(_ node: Node) -> String {
        switch node {
        case .mapping: return ", but found keys and values"
        case .sequence: return ", but found a list"
        case .alias: return ""
        case .scalar(let scalar):
            switch scalar.resolvedTagName {
            case .null: return ", but there is no value"
            case .str: return ", but found the text \"\(scalar.string)\""
            case .bool: return ", but YAML reads \(scalar.string) as true or false; put text in quotes"
            default: return ", but found \(scalar.string); put text in quotes, write numbers in plain decimal"
            }
        }
    }

    private static func problem(_ error: YamlError, in text: String, _ name: String) -> ConfigurationProblem {
        let line: Int?
        var key: String?
        let message: String
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            // The reader notices a missing end only after the last line.
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
        return ConfigurationProblem(.file(name, line: line), key: key, message: message)
    }

    /// Returns the number of lines of a text, as YAML breaks them. An empty text has one line.
    private static func lineCount(of text: String) -> Int {
        let breaks = text.count(where: \.isNewline)
        return max(1, text.last?.isNewline == true ? breaks : breaks + 1)
    }

    /// Returns the line of the first use of an anchor beyond ``maxAliases``. Returns `nil` if there is no such use.
    ///
    /// Text in comments and quotes that only looks like a use counts too.
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

    /// True if the YAML reader allows a byte in the name of an anchor.
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

extension Node {
    /// The value of a plain decimal whole number.
    ///
    /// YAML also calls `0x1F`, `1_000` and `1:30` integers. These forms are refused, because a variable can't have
    /// them. An operator could also take `1:30` for a time.
    package var wholeNumber: Int? {
        guard case .scalar(let scalar) = self, scalar.resolvedTagName == .int else { return nil }
        return Int(scalar.string)
    }
}

extension Node.Scalar {
    /// The scalar's tag in YAML: the tag as written, or the tag that the unquoted text implies.
    package var resolvedTagName: Tag.Name {
        Tag.Name(rawValue: Node.scalar(self).tag.rawValue)
    }
}
