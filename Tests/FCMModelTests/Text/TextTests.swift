import FCMModel
import GatewaySupport
import Testing

struct PercentEncodingTests {
    @Test(
        "Special characters of a path or query are escaped and decoded again",
        arguments: [
            ("news", "news"), ("a-b.c_d~e", "a-b.c_d~e"), ("a:b", "a%3Ab"), ("100%", "100%25"),
            ("a/b?c#d e", "a%2Fb%3Fc%23d%20e"),
            ("a+b&c=d", "a%2Bb%26c%3Dd"), ("ü", "%C3%BC"), ("a\r\nb", "a%0D%0Ab"), ("", ""),
        ]
    )
    func encoding(text: String, encoded: String) {
        #expect(PercentEncoding.encoded(text) == encoded)
        #expect(PercentEncoding.decoded(encoded.utf8) == text)
    }

    @Test("Escapes are decoded once, in either case", arguments: [("%2525", "%25"), ("%c3%bc", "ü"), ("a%3ab", "a:b")])
    func once(encoded: String, text: String) {
        #expect(PercentEncoding.decoded(encoded.utf8) == text)
    }

    @Test("Broken escapes and invalid UTF-8 decode to nil", arguments: ["%", "%2", "%G1", "a%", "%FF", "%C3"])
    func broken(encoded: String) {
        #expect(PercentEncoding.decoded(encoded.utf8) == nil)
    }

    @Test(
        "A token that would change the path is not plausible",
        arguments: [("", false), (".", false), ("..", false), ("/topics/news", false), ("...", true), ("a:b", true)]
    )
    func plausible(text: String, isPlausible: Bool) {
        #expect(RegistrationToken.isPlausible(text) == isPlausible)
    }

    @Test("A token is at most 4,096 bytes long")
    func length() {
        #expect(RegistrationToken.isPlausible(String(repeating: "x", count: 4_096)))
        #expect(!RegistrationToken.isPlausible(String(repeating: "x", count: 4_097)))
        #expect(!RegistrationToken.isPlausible(String(repeating: "ü", count: 2_049)))
    }
}

@Suite("CivilDate")
struct CivilDateTests {
    @Test("Dates and day numbers convert both ways for 150,000 days")
    func everyDay() throws {
        let start = try #require(CivilDate(year: 1896, month: 1, day: 1)).daysSince1970
        var (year, month, day) = (1896, 1, 1)
        for days in start..<start + 150_000 {
            let date = CivilDate(daysSince1970: days)
            guard (date.year, date.month, date.day) == (year, month, day), date.daysSince1970 == days else {
                Issue.record("\(date) where \(year)-\(month)-\(day) was due")
                return
            }
            day += 1
            let isLeap = year.isMultiple(of: 4) && !year.isMultiple(of: 100) || year.isMultiple(of: 400)
            let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            if day > lengths[month - 1] { (month, day) = (month + 1, 1) }
            if month > 12 { (year, month) = (year + 1, 1) }
        }
        #expect(year > 2300)
    }

    @Test(
        "Known dates have their day numbers",
        arguments: [
            (1970, 1, 1, 0), (1969, 12, 31, -1), (2000, 3, 1, 11_017), (1600, 2, 29, -135_081),
            (9999, 12, 31, 2_932_896),
            (0, 1, 1, -719_528),
        ]
    )
    func known(year: Int, month: Int, day: Int, days: Int) throws {
        #expect(try #require(CivilDate(year: year, month: month, day: day)).daysSince1970 == days)
        #expect(CivilDate(daysSince1970: days) == CivilDate(year: year, month: month, day: day))
    }

    @Test(
        "Dates that don't exist are refused",
        arguments: [(2026, 2, 29), (1900, 2, 29), (2026, 4, 31), (2026, 0, 1), (2026, 13, 1), (2026, 1, 0), (-1, 1, 1)]
    )
    func refused(year: Int, month: Int, day: Int) {
        #expect(CivilDate(year: year, month: month, day: day) == nil)
    }
}

@Suite("HTTPDate")
struct HTTPDateTests {
    @Test(
        "The three forms of a date are read",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thursday, 01-Jan-70 00:00:00 GMT", 0),
            ("Thu Jan  1 00:00:00 1970", 0),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
            ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800),
            ("Thursday, 29-Feb-24 00:00:00 GMT", 1_709_164_800),
            ("Thu Feb 29 00:00:00 2024", 1_709_164_800),
            ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
            ("Tuesday, 31-Dec-69 23:59:59 GMT", 3_155_759_999),
            ("Thu, 31 Dec 2026 23:59:60 GMT", 1_798_761_600),
        ]
    )
    func forms(text: String, expected: Int) {
        #expect(HTTPDate.seconds(text) == expected)
    }

    @Test(
        "Any other text is not a date",
        arguments: [
            "", " ", "soon", "GMT", "Sun, 06 Nov 1994", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 06 Nov 1994 08:49:37 GMT GMT", "06 Nov 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 November 1994 08:49:37 GMT", "Sun, 06 11 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 32 Jan 1994 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT", "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 006 Nov 1994 08:49:37 GMT",
            "Tue, 29 Feb 2023 00:00:00 GMT", "Mon, 29 Feb 2100 00:00:00 GMT", "Sun, 30 Feb 2024 00:00:00 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 19994 08:49:37 GMT",
            "Sun, 06 Nov +994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37:00 GMT", "Sun, 06 Nov 1994 +8:+9:+7 GMT", "Sun, 06 Nov 1994 -8:49:37 GMT",
            "Sun, 06 Nov 1994 :: GMT", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday, 06-Nov-+4 08:49:37 GMT",
            "Sunday, 06-Nov 08:49:37 GMT", "Sunday, 06--94 08:49:37 GMT", "Sunday, 29-Feb-23 08:49:37 GMT",
            "Sun Nov 06 08:49:37 94", "Sun Nov 31 08:49:37 1994", "Sun, 0\u{0666} Nov 1994 08:49:37 GMT",
            "1994-11-06T08:49:37Z", "99999999999999999999 a b c GMT",
        ]
    )
    func garbage(text: String) {
        #expect(HTTPDate.seconds(text) == nil)
    }
}

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
        "An unreadable value gives nil",
        arguments: [
            "", " ", "-1", "+1", "1.5", "1e3", " 7", "7 ", "7s", "0x7", "\u{0667}", "soon",
            "Thu, 30 Feb 2024 00:00:00 GMT", "Thu, 29 Feb 2024 00:00:00",
        ]
    )
    func unreadable(text: String) {
        #expect(RetryAfter.seconds(text, now: Self.now) == nil)
    }
}
