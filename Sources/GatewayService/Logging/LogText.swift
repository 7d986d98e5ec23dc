import GatewayCore

/// Writes texts into lines so that they stay what they are: text within one line.
enum LogText {
    /// Appends text as a JSON string.
    static func appendQuoted(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        Self.append(text, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    /// Appends text as one word: in quotes, unless it is one already.
    static func appendWord(_ text: String, to bytes: inout [UInt8]) {
        let isWord = !text.isEmpty && text.utf8.allSatisfy { Self.isPlain($0) && $0 != 0x20 && $0 != UInt8(ascii: "=") }
        if isWord {
            bytes += text.utf8
        } else {
            Self.appendQuoted(text, to: &bytes)
        }
    }

    /// Appends text; quotes, backslashes and whatever a reader could take for the line's end or act upon are escaped.
    static func append(_ text: String, to bytes: inout [UInt8]) {
        let start = bytes.count
        // Nearly all texts are plain: they are copied first and looked at where they lie.
        bytes.append(contentsOf: text.utf8)
        if Self.isPlain(bytes.span, from: start) { return }
        bytes.removeSubrange(start...)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                bytes += [UInt8(ascii: "\\"), UInt8(scalar.value)]
            case "\n":
                bytes += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
            case _ where Self.needsEscape(scalar):
                for unit in String(scalar).utf16 {
                    bytes += [UInt8(ascii: "\\"), UInt8(ascii: "u")]
                    for shift in [12, 8, 4, 0] as [UInt16] { bytes.append(Hex.digits[Int(unit >> shift & 0xF)]) }
                }
            default:
                bytes += UTF8.encode(scalar).map { Array($0) } ?? []
            }
        }
    }

    private static func isPlain(_ bytes: Span<UInt8>, from start: Int) -> Bool {
        var index = start
        while index < bytes.count {
            guard Self.isPlain(bytes[index]) else { return false }
            index += 1
        }
        return true
    }

    /// Printable ASCII that means nothing to JSON.
    private static func isPlain(_ byte: UInt8) -> Bool {
        (0x20..<0x7F).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    /// Control characters, other line ends, and what is not seen, such as marks that turn the direction of writing.
    private static func needsEscape(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
