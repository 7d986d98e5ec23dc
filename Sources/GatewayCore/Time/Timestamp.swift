/// A moment of wall-clock time in whole microseconds since 1970, UTC.
package struct Timestamp: Sendable, Hashable, Comparable {
    /// Microseconds since 1970.
    package var microseconds: Int64

    /// A moment by its microseconds since 1970.
    package init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    /// Whole seconds since 1970, rounded down.
    package var seconds: Int { Int(self.microseconds.flooredQuotient(by: 1_000_000)) }

    /// Whole milliseconds since 1970, rounded down.
    package var milliseconds: Int64 { self.microseconds.flooredQuotient(by: 1_000) }

    /// The moment a duration later; fractions of a microsecond are dropped.
    package func advanced(by duration: Duration) -> Timestamp {
        let (seconds, attoseconds) = duration.components
        return Timestamp(microseconds: self.microseconds + seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
    }

    /// Whether the left moment is the earlier one.
    package static func < (lhs: Timestamp, rhs: Timestamp) -> Bool {
        lhs.microseconds < rhs.microseconds
    }
}

extension Int64 {
    fileprivate func flooredQuotient(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = self.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
