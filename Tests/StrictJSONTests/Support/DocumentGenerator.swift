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

    /// Creates a generator.
    ///
    /// - Parameter seed: Decides all documents.
    init(seed: UInt64) {
        self.random = SplitMix64(seed: seed)
    }

    /// Makes a document.
    ///
    /// - Returns: Its text.
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
