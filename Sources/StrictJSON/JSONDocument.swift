package import NIOCore

/// A JSON text that was read and checked completely.
///
/// It is stricter than RFC 8259 in two ways. A member name must not occur twice in one object, and ``JSONLimits`` bound
/// the cost. The text stays in its buffer; strings are created only on request.
package struct JSONDocument: Sendable {
    private let tape: JSONTape

    /// Reads a text. Its root may be any value.
    ///
    /// The reader makes one pass without recursion. Its work is linear in the number of bytes.
    ///
    /// Throws `malformed` for anything but JSON in UTF-8 (including lone surrogate escapes) and for numbers that are
    /// too long. Throws `duplicateKey` for a name that occurs twice in one object, compared after unescaping and
    /// without Unicode normalisation. Throws `tooDeep` and `tooManyMembers` beyond the limits.
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

/// The bounds of a text that is read.
///
/// They bound the work that one text can cause. RFC 8259 sets no bounds, but lets a reader set its own (section 9).
package struct JSONLimits: Sendable {
    /// The deepest nesting of objects and arrays. A root object or array is level 1.
    package var maxDepth: Int
    /// The most object members in the whole document, over all objects.
    package var maxMembers: Int
    /// The most array elements in the whole document, over all arrays.
    package var maxElements: Int
    /// The most characters that are escaped or beyond ASCII, in all strings together. Reading one takes many times as
    /// long as reading a plain character. Comparing, hashing or folding it by Unicode's rules takes longer still.
    package var maxSpecialCharacters: Int
    package var maxNumberBytes: Int

    /// The limits of bodies that contain no message.
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

/// The reason for which a text was refused, and the place.
package struct JSONParseError: Error, Hashable, Sendable {
    /// The violated rule: the grammar or one of ``JSONLimits``.
    package enum Code: Sendable {
        /// The text is not JSON by RFC 8259, or a number is longer than ``JSONLimits/maxNumberBytes``.
        case malformed
        case duplicateKey
        case tooDeep
        case tooManyMembers
    }

    package let code: Code
    /// The offset of the first invalid byte from the start of the text. It is the text's length if the text ends early.
    package let offset: Int
    package let pointer: JSONPointer
    /// The fault, in constant words that never repeat the text.
    package let reason: String
}

/// A ``JSONParseError`` without its pointer, as the reader's functions throw it. It is trivial to copy, so throwing
/// costs nothing.
struct JSONFault: Error {
    let code: JSONParseError.Code
    let offset: Int
    let reason: StaticString

    static func malformed(at offset: Int, _ reason: StaticString) -> JSONFault {
        JSONFault(code: .malformed, offset: offset, reason: reason)
    }
}

/// A place in a JSON document, in the form of RFC 6901.
package struct JSONPointer: Hashable, Sendable, CustomStringConvertible {
    /// The pointer's text: empty for the whole document, otherwise tokens that each start with `/`.
    package private(set) var description: String

    /// The longest name, in Unicode scalars, that a pointer has in full.
    private static let maxNameScalars = 64

    package init() {
        self.description = ""
    }

    /// Points to a member of the object that this pointer names.
    ///
    /// A pointer is for people. A name of more than 64 Unicode scalars is truncated; no protocol has longer ones.
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

    /// Compares without Unicode normalisation, like member names.
    package static func == (lhs: JSONPointer, rhs: JSONPointer) -> Bool {
        lhs.description.utf8.elementsEqual(rhs.description.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in self.description.utf8 {
            hasher.combine(byte)
        }
    }
}
