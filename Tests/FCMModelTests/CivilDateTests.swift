import FCMModel
import Testing

@Suite("CivilDate")
struct CivilDateTests {
    @Test("Day follows day through leap years and centuries, there and back")
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
        "Known days have their known numbers",
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
        "Days that the calendar lacks are refused",
        arguments: [(2026, 2, 29), (1900, 2, 29), (2026, 4, 31), (2026, 0, 1), (2026, 13, 1), (2026, 1, 0), (-1, 1, 1)]
    )
    func refused(year: Int, month: Int, day: Int) {
        #expect(CivilDate(year: year, month: month, day: day) == nil)
    }
}
