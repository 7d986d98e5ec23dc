import Synchronization

/// One tenant's table of retired tokens behind a lock, which hands what changes to the writer in its order.
///
/// A tenant without retired tokens pays for a send one look at a number, and one addition.
final class RetiredTokenList: Sendable {
    let owner: RetiredTokenOwner
    private let writer: RetiredTokens.Writer
    private let state: Mutex<RetiredTokenTable>
    /// How many tokens are in the table.
    private let listed = Atomic(0)
    /// Accepted recipients that the detector has not heard of yet.
    private let accepted = Atomic(0)

    init(of owner: RetiredTokenOwner, detector: SpikeDetector, isShared: Bool, writer: RetiredTokens.Writer) {
        (self.owner, self.writer) = (owner, writer)
        self.state = Mutex(RetiredTokenTable(of: owner, detector: detector, isShared: isShared))
    }

    var isEmpty: Bool { self.listed.load(ordering: .relaxed) == 0 }

    var isSpiking: Bool { self.state.withLock { $0.detector.isSpiking } }

    var counts: [RetiredToken.State: Int] {
        self.state.withLock { table in
            Dictionary(uniqueKeysWithValues: RetiredToken.State.allCases.map { ($0, table.count(of: $0)) })
        }
    }

    /// Takes in what was stored, in the order of reports.
    func restore(_ entries: [RetiredTokenEntry]) {
        self.update { ($0.restore(entries), ()) }
    }

    func screen(_ pseudonyms: [Pseudonym], at now: Timestamp) -> RetiredTokenScreening {
        self.state.withLock { table in
            var isListed = false
            var refused: [Bool] = []
            for (index, pseudonym) in pseudonyms.enumerated() {
                switch table.standing(of: pseudonym.high, at: now) {
                case .unknown: continue
                case .listed: isListed = true
                case .refused:
                    if refused.isEmpty { refused = Array(repeating: false, count: pseudonyms.count) }
                    refused[index] = true
                }
            }
            if !refused.isEmpty { return .refused(refused) }
            return isListed ? .listed : .clear
        }
    }

    /// Notes recipients that were accepted and are not on the list.
    func accept(_ count: Int) {
        self.accepted.wrappingAdd(count, ordering: .relaxed)
    }

    /// Takes in what one answer of FCM says; whether a spike began or ended with it.
    func learn(_ reports: [RetiredTokenTable.Report], at now: Timestamp) -> SpikeDetector.Transition {
        self.update { $0.learn(reports, accepted: self.accepted.exchange(0, ordering: .relaxed), at: now) }
    }

    /// Feeds reports that no spike followed within an hour; whether a spike ended.
    func settle(at now: Timestamp) -> SpikeDetector.Transition {
        self.update { $0.settle(accepted: self.accepted.exchange(0, ordering: .relaxed), at: now) }
    }

    func delete(_ key: UInt64) -> Bool {
        self.update { table in
            let change = table.delete(key)
            return (change.map { [$0] } ?? [], change != nil)
        }
    }

    // MARK: Other replicas

    /// Tells the other replicas' detectors of what this one has heard since; whether a spike began or ended.
    func count(at now: Timestamp) -> SpikeDetector.Transition {
        self.update { $0.count(accepted: self.accepted.exchange(0, ordering: .relaxed), at: now) }
    }

    /// Takes in what other replicas have counted.
    func hear(accepted: Int, unregistered: Int, at now: Timestamp) -> SpikeDetector.Transition {
        self.update { $0.observe(accepted: accepted, unregistered: unregistered, at: now) }
    }

    /// Takes the detector of a replica that has been through more.
    func adopt(_ detector: SpikeDetector) -> SpikeDetector.Transition {
        self.update { $0.adopt(detector) }
    }

    /// Takes in what the store has of tokens by now; those of which it has yet to hear are left as they are. Gives the
    /// place of the first that was.
    func follow(_ changes: [RetiredTokenNews.Change]) -> RetiredTokenBookmark.Place? {
        self.update { $0.follow(changes) }
    }

    /// Takes in everything that the store has of this list.
    func reload(_ entries: [RetiredTokenEntry]) {
        self.update { ($0.reload(entries), ()) }
    }

    /// Notes that changes have been written.
    func wrote(_ changes: [RetiredTokenChange]) {
        self.state.withLock { $0.wrote(changes) }
    }

    func forget(_ entries: [RetiredTokenEntry]) {
        self.update { table in
            for entry in entries { table.forget(entry) }
            return ([], ())
        }
    }

    private func update<Result: Sendable>(
        _ body: (inout RetiredTokenTable) -> ([RetiredTokenChange], Result)
    ) -> Result {
        self.state.withLock { table in
            let (changes, result) = body(&table)
            table.willWrite(changes)
            self.listed.store(table.count, ordering: .relaxed)
            // Under the lock, so that the store hears of changes in the order in which the table made them.
            self.writer.add(changes)
            return result
        }
    }
}

/// Which of one tenant's tokens are retired, and what each of FCM's answers changes about it (decision 0016).
///
/// Tokens are known by the first 64 bits of their pseudonyms, 16 bytes for each with its mark. Pure: the caller
/// supplies the time and stores what changed.
struct RetiredTokenTable {
    /// What is known of a retired token.
    struct Mark: Hashable {
        var state: RetiredToken.State
        /// Some bits of the replacement's pseudonym, by which another replacement is noticed.
        var replacement: UInt16 = 0
        /// When FCM last reported it, in seconds since 1970.
        var reportedAt: UInt32
    }

    /// How a token stands before a send.
    enum Standing: Hashable {
        case unknown
        /// It is on the list and may be sent to.
        case listed
        case refused
    }

    /// What FCM said of one recipient.
    struct Report: Sendable {
        enum Evidence: Hashable {
            case alive
            case dead
            /// Alive, and known by another token, given with some bits of its pseudonym.
            case replaced(by: String, UInt16)
        }

        var key: UInt64
        var kind: RetiredToken.Kind
        var text: String
        var evidence: Evidence
    }

    /// For how long a report makes the gateway refuse a token itself.
    private static let refusalSeconds = 86_400
    /// For how long a report waits for a spike to show before it is fed.
    private static let holdSeconds = 3_600
    /// A report this far in the future is taken for one of the present: clocks are corrected now and then.
    private static let clockToleranceSeconds = 3_600
    /// How often a repeated report is written at most.
    private static let touchSeconds = 86_400
    /// The most tokens of one change, so that no transaction takes long.
    private static let keysPerChange = 500

    private let owner: RetiredTokenOwner
    private var marks: [UInt64: Mark] = [:]
    /// Pending tokens in the order of their reports; entries whose token has another mark by now mean nothing.
    private var pending: [(key: UInt64, reportedAt: UInt32)] = []
    private var pendingStart = 0
    private var counts: [RetiredToken.State: Int] = [:]
    private(set) var detector: SpikeDetector
    /// The detector as the store was last given it.
    private var savedDetector: SpikeDetector
    /// Whether other replicas change the list too.
    private let isShared: Bool
    /// How many changes of a token wait to be written; only where the list is shared.
    private var unwritten: [UInt64: Int] = [:]
    /// What the other replicas' detectors have not been told of; only where the list is shared.
    private var uncounted = (accepted: 0, unregistered: 0)

    init(of owner: RetiredTokenOwner, detector: SpikeDetector, isShared: Bool = false) {
        (self.owner, self.detector, self.savedDetector) = (owner, detector, detector)
        self.isShared = isShared
    }

    var count: Int { self.marks.count }

    func count(of state: RetiredToken.State) -> Int { self.counts[state] ?? 0 }

    func mark(of key: UInt64) -> Mark? { self.marks[key] }

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

    /// Takes in what was stored, in the order of reports.
    ///
    /// What was pending when a spike was noticed is suspected, even if the store had no time to learn of it.
    mutating func restore(_ entries: [RetiredTokenEntry]) -> [RetiredTokenChange] {
        let suspected = entries.filter { self.restore($0) }
        return self.moves(of: suspected.map(\.key), to: .suspected)
    }

    /// Takes in what was stored of a token; whether it is suspected because of that.
    private mutating func restore(_ entry: RetiredTokenEntry) -> Bool {
        var mark = Mark(
            state: entry.state,
            replacement: entry.replacement,
            reportedAt: UInt32(clamping: entry.reportedAt.seconds)
        )
        let isSuspected = mark.state == .pending && self.detector.isSpiking
        if isSuspected { mark.state = .suspected }
        if self.marks[entry.key] != mark { self.set(mark, of: entry.key) }
        return isSuspected
    }

    /// Takes in what one answer of FCM says of tokens that are on the list or are to be put there, and how many other
    /// recipients were accepted.
    mutating func learn(
        _ reports: [Report],
        accepted: Int,
        at now: Timestamp
    ) -> ([RetiredTokenChange], SpikeDetector.Transition) {
        let (alive, dead) = self.tally(reports)
        let (observed, transition) = self.observe(accepted: accepted + alive, unregistered: dead, at: now)
        var changes = observed
        if self.isShared {
            self.uncounted.accepted += accepted + alive
            self.uncounted.unregistered += dead
            // What is accepted can wait for the next poll.
            if dead > 0 { changes += self.countings() }
        }
        for report in reports {
            if let change = self.note(report, at: now) { changes.append(change) }
        }
        return (changes, transition)
    }

    /// Has the detector observe what this replica or another one heard.
    mutating func observe(
        accepted: Int,
        unregistered: Int,
        at now: Timestamp
    ) -> ([RetiredTokenChange], SpikeDetector.Transition) {
        let transition = self.detector.note(accepted: accepted, unregistered: unregistered, at: now)
        var changes: [RetiredTokenChange] = []
        if transition != .none { changes.append(self.savingDetector()) }
        if transition == .began { changes += self.moves(of: self.suspectPending(), to: .suspected) }
        return (changes, transition)
    }

    /// Feeds reports that no spike followed within an hour, in their order.
    mutating func settle(accepted: Int, at now: Timestamp) -> ([RetiredTokenChange], SpikeDetector.Transition) {
        let (learned, transition) = self.learn([], accepted: accepted, at: now)
        var changes = learned + self.moves(of: self.settlePending(at: now), to: .unregistered)
        if self.detector != self.savedDetector { changes.append(self.savingDetector()) }
        return (changes, transition)
    }

    /// Forgets a token that the store has dropped, unless it was reported again since.
    mutating func forget(_ entry: RetiredTokenEntry) {
        guard let mark = self.marks[entry.key], mark.reportedAt <= UInt32(clamping: entry.reportedAt.seconds) else {
            return
        }
        self.remove(entry.key)
    }

    /// Takes a token off the list, whatever its state; `nil` where it was not there.
    mutating func delete(_ key: UInt64) -> RetiredTokenChange? {
        guard self.marks[key] != nil else { return nil }
        self.remove(key)
        return .remove(self.owner, key)
    }

    // MARK: Other replicas

    /// Observes what was accepted since, and tells the other replicas' detectors of what they have not been told of.
    mutating func count(accepted: Int, at now: Timestamp) -> ([RetiredTokenChange], SpikeDetector.Transition) {
        let (changes, transition) = accepted > 0 ? self.learn([], accepted: accepted, at: now) : ([], .none)
        return (changes + self.countings(), transition)
    }

    private mutating func countings() -> [RetiredTokenChange] {
        defer { self.uncounted = (0, 0) }
        let (accepted, unregistered) = self.uncounted
        guard accepted + unregistered > 0 else { return [] }
        return [.count(self.owner, accepted: accepted, unregistered: unregistered)]
    }

    /// Takes the detector of a replica that has been through more, and suspects what is pending if it saw a spike begin.
    mutating func adopt(_ other: SpikeDetector) -> ([RetiredTokenChange], SpikeDetector.Transition) {
        guard other.transitions > self.detector.transitions else { return ([], .none) }
        let wasSpiking = self.detector.isSpiking
        (self.detector, self.savedDetector) = (other, other)
        guard other.isSpiking != wasSpiking else { return ([], .none) }
        guard other.isSpiking else { return ([], .ended) }
        return (self.moves(of: self.suspectPending(), to: .suspected), .began)
    }

    /// Takes in what the store has of tokens by now, but for those whose own changes wait to be written; the place of
    /// the first of these.
    mutating func follow(
        _ changes: [RetiredTokenNews.Change]
    ) -> ([RetiredTokenChange], RetiredTokenBookmark.Place?) {
        var held: RetiredTokenBookmark.Place?
        var suspected: [UInt64] = []
        for change in changes {
            guard self.unwritten[change.key] == nil else {
                held = held ?? change.place
                continue
            }
            guard let entry = change.entry else {
                self.remove(change.key)
                continue
            }
            if self.restore(entry) { suspected.append(change.key) }
        }
        return (self.moves(of: suspected, to: .suspected), held)
    }

    /// Takes in everything that is stored, but for tokens whose own changes wait to be written.
    mutating func reload(_ entries: [RetiredTokenEntry]) -> [RetiredTokenChange] {
        let stored = Set(entries.map(\.key))
        let gone = self.marks.keys.filter { !stored.contains($0) && self.unwritten[$0] == nil }
        for key in gone { self.remove(key) }
        return self.restore(entries.filter { self.unwritten[$0.key] == nil })
    }

    mutating func willWrite(_ changes: [RetiredTokenChange]) {
        guard self.isShared else { return }
        for change in changes {
            for key in change.keys { self.unwritten[key, default: 0] += 1 }
        }
    }

    mutating func wrote(_ changes: [RetiredTokenChange]) {
        for change in changes {
            for key in change.keys {
                let rest = (self.unwritten[key] ?? 0) - 1
                self.unwritten[key] = rest > 0 ? rest : nil
            }
        }
    }

    // MARK: Reports

    /// Counts what the detector is to hear: each dead token once, and none that was known to be dead.
    private func tally(_ reports: [Report]) -> (alive: Int, dead: Int) {
        var alive = 0
        var dead: Set<UInt64> = []
        for report in reports {
            switch report.evidence {
            case .alive, .replaced:
                alive += 1
            case .dead:
                switch self.marks[report.key]?.state {
                case nil, .suspected, .replaced: dead.insert(report.key)
                case .pending, .unregistered: break
                }
            }
        }
        return (alive, dead.count)
    }

    private mutating func note(_ report: Report, at now: Timestamp) -> RetiredTokenChange? {
        let known = self.marks[report.key]
        switch report.evidence {
        case .dead:
            let state: RetiredToken.State = self.detector.isSpiking ? .suspected : .pending
            switch known?.state {
            case nil, .replaced: return self.put(report, state, keepsSince: false, at: now)
            case .suspected where state == .pending: return self.put(report, state, keepsSince: true, at: now)
            case .suspected, .unregistered: return self.touch(report.key, at: now)
            // An answer that was on its way when the first report came.
            case .pending: return nil
            }
        case .replaced(_, let bits):
            if let known, known.state == .replaced, known.replacement == bits {
                return self.touch(report.key, at: now)
            }
            return self.put(report, .replaced, keepsSince: false, at: now)
        case .alive:
            switch known?.state {
            // That a replaced token still works is no news.
            case nil, .replaced: return nil
            case .pending, .unregistered, .suspected: return self.delete(report.key)
            }
        }
    }

    private mutating func put(
        _ report: Report,
        _ state: RetiredToken.State,
        keepsSince: Bool,
        at now: Timestamp
    ) -> RetiredTokenChange {
        var (replacement, bits): (String?, UInt16) = (nil, 0)
        if case .replaced(let text, let textBits) = report.evidence { (replacement, bits) = (text, textBits) }
        self.set(Mark(state: state, replacement: bits, reportedAt: UInt32(clamping: now.seconds)), of: report.key)
        var token = RetiredToken(kind: report.kind, text: report.text, state: state, since: now)
        token.replacement = replacement
        return .put(self.owner, report.key, token, replacement: bits, keepsSince: keepsSince)
    }

    /// Notes a report of a token that is on the list already; one of a dead token starts its day anew.
    private mutating func touch(_ key: UInt64, at now: Timestamp) -> RetiredTokenChange? {
        let seconds = UInt32(clamping: now.seconds)
        guard var mark = self.marks[key] else { return nil }
        guard seconds < mark.reportedAt || seconds - mark.reportedAt >= Self.touchSeconds else { return nil }
        mark.reportedAt = seconds
        self.set(mark, of: key)
        return .touch(self.owner, key, at: now)
    }

    // MARK: Pending tokens

    /// The tokens whose hour is over, in the order of their reports; they are unregistered now.
    private mutating func settlePending(at now: Timestamp) -> [UInt64] {
        var due: [UInt64] = []
        while self.pendingStart < self.pending.count {
            let (key, reportedAt) = self.pending[self.pendingStart]
            let age = now.seconds - Int(reportedAt)
            // A report from far in the future waits no longer than any other, once the clock is right again.
            guard age >= Self.holdSeconds || age < -Self.clockToleranceSeconds else { break }
            self.pendingStart += 1
            if self.move(key, reportedAt, to: .unregistered) { due.append(key) }
        }
        if self.pendingStart > 1_024, self.pendingStart * 2 > self.pending.count {
            self.pending.removeFirst(self.pendingStart)
            self.pendingStart = 0
        }
        return due
    }

    /// The tokens that were pending, in the order of their reports; they are suspected now.
    private mutating func suspectPending() -> [UInt64] {
        let waiting = self.pending[self.pendingStart...]
        (self.pending, self.pendingStart) = ([], 0)
        return waiting.compactMap { self.move($0.key, $0.reportedAt, to: .suspected) ? $0.key : nil }
    }

    /// Moves a token that is still pending since a report.
    private mutating func move(_ key: UInt64, _ reportedAt: UInt32, to state: RetiredToken.State) -> Bool {
        guard var mark = self.marks[key], mark.state == .pending, mark.reportedAt == reportedAt else { return false }
        mark.state = state
        self.set(mark, of: key)
        return true
    }

    // MARK: Changes and marks

    private func moves(of keys: [UInt64], to state: RetiredToken.State) -> [RetiredTokenChange] {
        stride(from: 0, to: keys.count, by: Self.keysPerChange)
            .map { start in
                .move(self.owner, Array(keys[start..<min(start + Self.keysPerChange, keys.count)]), to: state)
            }
    }

    private mutating func savingDetector() -> RetiredTokenChange {
        self.savedDetector = self.detector
        return .save(self.owner, self.detector)
    }

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
