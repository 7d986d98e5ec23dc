import NIOCore

/// A view of one value of a document; cheap to copy, and keeps the whole document alive.
package struct JSONValue: Sendable {
    /// The kinds of JSON values.
    package enum Kind: Sendable {
        /// Named members.
        case object
        /// A list of values.
        case array
        /// Text.
        case string
        /// A number of any size and precision.
        case number
        /// `true` or `false`.
        case bool
        /// `null`.
        case null
    }

    /// What all values of the document share.
    let tape: JSONTape
    /// The value's node.
    let index: Int

    /// Creates a view.
    ///
    /// - Parameters:
    ///   - tape: The document's tape.
    ///   - index: The value's node.
    init(tape: JSONTape, index: Int) {
        self.tape = tape
        self.index = index
    }

    /// What the value is.
    package var kind: Kind {
        self.tape.nodes[self.index].kind
    }

    /// The unescaped text; nil unless the value is a string.
    ///
    /// Made anew on every call.
    package var string: String? {
        guard self.kind == .string else { return nil }
        return self.tape.string(at: self.index)
    }

    /// The unescaped text's length in bytes of UTF-8; nil unless the value is a string.
    package var stringByteCount: Int? {
        guard self.kind == .string else { return nil }
        return self.tape.byteCount(at: self.index)
    }

    /// The number; nil unless the value is one.
    package var number: JSONNumber? {
        let node = self.tape.nodes[self.index]
        guard node.kind == .number else { return nil }
        return JSONNumber(checked: self.tape.rawText(of: node))
    }

    /// The truth value; nil unless the value is one.
    package var bool: Bool? {
        let node = self.tape.nodes[self.index]
        guard node.kind == .bool else { return nil }
        return node.flag
    }

    /// Whether the value is `null`.
    package var isNull: Bool {
        self.kind == .null
    }

    /// The members in the order of the text; nil unless the value is an object.
    package var members: JSONMembers? {
        guard self.kind == .object else { return nil }
        return JSONMembers(tape: self.tape, object: self.index)
    }

    /// The elements; nil unless the value is an array.
    package var elements: JSONElements? {
        guard self.kind == .array else { return nil }
        return JSONElements(tape: self.tape, array: self.index)
    }

    /// The offset of the value's first byte from the start of the text; for strings that of the opening quote.
    package var offset: Int {
        let node = self.tape.nodes[self.index]
        return node.kind == .string ? Int(node.start) - 1 : Int(node.start)
    }

    /// The value of the member of that name; nil when the object has none, or when the value is no object.
    ///
    /// Names are compared byte by byte in place, one after the other.
    ///
    /// - Parameter key: The name, unescaped; compared without Unicode normalisation.
    package subscript(key: String) -> JSONValue? {
        let tape = self.tape
        guard tape.nodes[self.index].kind == .object else { return nil }
        let bytes = tape.bytes
        let text = bytes.readableBytesUInt8Span
        let end = Int(tape.nodes[self.index].end)
        var name = self.index + 1
        while name < end {
            if JSONText.areEqual(tape.nodes[name], key, in: text) {
                return JSONValue(tape: tape, index: name + 1)
            }
            name = Int(tape.nodes[name + 1].end)
        }
        return nil
    }
}
