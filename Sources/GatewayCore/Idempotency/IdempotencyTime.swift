/// The time by which idempotency keys expire.
///
/// It passes as a process's uptime does, so that a wall clock that jumps ahead frees no key. A process begins where the
/// one before it stood by its last mark. What lies between the two is known from the wall clock alone, so it counts for an
/// hour at most: after a long rest keys are known for longer than they need be, never for less.
struct IdempotencyTime: Sendable, Hashable {
    /// The most that the time between two processes counts.
    static let maxGap = Duration.seconds(3_600)

    private let start: Timestamp
    private let uptime: ContinuousClock.Instant

    /// The time of a process.
    ///
    /// - Parameters:
    ///   - mark: where an earlier process stood; `nil` for the store's first.
    ///   - wall: what the wall clock shows.
    ///   - uptime: the same moment by the uptime.
    init(after mark: IdempotencyMark?, wall: Timestamp, uptime: ContinuousClock.Instant) {
        self.uptime = uptime
        guard let mark else {
            self.start = wall
            return
        }
        let longest = mark.time.advanced(by: Self.maxGap)
        let gap = max(0, wall.microseconds.subtractingReportingOverflow(mark.wall.microseconds).partialValue)
        self.start = min(longest, mark.time.advanced(by: .microseconds(gap)))
    }

    /// The time at a moment of the uptime.
    func now(at uptime: ContinuousClock.Instant) -> Timestamp {
        self.start.advanced(by: self.uptime.duration(to: uptime))
    }
}

/// How far the time of keys had come, stored each time that expired ones are dropped.
package struct IdempotencyMark: Sendable, Hashable {
    /// The time of keys.
    package var time: Timestamp
    /// What the wall clock showed then.
    package var wall: Timestamp

    /// A mark.
    package init(time: Timestamp, wall: Timestamp) {
        self.time = time
        self.wall = wall
    }
}
