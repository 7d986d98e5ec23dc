import GatewayCore

/// Neighbouring places of one writer.
struct AuditRange: Hashable {
    let writer: Int
    /// The oldest place.
    var first: Int
    /// The newest place.
    var last: Int

    init(writer: Int, first: Int, last: Int) {
        self.writer = writer
        self.first = first
        self.last = last
    }

    /// The places of a span.
    ///
    /// A number that somebody else stored may overflow; it finds nothing then.
    init(writer: Int, span: Int) {
        self.init(writer: writer, first: span &* AuditSpans.size &+ 1, last: (span &+ 1) &* AuditSpans.size)
    }

    /// The places older than another; `nil` when there are none.
    func clipped(before position: AuditPosition?) -> AuditRange? {
        guard let position, self.writer >= position.writer else { return self }
        guard self.writer == position.writer, self.first < position.sequence else { return nil }
        return AuditRange(writer: self.writer, first: self.first, last: min(self.last, position.sequence - 1))
    }
}
