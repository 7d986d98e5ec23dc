package import NIOCore

/// A JSON text that was read and checked whole.
///
/// Stricter than RFC 8259 in two ways: a member name must not occur twice in one object, and ``JSONLimits`` bound
/// what costs time. The text stays in its buffer; strings are made only when asked for.
package struct JSONDocument: Sendable {
    private let tape: JSONTape

    /// Reads a text; any value may be its root.
    ///
    /// One pass without recursion; the work is linear in the number of bytes.
    ///
    /// Throws `malformed` for anything but JSON in UTF-8 (lone surrogate escapes included) and for numbers that are too
    /// long, `duplicateKey` for a name occurring twice in one object (compared after unescaping, without Unicode
    /// normalisation), `tooDeep` and `tooManyMembers` over the limits.
    package init(parsing bytes: ByteBuffer, limits: JSONLimits = JSONLimits()) throws(JSONParseError) {
        let text = bytes.readableBytesUInt8Span
        var builder = JSONTapeBuilder(limits: limits, byteCount: text.count)
        do throws(JSONFault) {
            try builder.build(text)
        } catch {
            throw JSONParseError(
                code: error.code,
                offset: error.offset,
                pointer: builder.pointer(in: text),
                reason: error.reason.description
            )
        }
        self.tape = JSONTape(bytes: bytes, nodes: builder.nodes)
    }

    package var root: JSONValue { JSONValue(tape: self.tape, index: 0) }
}

/// The bounds a text must keep to be read.
///
/// They bound the work one text can cause; JSON knows none of them (RFC 8259, section 9, leaves them to the reader).
package struct JSONLimits: Sendable {
    /// The deepest nesting of objects and arrays, in levels; a root object or array is level 1.
    package var maxDepth: Int
    /// The most object members the whole document may have, all objects added up.
    package var maxMembers: Int
    /// The most array elements the whole document may have, all arrays added up.
    package var maxElements: Int
    /// The most characters that are escaped or beyond ASCII, in all strings together; each takes many times as long as a
    /// plain one, and longer still where Unicode's rules are applied to it.
    package var maxSpecialCharacters: Int
    package var maxNumberBytes: Int

    /// The limits of bodies that hold no message.
    package static let small = JSONLimits(maxMembers: 200, maxElements: 1_000, maxSpecialCharacters: 1_000)

    package init(
        maxDepth: Int = 16,
        maxMembers: Int = 2_000,
        maxElements: Int = 5_000,
        maxSpecialCharacters: Int = 5_000,
        maxNumberBytes: Int = 1_024
    ) {
        self.maxDepth = maxDepth
        self.maxMembers = maxMembers
        self.maxElements = maxElements
        self.maxSpecialCharacters = maxSpecialCharacters
        self.maxNumberBytes = maxNumberBytes
    }
}

/// Says why a text was refused, and where.
package struct JSONParseError: Error, Hashable, Sendable {
    /// What the text broke: the grammar or one of ``JSONLimits``.
    package enum Code: Sendable {
        /// The text is not JSON as RFC 8259 has it, or a number is longer than ``JSONLimits/maxNumberBytes``.
        case malformed
        case duplicateKey
        case tooDeep
        case tooManyMembers
    }

    package let code: Code
    /// The offset of the first offending byte from the start of the text; its length in bytes when the text ends early.
    package let offset: Int
    package let pointer: JSONPointer
    /// What is wrong, in constant words that never repeat the text.
    package let reason: String
}

/// A refusal on its way out of the reader, before its pointer is made; trivial to copy, so throwing costs nothing.
struct JSONFault: Error {
    let code: JSONParseError.Code
    let offset: Int
    let reason: StaticString

    static func malformed(at offset: Int, _ reason: StaticString) -> JSONFault {
        JSONFault(code: .malformed, offset: offset, reason: reason)
    }
}

/// Names one place in a JSON document, as RFC 6901 writes it.
package struct JSONPointer: Hashable, Sendable, CustomStringConvertible {
    /// The pointer's text: empty for the whole document, else tokens that each start with `/`.
    package private(set) var description: String

    /// The longest name, in Unicode scalars, that stands in a pointer whole.
    private static let maxNameScalars = 64

    package init() {
        self.description = ""
    }

    /// Points to a member of the object this pointer names.
    ///
    /// A pointer is for people to read: names beyond 64 Unicode scalars, longer than any that a protocol has, are cut.
    package func appending(_ key: String) -> JSONPointer {
        let scalars = key.unicodeScalars
        let end = scalars.index(scalars.startIndex, offsetBy: Self.maxNameScalars, limitedBy: scalars.endIndex)
        var token = [UInt8(ascii: "/")]
        for byte in key[..<(end ?? key.endIndex)].utf8 {
            switch byte {
            case UInt8(ascii: "~"): token += Array("~0".utf8)
            case UInt8(ascii: "/"): token += Array("~1".utf8)
            default: token.append(byte)
            }
        }
        var pointer = self
        pointer.description += String(decoding: token, as: UTF8.self)
        if let end, end < key.endIndex { pointer.description += "…" }
        return pointer
    }

    package func appending(_ index: Int) -> JSONPointer {
        var pointer = self
        pointer.description.append("/\(index)")
        return pointer
    }

    /// Compares without Unicode normalisation, as member names are compared.
    package static func == (lhs: JSONPointer, rhs: JSONPointer) -> Bool {
        lhs.description.utf8.elementsEqual(rhs.description.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in self.description.utf8 {
            hasher.combine(byte)
        }
    }
}
