/// Decides which records are older than they are to be kept.
///
/// Pure. A wrong clock must not empty an audit, so age is not told by the clock alone: a long time from which no record
/// is known counts as a month only. A record is removed only when all that was written before it, in its own chain and
/// in chains that began earlier, is removed as well.
struct AuditRetention: Sendable, Hashable {
    /// Neighbouring records of one chain, and the time that they cover without a long gap.
    struct TimeSpan: Sendable, Hashable {
        var writer: Int
        var first: Int
        var last: Int
        var minTime: Timestamp
        var maxTime: Timestamp
    }

    /// The most that a time without any record counts.
    private static let maxGap = Duration.seconds(30 * 86_400)
    /// The longest span that is judged as one.
    static let spanLength = Duration.seconds(86_400)
    /// Records from further ahead than this were made under a wrong clock.
    private static let tolerance = Duration.seconds(86_400)

    /// A stored time that was falsified must not make the arithmetic overflow: 1970 to about the year 20,000.
    private static let sane = Timestamp(microseconds: 0)...Timestamp(microseconds: 1 << 59)

    /// Records made before this moment are too old.
    let limit: Timestamp
    private let now: Timestamp
    private let future: Timestamp

    /// The limits at a moment, by a clock that may be wrong, if the stored records were made in these spans.
    init(_ retention: Duration, now: Timestamp, spans: [TimeSpan]) {
        let now = Self.clamped(now)
        let future = now.advanced(by: Self.tolerance)
        let known = spans.map { (min: Self.clamped($0.minTime), max: Self.clamped($0.maxTime)) }
            .filter { $0.max <= future }
        (self.now, self.future) = (now, future)
        var moment = now
        var left = retention.microseconds
        // Back in time from now, until so much time has passed of which there are records.
        for span in known.sorted(by: { $0.max > $1.max }) where left > 0 {
            if span.max < moment {
                let gap = min(moment.microseconds - span.max.microseconds, Self.maxGap.microseconds)
                if gap >= left {
                    moment = Timestamp(microseconds: moment.microseconds - left)
                    left = 0
                    break
                }
                left -= gap
                moment = span.max
            }
            if span.min < moment {
                let covered = min(moment.microseconds - span.min.microseconds, left)
                left -= covered
                moment = Timestamp(microseconds: moment.microseconds - covered)
            }
        }
        self.limit = Timestamp(microseconds: moment.microseconds - left)
    }

    /// The last record of each chain that is to be removed, by rising writer; the last record of an open chain stays.
    ///
    /// Spans are sorted by rising writer and place.
    func removals(_ spans: [TimeSpan], heads: [AuditHead]) -> [AuditChain.Position] {
        let known = heads.keyed(by: \.writer)
        var removals: [AuditChain.Position] = []
        // A later record can't be older.
        var latest = Self.sane.lowerBound
        for (span, time) in zip(spans, self.times(of: spans)) {
            guard let head = known[span.writer] else { break }
            latest = max(latest, time)
            guard latest < self.limit else { break }
            let last = head.state == .open ? min(span.last, head.sequence - 1) : span.last
            guard last >= span.first else { break }
            if removals.last?.writer == span.writer {
                removals[removals.count - 1].sequence = last
            } else {
                removals.append(AuditChain.Position(writer: span.writer, sequence: last))
            }
            if last < span.last { break }
        }
        return removals
    }

    /// When each span was written at the latest: a time that is still to come says nothing, so the next one holds.
    private func times(of spans: [TimeSpan]) -> [Timestamp] {
        var next = self.now
        var times: [Timestamp] = []
        for span in spans.reversed() {
            let own = Self.clamped(span.maxTime)
            if own <= self.future { next = own }
            times.append(next)
        }
        return times.reversed()
    }

    private static func clamped(_ time: Timestamp) -> Timestamp {
        min(max(time, self.sane.lowerBound), self.sane.upperBound)
    }
}

/// Finds when the records of all chains were made, from the times of a few of each chain.
///
/// Records between two of them were written between them, whatever the clock showed meanwhile. If two are further apart
/// than a span may be long, it looks at more between them.
extension AuditRetention.TimeSpan {
    /// Records between two that are looked at first, and into how many parts a span that is too long is split, again
    /// and again; a power of the parts.
    private static let step = 4_096
    private static let parts = 16

    /// The records behind a place, up to the later of two records.
    private init(_ writer: Int, after place: Int, _ earlier: AuditMoment, _ later: AuditMoment) {
        let (minTime, maxTime) = (min(earlier.time, later.time), max(earlier.time, later.time))
        self.init(writer: writer, first: place &+ 1, last: later.sequence, minTime: minTime, maxTime: maxTime)
    }

    /// The spans, by rising writer and place; they end at the same places however many records were removed before
    /// them.
    static func all(in store: any AuditChainReader) async throws(GatewayError) -> [AuditRetention.TimeSpan] {
        var spans: [AuditRetention.TimeSpan] = []
        for writer in try await store.writersWithRecords() {
            let moments = try await store.times(of: writer, in: Int.min...Int.max, every: Self.step)
            guard let first = moments.first else { continue }
            var place = first.sequence &- 1
            if moments.count == 1 { spans.append(AuditRetention.TimeSpan(writer, after: place, first, first)) }
            try await self.append(moments, of: writer, step: Self.step, in: store, after: &place, to: &spans)
        }
        return spans
    }

    /// Adds the spans of what is behind a place, and moves it on.
    private static func append(
        _ moments: [AuditMoment],
        of writer: Int,
        step: Int,
        in store: any AuditChainReader,
        after place: inout Int,
        to spans: inout [AuditRetention.TimeSpan]
    ) async throws(GatewayError) {
        let longest = UInt64(AuditRetention.spanLength.microseconds)
        for (earlier, later) in zip(moments, moments.dropFirst()) {
            let (length, overflows) = later.time.microseconds
                .subtractingReportingOverflow(earlier.time.microseconds)
            if overflows || length.magnitude > longest {
                if step > 1 {
                    let finer = step / Self.parts
                    let places = earlier.sequence...later.sequence
                    let between = try await store.times(of: writer, in: places, every: finer)
                    try await self.append(between, of: writer, step: finer, in: store, after: &place, to: &spans)
                    continue
                }
                // Neighbours with a long gap between them.
                if place < earlier.sequence {
                    spans.append(AuditRetention.TimeSpan(writer, after: place, earlier, earlier))
                }
                spans.append(AuditRetention.TimeSpan(writer, after: earlier.sequence, later, later))
            } else {
                spans.append(AuditRetention.TimeSpan(writer, after: place, earlier, later))
            }
            place = later.sequence
        }
    }
}
