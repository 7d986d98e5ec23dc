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
    /// - Parameters:
    ///   - bytes: The text: its readable bytes, UTF-8 without a byte-order mark.
    ///   - limits: The bounds it must keep.
    /// - Throws: `malformed` for anything but JSON in UTF-8 (lone surrogate escapes included) and for numbers that are too
    ///   long, `duplicateKey` for a name occurring twice in one object (compared after unescaping, without Unicode
    ///   normalisation), `tooDeep` and `tooManyMembers` over the limits.
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

    /// The outermost value.
    package var root: JSONValue {
        JSONValue(tape: self.tape, index: 0)
    }
}
