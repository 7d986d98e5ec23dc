import StrictJSON
import Testing

@Suite("UTF-8 in strings and names")
struct JSONUTF8Tests {
    @Test(
        "Bytes that are not UTF-8 are refused at the first byte of their sequence",
        arguments: [
            [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xC3, 0x28], [0xC3, 0xC3],
            [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF], [0xE2, 0x82], [0xE2, 0x28, 0xA1], [0xE2, 0x82, 0x28],
            [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF],
            [0xF0, 0x9D, 0x84], [0xF0, 0x28, 0x84, 0x9E], [0xF0, 0x9D, 0x28, 0x9E], [0xF0, 0x9D, 0x84, 0x28],
            [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFE], [0xFF],
        ] as [[UInt8]]
    )
    func refusesInvalid(sequence: [UInt8]) {
        for prefix in ["\"", "\"a", "\"abcdefgh", "\"abcdé", "\"\\n"] {
            let start = Array(prefix.utf8)
            for end in ["\"", "abcdefghijkl\"", ""] {
                let refusal = JSONParsing.refusal(start + sequence + Array(end.utf8))
                #expect(refusal?.code == .malformed)
                #expect(refusal?.offset == start.count)
            }
        }
        let inName = JSONParsing.refusal(Array("{\"".utf8) + sequence + Array("\":1}".utf8))
        #expect(inName?.offset == 2)
    }

    @Test(
        "The first and last characters of every length are read",
        arguments: [
            "\u{20}", "\u{7F}", "\u{80}", "\u{7FF}", "\u{800}", "\u{FFF}", "\u{1000}", "\u{CFFF}", "\u{D000}",
            "\u{D7FF}",
            "\u{E000}", "\u{FFFD}", "\u{FFFF}", "\u{10000}", "\u{3FFFF}", "\u{40000}", "\u{FFFFF}", "\u{100000}",
            "\u{10FFFF}", "\u{FEFF}", "\u{2028}", "\u{200B}",
        ] as [Unicode.Scalar]
    )
    func readsEdges(scalar: Unicode.Scalar) throws {
        for count in 0..<17 {
            let text = String(repeating: "x", count: count) + String(scalar) + "tail"
            let root = try JSONParsing.root("{\"\(text)\":\"\(text)\"}")
            #expect(root.members?.first { _ in true }?.key.utf8.elementsEqual(text.utf8) == true)
            #expect(root[text]?.string?.utf8.elementsEqual(text.utf8) == true)
        }
    }

    @Test("Every character can be written as an escape")
    func readsEscapes() throws {
        for value in stride(from: UInt32(0), through: 0x10FFFF, by: 61) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let escapes = String(scalar).utf16
                .map { unit in
                    let digits = String(unit, radix: 16, uppercase: value % 2 == 0)
                    return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            let root = try JSONParsing.root("\"<\(escapes.joined())>\"")
            #expect(root.string?.utf8.elementsEqual("<\(String(scalar))>".utf8) == true, "U+\(value)")
        }
    }

    @Test(
        "Short escapes are decoded",
        arguments: [
            ("\\\"", "\""), ("\\\\", "\\"), ("\\/", "/"), ("\\b", "\u{8}"), ("\\f", "\u{C}"), ("\\n", "\n"),
            ("\\r", "\r"), ("\\t", "\t"), ("\\\\n", "\\n"), ("a\\nb\\tc", "a\nb\tc"),
        ]
    )
    func readsShortEscapes(text: String, expected: String) throws {
        #expect(try JSONParsing.root("\"\(text)\"").string == expected)
    }
}
