/// A record's place among all of them.
package struct AuditPosition: Sendable, Hashable {
    /// Which writer.
    package var writer: Int
    /// The place in its chain.
    package var sequence: Int

    /// A place.
    package init(writer: Int, sequence: Int) {
        self.writer = writer
        self.sequence = sequence
    }
}
