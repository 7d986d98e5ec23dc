/// Which of one tenant's tokens are retired, and what each of FCM's answers changes about it.
///
/// Tokens are known by the first 64 bits of their pseudonyms, 16 bytes for each with its mark. Pure: the caller supplies
/// the time, knows the tokens' texts, and writes down what changed.
struct RetiredTokenBook {
    /// What is known of a retired token.
    struct Mark: Hashable {
        var state: RetiredTokenState
        /// Some bits of the replacement's pseudonym, by which another replacement is noticed.
        var replacement: UInt16 = 0
        /// When FCM last reported it, in seconds since 1970.
        var reportedAt: UInt32
    }

    /// How a token stands before a send.
    enum Standing: Hashable {
        /// It is not on the list.
        case unknown
        /// It is on the list and may be sent to.
        case listed
        /// It is to be refused.
        case refused
    }

    /// What FCM's answer says of one token.
    enum Evidence: Hashable {
        case alive
        /// Alive, and known by another token, given by some bits of its pseudonym.
        case replaced(by: UInt16)
        case dead
    }

    /// FCM's word on one token.
    struct Finding: Hashable {
        var key: UInt64
        var evidence: Evidence
    }

    /// What is to be written down of one token.
    enum Note: Hashable {
        /// It is on the list in this state from now on.
        case put(RetiredTokenState)
        /// The same, but since its first report.
        case putKeepingSince(RetiredTokenState)
        /// It was reported again.
        case touch
        /// It left the list.
        case remove
    }

    /// What an answer changed.
    struct Lesson: Hashable {
        /// What is to be written down of each finding's token, in order.
        var notes: [Note?]
        /// Tokens that were pending and are suspected now.
        var suspected: [UInt64] = []
        /// Whether a jump began or ended.
        var transition = PurgeGuard.Transition.none
    }

    /// For how long a report makes the gateway refuse a token itself, in seconds: a day.
    static let refusalSeconds = 86_400
    /// How long a report waits for a jump to show before it is fed, in seconds: an hour.
    static let holdSeconds = 3_600
    /// A report this far in the future is taken for one of the present: clocks are corrected now and then.
    private static let clockToleranceSeconds = 3_600
    /// How often a repeated report is written down at most, in seconds.
    private static let touchSeconds = 86_400

    private var marks: [UInt64: Mark] = [:]
    /// Pending tokens in the order of their reports; entries whose token has another mark by now mean nothing.
    private var pending: [(key: UInt64, reportedAt: UInt32)] = []
    private var pendingStart = 0
    private var counts: [RetiredTokenState: Int] = [:]
    /// Tells jumps from ordinary deaths.
    private(set) var purgeGuard: PurgeGuard

    init(purgeGuard: PurgeGuard) {
        self.purgeGuard = purgeGuard
    }

    /// How many tokens are on the list.
    var count: Int { self.marks.count }

    /// How many tokens are in a state.
    func count(of state: RetiredTokenState) -> Int { self.counts[state] ?? 0 }

    /// What is known of a token; `nil` for one that is not on the list.
    func mark(of key: UInt64) -> Mark? { self.marks[key] }

    /// How a token stands before a send.
    func standing(of key: UInt64, at now: Timestamp) -> Standing {
        guard let mark = self.marks[key] else { return .unknown }
        switch mark.state {
        case .suspected, .replaced:
            return .listed
        case .pending, .unregistered:
            let age = now.seconds - Int(mark.reportedAt)
            return (-Self.clockToleranceSeconds..<Self.refusalSeconds).contains(age) ? .refused : .listed
        }
    }

    /// Takes in what was stored.
    ///
    /// Tokens must come in the order of their reports. What was pending when a jump was noticed is suspected, even if the
    /// store had no time to learn of it.
    ///
    /// - Returns: the state that the token has.
    mutating func restore(_ key: UInt64, _ mark: Mark) -> RetiredTokenState {
        var mark = mark
        if mark.state == .pending, self.purgeGuard.isJumping { mark.state = .suspected }
        self.set(mark, of: key)
        return mark.state
    }

    /// Takes in one answer of FCM's.
    ///
    /// - Parameters:
    ///   - findings: what the answer says of tokens that are on the list or are to be put there.
    ///   - accepted: how many other recipients were accepted.
    ///   - now: the present moment.
    /// - Returns: what changed.
    mutating func learn(_ findings: [Finding], accepted: Int, at now: Timestamp) -> Lesson {
        let (alive, dead) = self.tally(findings)
        var lesson = Lesson(notes: [])
        lesson.transition = self.purgeGuard.note(accepted: accepted + alive, unregistered: dead, at: now)
        if lesson.transition == .began { lesson.suspected = self.suspectPending() }
        lesson.notes = findings.map { finding in
            switch finding.evidence {
            case .dead: self.noteDead(finding.key, at: now)
            case .replaced(let replacement): self.noteReplaced(finding.key, by: replacement, at: now)
            case .alive: self.noteAlive(finding.key)
            }
        }
        return lesson
    }

    /// Ends the waiting of reports that no jump followed.
    ///
    /// - Returns: the tokens that are to be fed, in the order of their reports.
    mutating func settle(at now: Timestamp) -> [UInt64] {
        var due: [UInt64] = []
        while self.pendingStart < self.pending.count {
            let (key, reportedAt) = self.pending[self.pendingStart]
            let age = now.seconds - Int(reportedAt)
            // A report from far in the future waits no longer than any other, once the clock is right again.
            guard age >= Self.holdSeconds || age < -Self.clockToleranceSeconds else { break }
            self.pendingStart += 1
            guard var mark = self.marks[key], mark.state == .pending, mark.reportedAt == reportedAt else { continue }
            mark.state = .unregistered
            self.set(mark, of: key)
            due.append(key)
        }
        if self.pendingStart > 1_024, self.pendingStart * 2 > self.pending.count {
            self.pending.removeFirst(self.pendingStart)
            self.pendingStart = 0
        }
        return due
    }

    /// Forgets a token that the store has dropped, unless it was reported again since.
    mutating func forget(_ key: UInt64, reportedUpTo seconds: UInt32) {
        guard let mark = self.marks[key], mark.reportedAt <= seconds else { return }
        self.remove(key)
    }

    /// Takes a token off the list, whatever its state.
    ///
    /// - Returns: whether it was there.
    mutating func delete(_ key: UInt64) -> Bool {
        guard self.marks[key] != nil else { return false }
        self.remove(key)
        return true
    }

    // MARK: Notes

    /// Counts what the guard is to hear: each dead token once, and none that was known to be dead.
    private func tally(_ findings: [Finding]) -> (alive: Int, dead: Int) {
        var alive = 0
        var dead: Set<UInt64> = []
        for finding in findings {
            switch finding.evidence {
            case .alive, .replaced:
                alive += 1
            case .dead:
                switch self.marks[finding.key]?.state {
                case nil, .suspected, .replaced: dead.insert(finding.key)
                case .pending, .unregistered: break
                }
            }
        }
        return (alive, dead.count)
    }

    private mutating func noteDead(_ key: UInt64, at now: Timestamp) -> Note? {
        let seconds = UInt32(clamping: now.seconds)
        let state: RetiredTokenState = self.purgeGuard.isJumping ? .suspected : .pending
        switch self.marks[key]?.state {
        case nil, .replaced:
            self.set(Mark(state: state, reportedAt: seconds), of: key)
            return .put(state)
        case .suspected where state == .pending:
            self.set(Mark(state: state, reportedAt: seconds), of: key)
            return .putKeepingSince(state)
        case .suspected, .unregistered:
            return self.touch(key, at: seconds)
        case .pending:
            // An answer that was on its way when the first report came.
            return nil
        }
    }

    private mutating func noteReplaced(_ key: UInt64, by replacement: UInt16, at now: Timestamp) -> Note? {
        let seconds = UInt32(clamping: now.seconds)
        if let mark = self.marks[key], mark.state == .replaced, mark.replacement == replacement {
            return self.touch(key, at: seconds)
        }
        self.set(Mark(state: .replaced, replacement: replacement, reportedAt: seconds), of: key)
        return .put(.replaced)
    }

    private mutating func noteAlive(_ key: UInt64) -> Note? {
        switch self.marks[key]?.state {
        // That a replaced token still works is no news.
        case nil, .replaced:
            return nil
        case .pending, .unregistered, .suspected:
            self.remove(key)
            return .remove
        }
    }

    /// Notes a report of a token that is on the list already; one of a dead token starts its day anew.
    private mutating func touch(_ key: UInt64, at seconds: UInt32) -> Note? {
        guard var mark = self.marks[key] else { return nil }
        guard seconds < mark.reportedAt || seconds - mark.reportedAt >= Self.touchSeconds else { return nil }
        mark.reportedAt = seconds
        self.set(mark, of: key)
        return .touch
    }

    private mutating func suspectPending() -> [UInt64] {
        var suspected: [UInt64] = []
        for (key, reportedAt) in self.pending[self.pendingStart...] {
            guard var mark = self.marks[key], mark.state == .pending, mark.reportedAt == reportedAt else { continue }
            mark.state = .suspected
            self.set(mark, of: key)
            suspected.append(key)
        }
        self.pending = []
        self.pendingStart = 0
        return suspected
    }

    // MARK: Marks

    private mutating func set(_ mark: Mark, of key: UInt64) {
        let before = self.marks.updateValue(mark, forKey: key)
        if let before { self.counts[before.state, default: 0] -= 1 }
        self.counts[mark.state, default: 0] += 1
        if mark.state == .pending { self.pending.append((key, mark.reportedAt)) }
    }

    private mutating func remove(_ key: UInt64) {
        guard let before = self.marks.removeValue(forKey: key) else { return }
        self.counts[before.state, default: 0] -= 1
    }
}
