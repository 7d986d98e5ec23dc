import Testing

@testable import FCMModel

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
        "Anything else is no date",
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

    @Test("Every day until 2110 is counted, in every form that can name it")
    func everyDay() {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        var midnight = 0
        for year in 1970..<2110 {
            let isLeap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0)
            for (month, length) in zip(months, [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
                for day in [1, 2, 9, 10, 28, length] {
                    let expected = midnight + (day - 1) * 86_400
                    let padded = day < 10 ? "0\(day)" : "\(day)"
                    let narrow = day < 10 ? " \(day)" : "\(day)"
                    #expect(HTTPDate.seconds("Mon, \(padded) \(month) \(year) 00:00:00 GMT") == expected)
                    #expect(HTTPDate.seconds("Mon \(month) \(narrow) 00:00:00 \(year)") == expected)
                    if year < 2070 {
                        let short = String(String(year).suffix(2))
                        #expect(HTTPDate.seconds("Monday, \(padded)-\(month)-\(short) 00:00:00 GMT") == expected)
                    }
                }
                midnight += length * 86_400
                #expect(HTTPDate.seconds("Mon, \(length + 1) \(month) \(year) 00:00:00 GMT") == nil)
            }
        }
    }
}
