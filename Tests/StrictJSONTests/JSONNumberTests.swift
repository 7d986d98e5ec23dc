import StrictJSON
import Testing

@Suite("JSONNumber")
struct JSONNumberTests {
    @Test(
        "Integral values that fit are exact in every notation, and other values have no integer",
        arguments: [
            ("0", 0), ("-0", 0), ("60", 60), ("60.0", 60), ("6e1", 60), ("6E+1", 60), ("600e-1", 60), ("0.6e2", 60),
            ("0.00060e5", 60), ("60.000", 60), ("-60.0", -60), ("0.5", nil), ("-0.5", nil), ("60.5", nil),
            ("605e-1", nil), ("6e-1", nil), ("1.5e1", 15), ("1.55e1", nil), ("0e0", 0), ("0.0", 0), ("-0.0e-5", 0),
            ("0e99999999999999999999", 0), ("0.000e-99999999999999999999", 0), ("1e18", 1_000_000_000_000_000_000),
            ("9e18", 9_000_000_000_000_000_000), ("1e19", nil), ("10e17", 1_000_000_000_000_000_000),
            ("9223372036854775807", 9_223_372_036_854_775_807), ("9223372036854775808", nil),
            ("-9223372036854775808", -9_223_372_036_854_775_808), ("-9223372036854775809", nil),
            ("9223372036854775807.0", 9_223_372_036_854_775_807), ("9223372036854775807.5", nil),
            ("9.223372036854775807e18", 9_223_372_036_854_775_807), ("9.223372036854775808e18", nil),
            ("-9.223372036854775808e18", -9_223_372_036_854_775_808), ("92233720368547758070e-1", .max),
            ("922337203685477580.8e1", nil), ("9223372036854775799", 9_223_372_036_854_775_799),
            ("9999999999999999999", nil), ("18446744073709551616", nil), ("100000000000000000000e-20", 1),
            ("1e999", nil), ("-1e999", nil), ("1e-999", nil), ("1e99999999999999999999", nil),
            ("1e-99999999999999999999", nil), ("1e9223372036854775808", nil), ("1e4294967296", nil),
            ("1e18446744073709551616", nil), ("1e-0", 1), ("1e+00", 1), ("1E05", 100_000),
            ("1000000000000000001", 1_000_000_000_000_000_001),
        ] as [(String, Int?)]
    )
    func tellsIntegers(text: String, expected: Int?) throws {
        let number = try #require(JSONNumber(text: text))
        #expect(number.integer == expected)
        #expect(number.text == text)
        #expect(try JSONParsing.root("[\(text)]").elements?.first { _ in true }?.number == number)
    }

    @Test("Every spelling of a value has the same canonical text, and no other value has it")
    func canonicalText() throws {
        let values = [
            ["0", "-0", "0.0", "-0.00e-5", "0e9999999999"], ["60", "60.0", "6e1", "6E+01", "600e-1", "0.060e3"],
            ["-60", "-6e1", "-0.6e2"], ["6"], ["-6", "-6.0"], ["600", "6e2"], ["0.6", "6e-1", "60e-2", "0.60"],
            ["6.06"],
            ["66"], ["606"], ["1e308"], ["1e309"], ["12345678901234567890", "1234567890123456789.0e1"],
            ["12345678901234567891"], ["0.1", "1e-1"], ["0.10000000000000000001"], ["1e99999999999999999999"],
            ["1e99999999999999999998"], ["1e-99999999999999999999"],
        ]
        var met: Set<String> = []
        for spellings in values {
            let texts = Set(try spellings.map { try #require(JSONNumber(text: $0)).canonicalText })
            let text = try #require(texts.first)
            #expect(texts.count == 1 && met.insert(text).inserted, "\(texts)")
            #expect(JSONNumber(text: text)?.integer == JSONNumber(text: spellings[0])?.integer)
        }
    }

    @Test("Very long numbers are exact as well")
    func readsLongNumbers() {
        let zeros = String(repeating: "0", count: 100_000)
        #expect(JSONNumber(text: "7\(zeros)e-100000")?.integer == 7)
        #expect(JSONNumber(text: "0.\(zeros)7e100001")?.integer == 7)
        #expect(JSONNumber(text: "7.\(zeros)")?.integer == 7)
        #expect(JSONNumber(text: "7.\(zeros)1")?.integer == nil)
        #expect(JSONNumber(text: "7\(zeros)")?.integer == nil)
        #expect(JSONNumber(text: "7\(zeros)e-99981")?.integer == nil)
        #expect(JSONNumber(text: "7\(zeros)e-99982")?.integer == 7_000_000_000_000_000_000)
        #expect(JSONNumber(text: "1\(zeros)1")?.integer == nil)
        #expect(JSONNumber(text: "0.\(zeros)")?.integer == 0)
        #expect(JSONNumber(text: String(repeating: "9", count: 100_000))?.integer == nil)
        #expect(JSONNumber(text: "1e\(String(repeating: "9", count: 100_000))")?.integer == nil)
        #expect(JSONNumber(text: "1e\(zeros)1")?.integer == 10)
    }

    @Test(
        "Only digits with at most a sign are a plain integer",
        arguments: [
            ("0", true), ("-1", true), ("12345678901234567890123", true), ("1.0", false), ("1e1", false),
            ("1E1", false),
        ]
    )
    func tellsPlainIntegers(text: String, expected: Bool) throws {
        #expect(try #require(JSONNumber(text: text)).isPlainInteger == expected)
    }

    @Test(
        "Text outside the grammar is not a number",
        arguments: [
            "", "-", "+1", "01", "-01", "1.", ".1", "1e", "1e+", "1.e1", " 1", "1 ", "1,", "0x1", "1_000", "NaN", "١",
            "1\u{0}",
            "1e1.0", "--1", "true", "\"1\"",
        ]
    )
    func refusesOthers(text: String) {
        #expect(JSONNumber(text: text) == nil)
    }

    @Test("Numbers are equal if their texts are equal")
    func comparesText() {
        #expect(JSONNumber(text: "1.0") == JSONNumber(text: "1.0"))
        #expect(JSONNumber(text: "1.0") != JSONNumber(text: "1"))
    }
}
