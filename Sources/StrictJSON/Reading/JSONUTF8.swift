/// Checks UTF-8 sequences (RFC 3629, section 4): no overlong forms, no surrogates, nothing over U+10FFFF.
enum JSONUTF8 {
    /// Checks the sequence of two to four bytes at a position.
    ///
    /// - Parameters:
    ///   - bytes: The text.
    ///   - position: Its lead byte, 0x80 or more.
    /// - Returns: The position after the sequence; nil when it is not UTF-8.
    @inline(__always)
    static func end(of bytes: Span<UInt8>, sequenceAt position: Int) -> Int? {
        let remaining = bytes.count &- position
        let lead = bytes[position]
        switch lead {
        case 0xC2...0xDF:
            guard remaining >= 2, Self.isContinuation(bytes[position &+ 1]) else { return nil }
            return position &+ 2
        case 0xE0...0xEF:
            guard remaining >= 3, Self.isContinuation(bytes[position &+ 2]) else { return nil }
            let lowest: UInt8 = lead == 0xE0 ? 0xA0 : 0x80
            let highest: UInt8 = lead == 0xED ? 0x9F : 0xBF
            let second = bytes[position &+ 1]
            guard second >= lowest, second <= highest else { return nil }
            return position &+ 3
        case 0xF0...0xF4:
            guard remaining >= 4, Self.isContinuation(bytes[position &+ 2]), Self.isContinuation(bytes[position &+ 3])
            else { return nil }
            let lowest: UInt8 = lead == 0xF0 ? 0x90 : 0x80
            let highest: UInt8 = lead == 0xF4 ? 0x8F : 0xBF
            let second = bytes[position &+ 1]
            guard second >= lowest, second <= highest else { return nil }
            return position &+ 4
        default:
            return nil
        }
    }

    @inline(__always)
    private static func isContinuation(_ byte: UInt8) -> Bool {
        byte & 0xC0 == 0x80
    }
}
