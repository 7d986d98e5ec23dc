/// Neighbouring records of one chain, and the time that they cover without a long gap.
package struct AuditTimePiece: Sendable, Hashable {
    /// Which writer.
    package var writer: Int
    /// The first record's place.
    package var first: Int
    /// The last record's place.
    package var last: Int
    /// The earliest record's time.
    package var minTime: Timestamp
    /// The latest record's time.
    package var maxTime: Timestamp

    /// A piece of a chain.
    package init(writer: Int, first: Int, last: Int, minTime: Timestamp, maxTime: Timestamp) {
        (self.writer, self.first, self.last) = (writer, first, last)
        (self.minTime, self.maxTime) = (minTime, maxTime)
    }
}
