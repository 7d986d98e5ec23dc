import FCMModel
import Testing

@Suite("RetryAfter")
struct RetryAfterTests {
    private static let now = 1_709_164_790

    @Test(
        "A delay is seconds or the time until a date",
        arguments: [
            ("0", 0), ("7", 7), ("007", 7), ("120", 120), ("86400", 86_400), ("86401", 86_400),
            ("9223372036854775808", 86_400), ("99999999999999999999999999", 86_400),
            ("Thu, 29 Feb 2024 00:00:00 GMT", 10),
            ("Thursday, 29-Feb-24 00:00:00 GMT", 10),
            ("Thu Feb 29 00:00:00 2024", 10),
            ("Wed, 28 Feb 2024 23:59:50 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
            ("Fri, 01 Mar 2024 00:00:01 GMT", 86_400),
        ] as [(String, Int)]
    )
    func delays(text: String, expected: Int) {
        #expect(RetryAfter.seconds(text, now: Self.now) == expected)
    }

    @Test(
        "An unreadable value is none",
        arguments: [
            "", " ", "-1", "+1", "1.5", "1e3", " 7", "7 ", "7s", "0x7", "\u{0667}", "soon",
            "Thu, 30 Feb 2024 00:00:00 GMT", "Thu, 29 Feb 2024 00:00:00",
        ]
    )
    func unreadable(text: String) {
        #expect(RetryAfter.seconds(text, now: Self.now) == nil)
    }
}
