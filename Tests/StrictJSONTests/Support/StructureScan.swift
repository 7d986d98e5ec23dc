/// Looks at a text without reading it as JSON: what nests, which names its objects have, where commas trail.
///
/// Means something only for texts that some JSON reader accepts. Written apart from the reader under test, and slow.
struct StructureScan {
    /// The deepest nesting.
    private(set) var depth = 0
    /// How many names there are.
    private(set) var memberCount = 0
    /// Whether an object has two members of the same name, code point by code point.
    private(set) var hasDuplicateNames = false
    /// Where commas stand right before a closing bracket.
    private(set) var trailingCommas: [Int] = []

    /// Scans a text.
    ///
    /// - Parameter text: The bytes.
    init(_ text: [UInt8]) {
        var names: [Set<[UInt16]>] = []
        // The last thing that is neither blank nor inside a string.
        var lastComma: Int?
        var lastString: Range<Int>?
        var position = 0
        while position < text.count {
            let byte = text[position]
            switch byte {
            case 0x20, 0x0A, 0x0D, 0x09:
                position += 1
                continue
            case UInt8(ascii: "\""):
                let end = Self.endOfString(text, from: position)
                lastString = position..<end
                lastComma = nil
                position = end
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                names.append([])
                self.depth = max(self.depth, names.count)
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                _ = names.popLast()
                if let lastComma { self.trailingCommas.append(lastComma) }
            case UInt8(ascii: ":"):
                self.memberCount += 1
                if let lastString, !names.isEmpty {
                    let isNew = names[names.count - 1].insert(Self.units(text[lastString])).inserted
                    self.hasDuplicateNames = self.hasDuplicateNames || !isNew
                }
            default:
                break
            }
            lastComma = byte == UInt8(ascii: ",") ? position : nil
            lastString = nil
            position += 1
        }
    }

    private static func endOfString(_ text: [UInt8], from start: Int) -> Int {
        var position = start + 1
        while position < text.count, text[position] != UInt8(ascii: "\"") {
            position += text[position] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(position + 1, text.count)
    }

    /// The UTF-16 code units of a string, escapes resolved: a surrogate escape is simply one of them.
    private static func units(_ literal: ArraySlice<UInt8>) -> [UInt16] {
        let raw = Array(String(decoding: literal.dropFirst().dropLast(), as: UTF8.self).utf16)
        var units: [UInt16] = []
        var position = 0
        while position < raw.count {
            guard raw[position] == 0x5C, position + 1 < raw.count else {
                units.append(raw[position])
                position += 1
                continue
            }
            let letter = Unicode.Scalar(raw[position + 1]).map { Character($0) }
            position += 2
            switch letter {
            case "b": units.append(8)
            case "f": units.append(12)
            case "n": units.append(10)
            case "r": units.append(13)
            case "t": units.append(9)
            case "u":
                let digits = String(decoding: raw[position..<min(position + 4, raw.count)], as: UTF16.self)
                units.append(UInt16(digits, radix: 16) ?? 0)
                position += 4
            default: units.append(raw[position - 1])
            }
        }
        return units
    }
}
