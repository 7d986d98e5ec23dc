import Testing

@testable import FCMEmulator

@Suite("V1Duration")
struct V1DurationTests {
    @Test(
        "Decimal seconds with up to nine fractional digits",
        arguments: [
            ("0s", 0, false, false), ("3600s", 3_600, false, false), ("3.5s", 3, false, true),
            ("3.000000001s", 3, false, true), ("3.0s", 3, false, false), ("-1s", 1, true, false),
            ("-0.5s", 0, true, true), ("315576000000s", 315_576_000_000, false, false),
        ] as [(String, Int64, Bool, Bool)]
    )
    func valid(text: String, seconds: Int64, isNegative: Bool, hasFraction: Bool) throws {
        let duration = try #require(V1Duration(text))
        #expect(duration.seconds == seconds)
        #expect(duration.isNegative == isNegative)
        #expect(duration.hasFraction == hasFraction)
    }

    @Test(
        "Anything else is no duration",
        arguments: [
            "", "s", "60", "60 s", "+1s", "1e3s", ".5s", "5.s", "1.0000000001s", "1m", "--1s", "1.2.3s",
            "315576000001s",
            "99999999999999999999s", "١s",
        ]
    )
    func invalid(text: String) {
        #expect(V1Duration(text) == nil)
    }
}
