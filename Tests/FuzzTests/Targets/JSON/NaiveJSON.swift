/// A JSON text read in the plainest way that RFC 8259 allows, for comparison.
indirect enum NaiveJSON: Equatable {
    case object([Member])
    case array([NaiveJSON])
    /// The bytes of the unescaped text.
    case string([UInt8])
    /// The number as written.
    case number([UInt8])
    case bool(Bool)
    case null

    /// A member of an object.
    struct Member: Equatable {
        /// The bytes of the unescaped name.
        var name: [UInt8]
        var value: NaiveJSON
    }

    /// The same value with every object's members sorted by the bytes of their names.
    var sorted: NaiveJSON {
        switch self {
        case .object(let members):
            let members = members.map { Member(name: $0.name, value: $0.value.sorted) }
            return .object(members.sorted { $0.name.lexicographicallyPrecedes($1.name) })
        case .array(let elements):
            return .array(elements.map(\.sorted))
        case .string, .number, .bool, .null:
            return self
        }
    }

    /// Reads a text within the default limits; nil if it isn't JSON or exceeds them.
    static func read(_ bytes: [UInt8]) -> NaiveJSON? {
        guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
        var reader = NaiveJSONReader(bytes)
        return reader.document()
    }
}

/// Reads valid UTF-8 as JSON, by recursion: the depth is limited.
private struct NaiveJSONReader {
    private static let maxDepth = 16
    private static let maxMembers = 2_000
    private static let maxNumberBytes = 1_024

    private let bytes: [UInt8]
    private var position = 0
    private var members = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The whole text as a value.
    mutating func document() -> NaiveJSON? {
        guard let value = self.value(depth: 0) else { return nil }
        self.skipBlanks()
        return self.position == self.bytes.count ? value : nil
    }

    private mutating func value(depth: Int) -> NaiveJSON? {
        self.skipBlanks()
        switch self.peek() {
        case UInt8(ascii: "{"): return depth < Self.maxDepth ? self.object(depth: depth + 1) : nil
        case UInt8(ascii: "["): return depth < Self.maxDepth ? self.array(depth: depth + 1) : nil
        case UInt8(ascii: "\""): return self.string().map { .string($0) }
        case UInt8(ascii: "t"): return self.take("true") ? .bool(true) : nil
        case UInt8(ascii: "f"): return self.take("false") ? .bool(false) : nil
        case UInt8(ascii: "n"): return self.take("null") ? .null : nil
        default: return self.number()
        }
    }

    private mutating func object(depth: Int) -> NaiveJSON? {
        self.position += 1
        var members: [NaiveJSON.Member] = []
        var names: Set<[UInt8]> = []
        self.skipBlanks()
        if self.take("}") { return .object([]) }
        repeat {
            self.skipBlanks()
            guard self.peek() == UInt8(ascii: "\""), let name = self.string(), names.insert(name).inserted else {
                return nil
            }
            self.members += 1
            self.skipBlanks()
            guard self.members <= Self.maxMembers, self.take(":"), let value = self.value(depth: depth) else {
                return nil
            }
            members.append(NaiveJSON.Member(name: name, value: value))
            self.skipBlanks()
        } while self.take(",")
        return self.take("}") ? .object(members) : nil
    }

    private mutating func array(depth: Int) -> NaiveJSON? {
        self.position += 1
        var elements: [NaiveJSON] = []
        self.skipBlanks()
        if self.take("]") { return .array([]) }
        repeat {
            guard let value = self.value(depth: depth) else { return nil }
            elements.append(value)
            self.skipBlanks()
        } while self.take(",")
        return self.take("]") ? .array(elements) : nil
    }

    /// Collects UTF-16 code units, as escapes are written in them, and refuses invalid UTF-16.
    private mutating func string() -> [UInt8]? {
        self.position += 1
        var units: [UInt16] = []
        while let byte = self.peek(), byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { return nil }
            if byte == UInt8(ascii: "\\") {
                guard let unit = self.escape() else { return nil }
                units.append(unit)
            } else {
                let start = self.position
                self.position += 1
                while let next = self.peek(), next & 0xC0 == 0x80 { self.position += 1 }
                units += Array(String(decoding: self.bytes[start..<self.position], as: UTF8.self).utf16)
            }
        }
        guard self.take("\""), let text = String(validating: units, as: UTF16.self) else { return nil }
        return Array(text.utf8)
    }

    private mutating func escape() -> UInt16? {
        self.position += 1
        guard let letter = self.peek() else { return nil }
        self.position += 1
        switch letter {
        case UInt8(ascii: "b"): return 8
        case UInt8(ascii: "t"): return 9
        case UInt8(ascii: "n"): return 10
        case UInt8(ascii: "f"): return 12
        case UInt8(ascii: "r"): return 13
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return UInt16(letter)
        case UInt8(ascii: "u"):
            let digits = self.bytes[self.position...].prefix(4)
            guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
            self.position += 4
            return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
        default: return nil
        }
    }

    private mutating func number() -> NaiveJSON? {
        let start = self.position
        _ = self.take("-")
        if !self.take("0") {
            guard self.digits() else { return nil }
        }
        if self.take(".") {
            guard self.digits() else { return nil }
        }
        if self.take("e") || self.take("E") {
            if !self.take("+") { _ = self.take("-") }
            guard self.digits() else { return nil }
        }
        guard self.position - start <= Self.maxNumberBytes else { return nil }
        return .number(Array(self.bytes[start..<self.position]))
    }

    private mutating func digits() -> Bool {
        let start = self.position
        while let byte = self.peek(), (0x30...0x39).contains(byte) { self.position += 1 }
        return self.position > start
    }

    private mutating func skipBlanks() {
        while self.take(" ") || self.take("\t") || self.take("\n") || self.take("\r") {}
    }

    private mutating func take(_ word: StaticString) -> Bool {
        let word = Array(word.description.utf8)
        guard self.bytes[self.position...].starts(with: word) else { return false }
        self.position += word.count
        return true
    }

    private func peek() -> UInt8? {
        self.position < self.bytes.count ? self.bytes[self.position] : nil
    }
}

/// Converts a JSON number to an integer by shifting its digits.
enum NaiveInteger {
    /// The value; nil for a fraction or an overflow.
    static func value(of text: [UInt8]) -> Int? {
        let isNegative = text.first == UInt8(ascii: "-")
        let parts = text.drop { $0 == UInt8(ascii: "-") }
            .split(maxSplits: 1, omittingEmptySubsequences: false) { $0 | 0x20 == UInt8(ascii: "e") }
        let mantissa = parts[0].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        var digits = Array(mantissa.joined())
        guard digits.contains(where: { $0 != UInt8(ascii: "0") }) else { return 0 }
        var power = -(mantissa.count > 1 ? mantissa[1].count : 0)
        if parts.count > 1 {
            let exponent = String(decoding: parts[1], as: UTF8.self)
            // No tested text has enough digits to offset a larger exponent.
            power +=
                Int(exponent).map { min(max($0, -100_000), 100_000) } ?? (exponent.hasPrefix("-") ? -100_000 : 100_000)
        }
        while power < 0, digits.last == UInt8(ascii: "0") {
            digits.removeLast()
            power += 1
        }
        digits = Array(digits.drop { $0 == UInt8(ascii: "0") })
        guard power >= 0, digits.count + power < 30 else { return nil }
        digits += Array(repeating: UInt8(ascii: "0"), count: power)
        return Int((isNegative ? "-" : "") + String(decoding: digits, as: UTF8.self))
    }
}
