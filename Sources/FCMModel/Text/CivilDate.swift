/// A day of the proleptic Gregorian calendar.
package struct CivilDate: Sendable, Hashable {
    /// The days from 1 March of the year 0, where the reckoning below begins, to 1 January 1970.
    private static let daysTo1970 = 719_468
    /// The days of 400 years, after which the calendar repeats itself.
    private static let daysPerEra = 146_097

    package let year: Int
    package let month: Int
    package let day: Int

    /// The day a number of days after 1 January 1970, or before it.
    package init(daysSince1970: Int) {
        // Years are reckoned from March, so that a leap day is the last of its year and moves no other.
        let days = daysSince1970 + Self.daysTo1970
        let era = (days >= 0 ? days : days - Self.daysPerEra + 1) / Self.daysPerEra
        let dayOfEra = days - era * Self.daysPerEra
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        self.day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        self.month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        self.year = yearOfEra + era * 400 + (self.month <= 2 ? 1 : 0)
    }

    /// A day by its numbers; `nil` when the calendar has no such day.
    package init?(year: Int, month: Int, day: Int) {
        guard (0...9_999).contains(year), (1...12).contains(month), (1...31).contains(day) else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
        // A day too many would be the next month's first.
        guard CivilDate(daysSince1970: self.daysSince1970) == self else { return nil }
    }

    /// How many days after 1 January 1970 the day is; negative before it.
    package var daysSince1970: Int {
        let year = self.month <= 2 ? self.year - 1 : self.year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let monthFromMarch = self.month > 2 ? self.month - 3 : self.month + 9
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + self.day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * Self.daysPerEra + dayOfEra - Self.daysTo1970
    }
}
