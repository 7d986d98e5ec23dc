import NIOCore
import StrictJSON

extension JSONLimits {
    /// Limits for a gateway's answers and this program's own text: only the depth is bounded.
    static let trusted = JSONLimits(maxDepth: 64, maxMembers: .max, maxElements: .max, maxSpecialCharacters: .max)
}

extension JSONWriter {
    static func object(_ members: (inout JSONWriter) -> Void) -> ByteBuffer {
        var writer = JSONWriter()
        writer.object(members)
        return writer.finish()
    }

    mutating func object(_ members: (inout JSONWriter) -> Void) {
        self.beginObject()
        members(&self)
        self.endObject()
    }

    mutating func array<Element>(_ elements: some Sequence<Element>, _ write: (inout JSONWriter, Element) -> Void) {
        self.beginArray()
        for element in elements { write(&self, element) }
        self.endArray()
    }

    mutating func object(_ key: StaticString, _ members: (inout JSONWriter) -> Void) {
        self.key(key)
        self.object(members)
    }

    mutating func array<Element>(
        _ key: StaticString,
        _ elements: some Sequence<Element>,
        _ write: (inout JSONWriter, Element) -> Void
    ) {
        self.key(key)
        self.array(elements, write)
    }

    /// Writes a member, unless it has no value.
    mutating func member(_ key: StaticString, ifPresent value: String?) {
        if let value { self.member(key, value) }
    }
}

extension JSONValue {
    func text(_ key: String) -> String? { self[key]?.string }

    func integer(_ key: String) -> Int? { self[key]?.number?.integer }

    func list(_ key: String) -> [JSONValue] {
        guard let elements = self[key]?.elements else { return [] }
        return Array(elements)
    }

    /// Indented text with members by name, for `--output json`.
    func prettyText(indentation: String = "") -> String {
        let inner = indentation + "  "
        func block(_ lines: [String]) -> String {
            "\n" + lines.map { inner + $0 }.joined(separator: ",\n") + "\n" + indentation
        }
        if let members = self.members {
            let lines = members.map { (name: $0.key, value: $0.value) }
                .sorted { $0.name < $1.name }
                .map { Self.quoted($0.name) + " : " + $0.value.prettyText(indentation: inner) }
            return "{" + block(lines) + "}"
        }
        if let elements = self.elements {
            return "[" + block(elements.map { $0.prettyText(indentation: inner) }) + "]"
        }
        return self.canonicalText
    }

    private static func quoted(_ text: String) -> String {
        var writer = JSONWriter()
        writer.string(text)
        return String(buffer: writer.finish())
    }

    /// The value as a table's cell, without control characters for the terminal.
    var cell: String {
        switch self.kind {
        case .null: ""
        case .bool, .number: self.canonicalText
        case .string: (self.string ?? "").printable
        case .array: self.elements?.map(\.cell).joined(separator: ",") ?? ""
        case .object: self.canonicalText.printable
        }
    }
}

extension String {
    /// The text with control characters as `\u{..}`, so that no answer can control the terminal.
    var printable: String {
        var printable = ""
        for scalar in self.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                printable += "\\u{\(String(scalar.value, radix: 16))}"
            default:
                printable.unicodeScalars.append(scalar)
            }
        }
        return printable
    }
}
