/// Finds the end of a number and checks its grammar (RFC 8259, section 6).
enum JSONNumberScanner {
    /// Passes over a number.
    ///
    /// - Parameters:
    ///   - bytes: The text.
    ///   - start: The number's first byte.
    /// - Returns: The position after its last byte.
    /// - Throws: `malformed` when the grammar asks for a digit that is not there, or forbids one that is.
    static func scan(_ bytes: Span<UInt8>, from start: Int) throws(JSONFault) -> Int {
        var position = start
        if position < bytes.count, bytes[position] == UInt8(ascii: "-") {
            position &+= 1
        }
        let leading = position
        position = try Self.skipDigits(bytes, from: position)
        if bytes[leading] == UInt8(ascii: "0"), position > leading &+ 1 {
            throw .malformed(at: leading &+ 1, "a number must not start with a zero and a digit")
        }
        if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
            position = try Self.skipDigits(bytes, from: position &+ 1)
        }
        if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
            position &+= 1
            if position < bytes.count, bytes[position] == UInt8(ascii: "+") || bytes[position] == UInt8(ascii: "-") {
                position &+= 1
            }
            position = try Self.skipDigits(bytes, from: position)
        }
        return position
    }

    @inline(__always)
    private static func skipDigits(_ bytes: Span<UInt8>, from start: Int) throws(JSONFault) -> Int {
        var position = start
        while position < bytes.count, JSONByteClass.isDigit(bytes[position]) {
            position &+= 1
        }
        guard position > start else {
            throw .malformed(at: start, "a digit must stand here")
        }
        return position
    }
}
