/// Decides which records are older than they are to be kept.
///
/// Pure. A wrong clock must not empty an audit, so age is not told by the clock alone: a long time from which no record
/// is known counts as a month only. A record is removed only when all that was written before it, in its own chain and
/// in chains that began earlier, is removed as well.
package struct AuditRetention: Sendable, Hashable {
    /// The most that a time without any record counts.
    package static let maxGap = Duration.seconds(30 * 86_400)
    /// The longest piece that is judged as one.
    package static let pieceLength = Duration.seconds(86_400)
    /// Records from further ahead than this were made under a wrong clock.
    private static let tolerance = Duration.seconds(86_400)

    /// A stored time that was falsified must not make the arithmetic overflow: 1970 to about the year 20,000.
    private static let sane = Timestamp(microseconds: 0)...Timestamp(microseconds: 1 << 59)

    private let limit: Timestamp
    private let now: Timestamp
    private let future: Timestamp

    /// What is too old at a moment.
    ///
    /// - Parameters:
    ///   - retention: how long records are kept.
    ///   - now: the moment, by a clock that may be wrong.
    ///   - pieces: when the stored records were made.
    package init(_ retention: Duration, now: Timestamp, pieces: [AuditTimePiece]) {
        let now = Self.clamped(now)
        let future = now.advanced(by: Self.tolerance)
        let known = pieces.map { (min: Self.clamped($0.minTime), max: Self.clamped($0.maxTime)) }
            .filter { $0.max <= future }
        self.now = now
        self.future = future
        var moment = now
        var left = retention.microseconds
        // Back in time from now, until so much time has passed of which there are records.
        for piece in known.sorted(by: { $0.max > $1.max }) where left > 0 {
            if piece.max < moment {
                let gap = min(moment.microseconds - piece.max.microseconds, Self.maxGap.microseconds)
                if gap >= left {
                    moment = Timestamp(microseconds: moment.microseconds - left)
                    left = 0
                    break
                }
                left -= gap
                moment = piece.max
            }
            if piece.min < moment {
                let covered = min(moment.microseconds - piece.min.microseconds, left)
                left -= covered
                moment = Timestamp(microseconds: moment.microseconds - covered)
            }
        }
        self.limit = Timestamp(microseconds: moment.microseconds - left)
    }

    /// The last record of each chain that is to be removed, by rising writer.
    ///
    /// - Parameters:
    ///   - pieces: when the stored records were made, by rising writer and place.
    ///   - heads: the chains' ends; the last record of an open chain stays.
    /// - Returns: the places up to which records go.
    package func removals(_ pieces: [AuditTimePiece], heads: [AuditHead]) -> [AuditPosition] {
        let known = Dictionary(heads.map { ($0.writer, $0) }, uniquingKeysWith: { first, _ in first })
        var removals: [AuditPosition] = []
        // What was written later can't be older.
        var latest = Self.sane.lowerBound
        for (piece, time) in zip(pieces, self.times(of: pieces)) {
            guard let head = known[piece.writer] else { break }
            latest = max(latest, time)
            guard latest < self.limit else { break }
            let last = head.state == .open ? min(piece.last, head.sequence - 1) : piece.last
            guard last >= piece.first else { break }
            if removals.last?.writer == piece.writer {
                removals[removals.count - 1].sequence = last
            } else {
                removals.append(AuditPosition(writer: piece.writer, sequence: last))
            }
            if last < piece.last { break }
        }
        return removals
    }

    /// When each piece was written at the latest: a time that is still to come says nothing, so the next one holds.
    private func times(of pieces: [AuditTimePiece]) -> [Timestamp] {
        var next = self.now
        var times: [Timestamp] = []
        for piece in pieces.reversed() {
            let own = Self.clamped(piece.maxTime)
            if own <= self.future { next = own }
            times.append(next)
        }
        return times.reversed()
    }

    private static func clamped(_ time: Timestamp) -> Timestamp {
        min(max(time, self.sane.lowerBound), self.sane.upperBound)
    }
}

extension Duration {
    fileprivate var microseconds: Int64 {
        self.components.seconds * 1_000_000 + self.components.attoseconds / 1_000_000_000_000
    }
}
