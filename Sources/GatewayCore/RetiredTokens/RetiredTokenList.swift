import Synchronization

/// One tenant's table of retired tokens, behind a lock. Passes its changes to the writer in their order.
///
/// For a tenant without retired tokens, a send reads one number and adds to another.
final class RetiredTokenList: Sendable {
    private struct State {
        var table: Table
        /// Changes that wait for the writer.
        var outbox: [RetiredToken.Change] = []
        /// True while a thread passes the outbox to the writer.
        var isHandingOver = false

        mutating func takeOutbox() -> [RetiredToken.Change]? {
            guard !self.outbox.isEmpty else {
                self.isHandingOver = false
                return nil
            }
            defer { self.outbox = [] }
            return self.outbox
        }
    }

    let owner: RetiredToken.Owner
    private let writer: RetiredTokens.Writer
    private let state: Mutex<State>
    /// The number of tokens in the table.
    private let listed = Atomic(0)
    /// Accepted recipients that the table has not counted yet.
    private let accepted = Atomic(0)

    init(of owner: RetiredToken.Owner, writer: RetiredTokens.Writer) {
        self.owner = owner
        self.writer = writer
        self.state = Mutex(State(table: Table(of: owner)))
    }

    var isEmpty: Bool { self.listed.load(ordering: .relaxed) == 0 }

    var isSpiking: Bool { self.state.withLock { $0.table.isSpiking } }

    var counts: [RetiredToken.State: Int] { self.state.withLock { $0.table.counts } }

    func report(on key: UInt64) -> (state: RetiredToken.State, at: Timestamp)? {
        self.state.withLock { $0.table.mark(of: key) }
            .map { ($0.state, Timestamp(microseconds: Int64($0.reportedAt) * 1_000_000)) }
    }

    func screen(_ pseudonyms: [Pseudonym], at now: Timestamp) -> RetiredTokens.Screening {
        self.state.withLock { state in
            var isListed = false
            var refused: [Bool] = []
            for (index, pseudonym) in pseudonyms.enumerated() {
                switch state.table.standing(of: pseudonym.high, at: now) {
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

    /// Counts recipients that were accepted and are not on the list.
    func accept(_ count: Int) {
        self.accepted.wrappingAdd(count, ordering: .relaxed)
    }

    /// Learns from one answer of FCM.
    func learn(_ reports: [Table.Report], at now: Timestamp) {
        self.update { table, outbox in outbox += table.learn(reports, accepted: self.takeAccepted(), at: now) }
    }

    /// Counts dead recipients whose reports are dropped.
    func countDead(_ count: Int) {
        self.update { table, _ in table.countDead(count) }
    }

    /// Queues the count of recipients judged since the last one.
    func count() {
        self.update { table, outbox in outbox += table.count(accepted: self.takeAccepted()) }
    }

    /// Takes over tokens as they are in the store.
    func restore(_ entries: [RetiredToken.Entry]) {
        // In parts, so that sends need not wait long for the lock.
        for start in stride(from: 0, to: entries.count, by: 1_000) {
            self.update { table, _ in table.restore(entries[start...].prefix(1_000)) }
        }
    }

    /// Forgets a token that left the list in the store.
    func forget(_ key: UInt64) {
        self.update { table, _ in table.forget(key) }
    }

    /// Notes whether the last hour is a spike. Returns false if that was known.
    func setSpiking(_ isSpiking: Bool) -> Bool {
        self.update { table, _ in table.setSpiking(isSpiking) }
    }

    private func takeAccepted() -> Int { self.accepted.exchange(0, ordering: .relaxed) }

    private func update<Result: Sendable>(_ body: (inout Table, inout [RetiredToken.Change]) -> Result) -> Result {
        let (result, handsOver) = self.state.withLock { state in
            let result = body(&state.table, &state.outbox)
            self.listed.store(state.table.count, ordering: .relaxed)
            guard !state.outbox.isEmpty, !state.isHandingOver else { return (result, false) }
            state.isHandingOver = true
            return (result, true)
        }
        // One thread at a time, so that the writer gets changes in the order in which the table made them.
        if handsOver {
            while let changes = self.state.withLock({ $0.takeOutbox() }) { self.writer.add(changes) }
        }
        return result
    }
}

extension RetiredTokenList {
    /// The tokens of one tenant that this replica knows to be retired, and how each of FCM's answers changes them
    /// (decision 0016).
    ///
    /// It decides which tokens the replica refuses and which reports the store gets. The store decides which tokens are
    /// fed. A token is known by the first 64 bits of its pseudonym, and needs 16 bytes with its mark. Pure: the caller
    /// supplies the time and stores the changes.
    struct Table {
        /// The state of a retired token.
        struct Mark: Hashable {
            var state: RetiredToken.State
            /// Some bits of the replacement's pseudonym, which tell replacements apart.
            var replacement: UInt16 = 0
            /// The time of FCM's last report, in seconds since 1970.
            var reportedAt: UInt32
        }

        /// The standing of a token before a send.
        enum Standing: Hashable {
            case unknown
            /// On the list, and may be sent to.
            case listed
            case refused
        }

        /// FCM's report on one recipient.
        struct Report: Sendable {
            enum Evidence: Hashable {
                case alive
                case dead
                /// Alive, and known by another token. Holds that token and some bits of its pseudonym.
                case replaced(by: String, UInt16)
            }

            var key: UInt64
            var kind: RetiredToken.Kind
            var text: String
            var evidence: Evidence
        }

        /// The time for which the gateway itself refuses a reported token.
        private static let refusalSeconds = 86_400
        /// A report up to this far in the future counts as one of the present, because clocks are corrected now and
        /// then.
        private static let clockToleranceSeconds = 3_600
        /// The shortest time between two stored reports of a token.
        private static let repeatSeconds = 86_400

        private let owner: RetiredToken.Owner
        private var marks: [UInt64: Mark] = [:]
        private(set) var counts = Dictionary(uniqueKeysWithValues: RetiredToken.State.allCases.map { ($0, 0) })
        private(set) var isSpiking = false
        /// Judged recipients that the store has not counted.
        private var tally = RetiredTokenCounts.Tally()

        init(of owner: RetiredToken.Owner) {
            self.owner = owner
        }

        var count: Int { self.marks.count }

        func mark(of key: UInt64) -> Mark? { self.marks[key] }

        func standing(of key: UInt64, at now: Timestamp) -> Standing {
            guard let mark = self.marks[key] else { return .unknown }
            switch mark.state {
            case .suspected, .replaced:
                return .listed
            case .unregistered:
                let age = now.seconds - Int(mark.reportedAt)
                return (-Self.clockToleranceSeconds..<Self.refusalSeconds).contains(age) ? .refused : .listed
            }
        }

        /// Takes over tokens as they are in the store.
        ///
        /// A change of this replica that is not stored yet may be undone by that. The next reading brings it back.
        mutating func restore(_ entries: some Sequence<RetiredToken.Entry>) {
            for entry in entries {
                guard let state = entry.state else {
                    self.forget(entry.key)
                    continue
                }
                let seconds = UInt32(clamping: entry.reportedAt.seconds)
                self.set(Mark(state: state, replacement: entry.replacement, reportedAt: seconds), of: entry.key)
            }
        }

        /// Takes a token off the list in memory.
        mutating func forget(_ key: UInt64) {
            if let before = self.marks.removeValue(forKey: key) { self.counts[before.state, default: 0] -= 1 }
        }

        /// Notes whether the last hour is a spike. Returns false if that was known.
        mutating func setSpiking(_ isSpiking: Bool) -> Bool {
            defer { self.isSpiking = isSpiking }
            return isSpiking != self.isSpiking
        }

        /// Learns what one answer of FCM says of tokens that are on the list or are to be put there, and how many other
        /// recipients were accepted.
        ///
        /// The count comes before the reports, so that no report is stored without the count that it belongs to.
        mutating func learn(_ reports: [Report], accepted: Int, at now: Timestamp) -> [RetiredToken.Change] {
            let changes = reports.compactMap { self.note($0, at: now) }
            return self.count(accepted: accepted) + changes
        }

        /// Counts dead recipients whose reports are dropped.
        mutating func countDead(_ count: Int) {
            self.tally += RetiredTokenCounts.Tally(judged: count, unregistered: count)
        }

        /// Returns the count of the recipients judged since the last one.
        mutating func count(accepted: Int) -> [RetiredToken.Change] {
            self.tally += RetiredTokenCounts.Tally(judged: accepted)
            guard self.tally.judged > 0 else { return [] }
            defer { self.tally = RetiredTokenCounts.Tally() }
            return [.count(self.owner, self.tally)]
        }

        private mutating func note(_ report: Report, at now: Timestamp) -> RetiredToken.Change? {
            let known = self.marks[report.key]
            switch report.evidence {
            case .alive:
                self.tally += RetiredTokenCounts.Tally(judged: 1)
                // A replaced token still works.
                guard let known, known.state != .replaced else { return nil }
                self.forget(report.key)
                return .remove(self.owner, report.key)
            case .dead:
                var state = RetiredToken.State.unregistered
                // One caller that repeats one dead token is no spike.
                if known?.state != .unregistered {
                    self.tally += RetiredTokenCounts.Tally(judged: 1, unregistered: 1)
                    if self.isSpiking { state = .suspected }
                }
                if let known, known.state == state, Self.isRecent(known, at: now) { return nil }
                return self.put(report, state, at: now)
            case .replaced(_, let bits):
                self.tally += RetiredTokenCounts.Tally(judged: 1)
                if let known, known.state == .replaced, known.replacement == bits, Self.isRecent(known, at: now) {
                    return nil
                }
                return self.put(report, .replaced, at: now)
            }
        }

        private mutating func put(
            _ report: Report,
            _ state: RetiredToken.State,
            at now: Timestamp
        ) -> RetiredToken.Change {
            var mark = Mark(state: state, reportedAt: UInt32(clamping: now.seconds))
            // The store decides which tokens are suspected.
            var token = RetiredToken(kind: report.kind, text: report.text, state: .unregistered, since: now)
            if case .replaced(let text, let bits) = report.evidence {
                mark.replacement = bits
                token.state = .replaced
                token.replacement = text
            }
            self.set(mark, of: report.key)
            return .report(self.owner, report.key, token, replacement: mark.replacement)
        }

        /// True if a repeated report need not be stored yet.
        private static func isRecent(_ mark: Mark, at now: Timestamp) -> Bool {
            (0..<Self.repeatSeconds).contains(now.seconds - Int(mark.reportedAt))
        }

        private mutating func set(_ mark: Mark, of key: UInt64) {
            if let before = self.marks.updateValue(mark, forKey: key) { self.counts[before.state, default: 0] -= 1 }
            self.counts[mark.state, default: 0] += 1
        }
    }
}
