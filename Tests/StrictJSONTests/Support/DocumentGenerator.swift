import Foundation

/// Makes small JSON documents: mostly well-formed, with all the corners of the grammar.
struct DocumentGenerator {
    private static let numbers = [
        "0", "-0", "1", "-1", "42", "60.0", "6e1", "600e-1", "0.5", "-0.25", "1E+2", "1e-2", "0e5", "0.0", "1.50",
        "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615",
        "18446744073709551616", "123456789012345678901234567890", "1e308", "1e309", "-1e999", "1e-400", "0.1",
        "3.141592653589793", "100000000000000000000000e-20", "1e19", "922337203685477580.7e1",
    ]
    private static let pieces = [
        "a", "b", "xyz", "hello world", "Zażółć", "e\u{301}", "é", "€", "日本", "𝄞", "\u{7F}", "\u{FFFF}", "\u{10FFFF}",
        #"\n"#, #"\t"#, #"\""#, #"\\"#, #"\/"#, #"\b\f\r"#, #"\u0000"#, #"\u0061"#, #"\u00e9"#, #"\u20AC"#,
        #"\uD834\uDD1E"#, #"\uFFFE"#, "12345678", "abcdefghijklmnop", "\u{FEFF}",
    ]
    private static let brokenPieces = [#"\uD800"#, #"\uDC00"#, #"\uD800\u0041"#, "\u{1}", "\n", #"\x"#, #"\u12"#]
    private static let names = [
        "a", "b", "c", "d", "to", "data", "key", "k1", "k2", "", "é", "e\u{301}", #"\u0061"#, #"\u0062"#, "x\\/y", "~",
    ]
    private static let blanks = [" ", "  ", "\n", "\t", "\r\n", " \n\t "]

    private var random: SplitMix64
    private var output: [UInt8] = []

    init(seed: UInt64) {
        self.random = SplitMix64(seed: seed)
    }

    mutating func document() -> [UInt8] {
        self.output.removeAll(keepingCapacity: true)
        self.blank()
        switch self.random.below(50) {
        case 0: self.nest(levels: 1 + self.random.below(20))
        case 1: self.object(members: 7 + self.random.below(8), depth: 3, hasOwnNames: true)
        case 2: self.scalar()
        default: self.value(depth: 0)
        }
        self.blank()
        return self.output
    }

    private mutating func value(depth: Int) {
        switch self.random.below(depth < 4 ? 10 : 5) {
        case 5, 6, 7: self.object(members: self.random.below(5), depth: depth, hasOwnNames: false)
        case 8, 9: self.array(elements: self.random.below(5), depth: depth)
        default: self.scalar()
        }
    }

    private mutating func scalar() {
        switch self.random.below(8) {
        case 0: self.write("true")
        case 1: self.write("false")
        case 2: self.write("null")
        case 3, 4: self.write(self.random.pick(Self.numbers))
        case 5: self.write(String(self.random.below(100_000)))
        default: self.string()
        }
    }

    private mutating func string() {
        self.write("\"")
        for _ in 0..<self.random.below(4) {
            self.write(self.random.pick(Self.pieces))
        }
        if self.random.below(60) == 0 {
            self.write(self.random.pick(Self.brokenPieces))
        }
        self.write("\"")
    }

    private mutating func object(members: Int, depth: Int, hasOwnNames: Bool) {
        self.write("{")
        for member in 0..<members {
            if member > 0 { self.write(",") }
            self.blank()
            if hasOwnNames && self.random.below(40) != 0 {
                // Names of their own let large objects be accepted, too.
                self.write("\"n\(member)\"")
            } else if self.random.below(4) == 0 {
                self.string()
            } else {
                self.write("\"")
                self.write(self.random.pick(Self.names))
                self.write("\"")
            }
            self.blank()
            self.write(":")
            self.blank()
            self.value(depth: depth + 1)
            self.blank()
        }
        self.write("}")
    }

    private mutating func array(elements: Int, depth: Int) {
        self.write("[")
        for element in 0..<elements {
            if element > 0 { self.write(",") }
            self.blank()
            self.value(depth: depth + 1)
            self.blank()
        }
        self.write("]")
    }

    private mutating func nest(levels: Int) {
        var ends: [String] = []
        for _ in 0..<levels {
            if self.random.below(2) == 0 {
                self.write("[")
                ends.append("]")
            } else {
                self.write("{\"a\":")
                ends.append("}")
            }
        }
        self.scalar()
        for end in ends.reversed() {
            self.write(end)
        }
    }

    private mutating func blank() {
        if self.random.below(12) == 0 {
            self.write(self.random.pick(Self.blanks))
        }
    }

    private mutating func write(_ text: String) {
        self.output.append(contentsOf: text.utf8)
    }
}

/// Damages documents, mostly a little.
struct DocumentMutator {
    private static let insertions: [[UInt8]] = [
        Array(",".utf8), Array(":".utf8), Array("[".utf8), Array("]".utf8), Array("{".utf8), Array("}".utf8),
        Array("\"".utf8), Array("\\".utf8), Array("0".utf8), Array("-".utf8), Array(".".utf8), Array("e".utf8),
        Array("+".utf8), Array("1".utf8), Array("true".utf8), Array("null".utf8), Array(#"\uD800"#.utf8),
        Array(#"\u00"#.utf8), Array("/".utf8), Array("//".utf8), Array("'".utf8), Array("NaN".utf8), [0x00], [0x1F],
        [0x0B], [0x80], [0xC0], [0xC3], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xFF], [0xA0],
        [0xEF, 0xBB, 0xBF], [0xC3, 0xA9],
    ]
    private static let encodings: [String.Encoding] = [
        .utf16LittleEndian, .utf16BigEndian, .utf32LittleEndian, .utf32BigEndian, .utf16, .utf32,
    ]

    private var random: SplitMix64

    init(seed: UInt64) {
        self.random = SplitMix64(seed: seed)
    }

    mutating func mutated(_ document: [UInt8]) -> [UInt8] {
        guard self.random.below(100) > 0 else { return self.transcoded(document) }
        var mutated = document
        for _ in 0...self.random.below(2) {
            self.damage(&mutated)
        }
        return mutated
    }

    private mutating func damage(_ document: inout [UInt8]) {
        guard !document.isEmpty else { return }
        let position = self.random.below(document.count)
        switch self.random.below(9) {
        case 0:
            document[position] = UInt8(truncatingIfNeeded: self.random.below(256))
        case 1:
            document[position] = self.random.pick(Self.insertions)[0]
        case 2:
            document.remove(at: position)
        case 3:
            document.removeLast(document.count - position)
        case 4:
            document.swapAt(position, self.random.below(document.count))
        case 5:
            let end = min(document.count, position + 1 + self.random.below(12))
            document.insert(contentsOf: document[position..<end], at: self.random.below(document.count))
        case 6:
            // Trailing commas hardly ever come about by chance.
            let closing = document.indices.filter { document[$0] == 0x5D || document[$0] == 0x7D }
            guard !closing.isEmpty else { return }
            document.insert(UInt8(ascii: ","), at: self.random.pick(closing))
        default:
            document.insert(contentsOf: self.random.pick(Self.insertions), at: position)
        }
    }

    private mutating func transcoded(_ document: [UInt8]) -> [UInt8] {
        guard self.random.below(3) > 0 else { return [0xEF, 0xBB, 0xBF] + document }
        let text = String(decoding: document, as: UTF8.self)
        return text.data(using: self.random.pick(Self.encodings)).map { Array($0) } ?? document
    }
}

/// A small generator of random numbers that is the same on every machine.
struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        self.state = seed
    }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ (mixed &>> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed &>> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed &>> 31)
    }

    /// Draws a number; the slight bias is of no concern here, speed in a debug build is.
    mutating func below(_ bound: Int) -> Int {
        Int(truncatingIfNeeded: (self.next() &>> 33) % UInt64(bound))
    }

    mutating func pick<Choice>(_ choices: [Choice]) -> Choice {
        choices[self.below(choices.count)]
    }
}
