/// Writes string contents with the escapes they need, and no others.
enum JSONStringEncoder {
    /// Writes a string without its quotes.
    ///
    /// - Parameters:
    ///   - value: The string.
    ///   - bytes: Where to write.
    static func write(_ value: String, to bytes: inout ContiguousArray<UInt8>) {
        // Nearly no string needs an escape: copy first, look afterwards, and start again if one does.
        let start = bytes.count
        bytes.append(utf8: value)
        guard Self.needsEscape(bytes, from: start) else { return }
        bytes.removeSubrange(start...)
        for byte in value.utf8 {
            if JSONByteClass.needsEscape(byte) {
                Self.appendEscape(of: byte, to: &bytes)
            } else {
                bytes.append(byte)
            }
        }
    }

    /// Whether bytes written last hold one that must be escaped.
    ///
    /// - Parameters:
    ///   - bytes: What was written.
    ///   - start: The index of the first byte to look at.
    /// - Returns: Whether there is a `"`, a `\` or a control.
    static func needsEscape(_ bytes: borrowing ContiguousArray<UInt8>, from start: Int) -> Bool {
        let span = bytes.span
        let lastWord = span.count &- 8
        var position = start
        while position >= 0, position <= lastWord {
            guard !JSONByteClass.needsEscape(in: span.word(at: position)) else { return true }
            position &+= 8
        }
        while position < span.count {
            guard !JSONByteClass.needsEscape(span[position]) else { return true }
            position &+= 1
        }
        return false
    }

    /// How many bytes ``write(_:to:)`` writes.
    ///
    /// - Parameter value: The string.
    /// - Returns: The number of bytes.
    static func byteCount(of value: String) -> Int {
        var count = value.utf8.count
        for byte in value.utf8 where JSONByteClass.needsEscape(byte) {
            switch byte {
            case 0x08, 0x09, 0x0A, 0x0C, 0x0D, UInt8(ascii: "\""), UInt8(ascii: "\\"): count &+= 1
            default: count &+= 5
            }
        }
        return count
    }

    private static func appendEscape(of byte: UInt8, to bytes: inout ContiguousArray<UInt8>) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0..<0x20:
            let low = byte & 0x0F
            bytes.append(utf8: "u00")
            bytes.append(byte < 0x10 ? UInt8(ascii: "0") : UInt8(ascii: "1"))
            bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        default: bytes.append(byte)
        }
    }
}
