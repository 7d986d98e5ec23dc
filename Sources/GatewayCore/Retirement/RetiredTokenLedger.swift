import Synchronization

/// One tenant's book of retired tokens behind a lock.
///
/// A tenant without retired tokens pays for a send one look at a number, and one addition.
final class RetiredTokenLedger: Sendable {
    private struct State {
        var book: RetiredTokenBook
        /// The guard as it was last handed to the store.
        var keptGuard: PurgeGuard
    }

    /// The most tokens of one change, so that no transaction takes long.
    private static let keysPerChange = 500

    /// Whose book it is.
    let owner: RetiredTokenOwner
    /// Seals the tokens' texts.
    let sealer: RetiredTokenSealer
    private let queue: RetiredTokenQueue
    private let state: Mutex<State>
    /// How many tokens are in the book.
    private let listed = Atomic(0)
    /// Accepted recipients that the guard has not heard of yet.
    private let accepted = Atomic(0)

    /// An empty book, or one whose entries are restored afterwards.
    init(of profile: TenantProfile, purgeGuard: PurgeGuard, queue: RetiredTokenQueue) {
        self.owner = RetiredTokenOwner(profile)
        self.sealer = RetiredTokenSealer(of: profile)
        self.queue = queue
        self.state = Mutex(State(book: RetiredTokenBook(purgeGuard: purgeGuard), keptGuard: purgeGuard))
    }

    /// Whether no token is in the book.
    var isEmpty: Bool { self.listed.load(ordering: .relaxed) == 0 }

    /// Whether reports are held back.
    var isJumping: Bool { self.state.withLock { $0.book.purgeGuard.isJumping } }

    /// How many tokens are in each state.
    var counts: [RetiredTokenState: Int] {
        self.state.withLock { state in
            Dictionary(uniqueKeysWithValues: RetiredTokenState.allCases.map { ($0, state.book.count(of: $0)) })
        }
    }

    /// Takes in what was stored, in the order of reports.
    func restore(_ entries: [RetiredTokenEntry]) {
        self.update { state in
            var suspected: [UInt64] = []
            for entry in entries {
                let mark = RetiredTokenBook.Mark(
                    state: entry.state,
                    replacement: entry.replacement,
                    reportedAt: UInt32(clamping: entry.reportedAt.seconds)
                )
                if state.book.restore(entry.key, mark) != entry.state { suspected.append(entry.key) }
            }
            self.queue.append(self.moves(of: suspected, to: .suspected))
        }
    }

    /// How a send's recipients stand.
    func screen(_ pseudonyms: [Pseudonym], at now: Timestamp) -> RetiredTokenScreening {
        self.state.withLock { state in
            var isListed = false
            var refused: [Bool] = []
            for (index, pseudonym) in pseudonyms.enumerated() {
                switch state.book.standing(of: pseudonym.high, at: now) {
                case .unknown:
                    continue
                case .listed:
                    isListed = true
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

    /// Takes in one answer of FCM's and hands what changed to the queue.
    ///
    /// - Returns: whether a jump began or ended.
    func learn(_ reports: [RetiredTokenReport], at now: Timestamp) -> PurgeGuard.Transition {
        self.update { state in
            let accepted = self.accepted.exchange(0, ordering: .relaxed)
            let lesson = state.book.learn(reports.map(\.finding), accepted: accepted, at: now)
            var drafts: [RetiredTokenDraft] = []
            if lesson.transition != .none { drafts.append(self.keepGuard(&state)) }
            drafts += self.moves(of: lesson.suspected, to: .suspected)
            for (report, note) in zip(reports, lesson.notes) {
                switch note {
                case nil:
                    continue
                case .put(let new):
                    drafts.append(.put(report, new, keepsSince: false, at: now, in: self))
                case .putKeepingSince(let new):
                    drafts.append(.put(report, new, keepsSince: true, at: now, in: self))
                case .touch:
                    drafts.append(.ready(.touch(self.owner, report.finding.key, at: now)))
                case .remove:
                    drafts.append(.ready(.remove(self.owner, report.finding.key)))
                }
            }
            // Under the book's lock, so that the store hears of changes in the order in which the book made them.
            self.queue.append(drafts)
            return lesson.transition
        }
    }

    /// Ends the waiting of reports that no jump followed.
    ///
    /// - Returns: whether a jump ended.
    func settle(at now: Timestamp) -> PurgeGuard.Transition {
        self.update { state in
            let accepted = self.accepted.exchange(0, ordering: .relaxed)
            let lesson = state.book.learn([], accepted: accepted, at: now)
            var drafts = self.moves(of: state.book.settle(at: now), to: .unregistered)
            if state.book.purgeGuard != state.keptGuard { drafts.append(self.keepGuard(&state)) }
            self.queue.append(drafts)
            return lesson.transition
        }
    }

    /// Takes a token off the list and hands that to the queue.
    ///
    /// - Returns: whether it was there.
    func delete(_ key: UInt64) -> Bool {
        self.update { state in
            guard state.book.delete(key) else { return false }
            self.queue.append([.ready(.remove(self.owner, key))])
            return true
        }
    }

    /// Forgets what the store has dropped.
    func forget(_ entries: [RetiredTokenEntry]) {
        self.update { state in
            for entry in entries {
                state.book.forget(entry.key, reportedUpTo: UInt32(clamping: entry.reportedAt.seconds))
            }
        }
    }

    private func moves(of keys: [UInt64], to state: RetiredTokenState) -> [RetiredTokenDraft] {
        stride(from: 0, to: keys.count, by: Self.keysPerChange)
            .map { start in
                let end = min(start + Self.keysPerChange, keys.count)
                return .ready(.move(self.owner, Array(keys[start..<end]), to: state))
            }
    }

    private func keepGuard(_ state: inout State) -> RetiredTokenDraft {
        state.keptGuard = state.book.purgeGuard
        return .ready(.keepGuard(self.owner, state.keptGuard))
    }

    private func update<Result>(_ body: (inout State) -> Result) -> Result {
        self.state.withLock { state in
            defer { self.listed.store(state.book.count, ordering: .relaxed) }
            return body(&state)
        }
    }
}
