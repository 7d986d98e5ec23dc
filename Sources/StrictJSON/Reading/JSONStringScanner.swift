/// Finds the end of a string and checks everything on the way.
enum JSONStringScanner {
    /// Passes over a string's contents.
    ///
    /// - Parameters:
    ///   - bytes: The text.
    ///   - start: The first byte after the opening quote.
    ///   - budget: How many characters may still be escaped or beyond ASCII; those of this string are taken off.
    /// - Returns: The position of the closing quote, and whether an escape was met.
    /// - Throws: `malformed` for a missing end, controls, broken escapes, lone surrogates and bytes that are not UTF-8;
    ///   `tooManyMembers` beyond the budget.
    static func scan(
        _ bytes: Span<UInt8>,
        from start: Int,
        budget: inout Int
    ) throws(JSONFault) -> (end: Int, hasEscapes: Bool) {
        var position = start
        var hasEscapes = false
        while true {
            position = Self.skipPlain(bytes, from: position)
            guard position < bytes.count else {
                throw .malformed(at: bytes.count, "the text ends inside a string")
            }
            let byte = bytes[position]
            if byte == UInt8(ascii: "\"") {
                return (position, hasEscapes)
            } else if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                position = try JSONEscape.end(of: bytes, escapeAt: position)
                try Self.take(from: &budget, at: position)
            } else if byte >= 0x80 {
                guard let end = JSONUTF8.end(of: bytes, sequenceAt: position) else {
                    throw .malformed(at: position, "the text is not UTF-8")
                }
                position = end
                try Self.take(from: &budget, at: position)
            } else if byte < 0x20 {
                throw .malformed(at: position, "a control character must be escaped")
            } else {
                position &+= 1
            }
        }
    }

    private static func take(from budget: inout Int, at position: Int) throws(JSONFault) {
        budget &-= 1
        guard budget >= 0 else {
            throw JSONFault(
                code: .tooManyMembers,
                offset: position,
                reason: "the document has too many characters that are escaped or beyond ASCII"
            )
        }
    }

    /// Passes over plain characters, eight at a time; may stop early, near the end of the text.
    ///
    /// Not inlined: on its own, the optimiser proves all bounds checks of the load away.
    @inline(never)
    private static func skipPlain(_ bytes: Span<UInt8>, from start: Int) -> Int {
        let lastWord = bytes.count &- 8
        var position = start
        while position >= 0, position <= lastWord {
            let stops = JSONByteClass.stops(in: bytes.word(at: position))
            if stops != 0 {
                return position &+ stops.trailingZeroBitCount / 8
            }
            position &+= 8
        }
        return position
    }
}
