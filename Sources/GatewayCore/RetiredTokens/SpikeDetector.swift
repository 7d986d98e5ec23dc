/// Tells a spike of `unregistered` from the ordinary death of tokens, for one tenant (decision 0016).
///
/// Every newly reported token adds to a surplus what it exceeds the tolerated share by, every accepted one takes the
/// tolerated share away, and the surplus never falls below zero (Page's cumulative sum). So a run of dead tokens is
/// noticed after some dozens of them however much was accepted before, and a steady few percent never add up.
///
/// Operators know it as the purge guard (`fcmgw_purge_guard_active`). Pure: the caller supplies the time.
package struct SpikeDetector: Sendable, Hashable {
    /// How many recipients FCM judged, and how many of them it called unregistered.
    package struct Tally: Sendable, Hashable {
        package var sent: Double
        package var unregistered: Double

        package init(sent: Double = 0, unregistered: Double = 0) {
            self.sent = sent.isFinite ? max(0, sent) : 0
            self.unregistered = unregistered.isFinite ? min(max(0, unregistered), self.sent) : 0
        }

        mutating func add(accepted: Int, unregistered: Int) {
            self.sent += Double(accepted) + Double(unregistered)
            self.unregistered += Double(unregistered)
        }
    }

    /// Whether reports can be believed.
    package enum Phase: Sendable, Hashable {
        /// Tokens die as they always did. Next: `spike`.
        case steady
        /// More tokens are called dead than history explains; the tally is of this time alone. Next: `steady`.
        case spike(since: Timestamp, Tally)
    }

    /// What an observation changed.
    package enum Transition: Sendable, Hashable {
        case none, began, ended
    }

    /// The least and the most that the tolerated share may be, in thousandths.
    private static let toleratedShares = 200...800
    /// The tolerated share is so many times the share of history.
    private static let toleratedMultiple = 2.0
    /// Accepted recipients that every history is credited with, so that a first dead token says little.
    private static let credit = 500.0
    /// The least and the most surplus that is no spike yet, in recipients.
    private static let tolerableSurpluses = 8...40
    /// One recipient of surplus is tolerable for so many that history knows.
    private static let recipientsPerSurplus = 20.0
    /// What is left of history after an hour: half of it after a week.
    private static let hourlyRest = 0.995_882_6
    /// After so many hours nothing of history is left.
    private static let maxAgingHours = 24 * 90
    /// A spike that lasts so many seconds is what history looks like from then on.
    private static let longestSpikeSeconds = 7 * 86_400
    /// Only a spike of which no more than this share was dead can become history.
    ///
    /// Where nearly all are dead, something is broken, for however long.
    private static let mostCredibleShare = 0.7

    package private(set) var phase: Phase
    /// What was observed while the phase was `steady`, with a half-life of a week.
    package private(set) var history: Tally
    package private(set) var agedAt: Timestamp
    /// The surplus, in thousandths of a recipient.
    package private(set) var surplus: Int
    /// How often the phase has changed; of two replicas' detectors of one tenant, the one with more is right.
    package private(set) var transitions: Int

    package init(at now: Timestamp) {
        self.init(phase: .steady, history: Tally(), agedAt: now, surplus: 0)
    }

    package init(phase: Phase, history: Tally, agedAt: Timestamp, surplus: Int, transitions: Int = 0) {
        self.transitions = max(0, transitions)
        self.phase = phase
        self.history = history
        self.agedAt = agedAt
        self.surplus = min(max(0, surplus), Self.tolerableSurpluses.upperBound * 2_000)
    }

    package var isSpiking: Bool {
        if case .spike = self.phase { true } else { false }
    }

    /// Observes what became of one send's recipients, as a whole, since their order within it says nothing; those that
    /// were known to be unregistered are left out.
    package mutating func note(accepted: Int, unregistered: Int, at now: Timestamp) -> Transition {
        self.age(to: now)
        let tolerated = self.toleratedShare
        let limit = self.tolerableSurplus
        self.surplus += unregistered * (1_000 - tolerated) - accepted * tolerated
        // Bounded from above too, so that the end of a long spike takes no longer than that of a short one.
        self.surplus = min(max(0, self.surplus), 2 * limit)
        switch self.phase {
        case .steady where self.surplus > limit:
            var tally = Tally()
            tally.add(accepted: accepted, unregistered: unregistered)
            self.phase = .spike(since: now, tally)
            self.transitions += 1
            return .began
        case .steady:
            self.history.add(accepted: accepted, unregistered: unregistered)
            return .none
        case .spike where self.surplus == 0:
            self.phase = .steady
            self.transitions += 1
            return .ended
        case .spike(let since, var tally):
            tally.add(accepted: accepted, unregistered: unregistered)
            let isCredible = tally.unregistered <= tally.sent * Self.mostCredibleShare
            guard isCredible, now.seconds - since.seconds >= Self.longestSpikeSeconds else {
                self.phase = .spike(since: since, tally)
                return .none
            }
            self.history = tally
            self.surplus = 0
            self.phase = .steady
            self.transitions += 1
            return .ended
        }
    }

    /// The share of unregistered recipients that leaves the surplus as it is, in thousandths.
    private var toleratedShare: Int {
        let share = self.history.unregistered / (self.history.sent + Self.credit)
        return Self.clamped(Int(share * Self.toleratedMultiple * 1_000), to: Self.toleratedShares)
    }

    /// The largest surplus that is no spike, in thousandths of a recipient.
    private var tolerableSurplus: Int {
        let surplus = min(self.history.sent / Self.recipientsPerSurplus, 1_000_000)
        return Self.clamped(Int(surplus), to: Self.tolerableSurpluses) * 1_000
    }

    private mutating func age(to now: Timestamp) {
        let hours = (now.seconds - self.agedAt.seconds) / 3_600
        guard hours != 0 else { return }
        // A clock that was set back takes nothing of history.
        self.agedAt = now
        guard hours > 0 else { return }
        guard hours < Self.maxAgingHours else {
            self.history = Tally()
            return
        }
        for _ in 0..<hours {
            self.history.sent *= Self.hourlyRest
            self.history.unregistered *= Self.hourlyRest
        }
    }

    private static func clamped(_ value: Int, to range: ClosedRange<Int>) -> Int {
        min(max(value, range.lowerBound), range.upperBound)
    }
}
