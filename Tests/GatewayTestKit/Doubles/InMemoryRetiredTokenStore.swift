package import GatewayCore
import Synchronization

/// A list of retired tokens that lives as long as the test, in a store that can refuse. Replicas share it by
/// ``replica(_:)``.
package final class InMemoryRetiredTokenStore: RetiredTokenStore {
    /// One stored entry.
    package struct Entry: Sendable {
        package var owner: RetiredTokenOwner
        package var key: UInt64
        package var token: RetiredToken
        package var reportedAt: Timestamp
        package var replacement: UInt16
        package var position: Int?
    }

    private struct State {
        var entries: [Entry] = []
        var positions: [TenantID: Int] = [:]
        var detectors: [TenantID: SpikeDetector] = [:]
        var refuses = false
        var batches: [Int] = []
        var epoch = "first"
        var changes: [(tenant: TenantID, key: UInt64)] = []
        var counts: [RetiredTokenCount.Counter: RetiredTokenCount] = [:]
        var loads = 0

        var end: RetiredTokenBookmark {
            let place = RetiredTokenBookmark.Place(transaction: 0, number: Int64(self.changes.count))
            return RetiredTokenBookmark(epoch: self.epoch, place: place, horizon: 0)
        }
    }

    /// So few that tests read several pages.
    private static let changesPerPage = 3

    private let state: Observed<State>
    private let replica: String

    package convenience init() {
        self.init(Observed(State()), replica: "")
    }

    private init(_ state: Observed<State>, replica: String) {
        (self.state, self.replica) = (state, replica)
    }

    /// The same store as another replica has it.
    package func replica(_ name: String) -> InMemoryRetiredTokenStore {
        InMemoryRetiredTokenStore(self.state, replica: name)
    }

    /// Makes it another store with the same content.
    package func restore(epoch: String) { self.state.change { $0.epoch = epoch } }

    /// How often everything was read.
    package var loads: Int { self.state.current.loads }

    package var entries: [Entry] { self.state.current.entries }

    package var batches: [Int] { self.state.current.batches }

    package func refuse(_ refuses: Bool = true) { self.state.change { $0.refuses = refuses } }

    package func wait(forEntries count: Int) async throws { try await self.state.wait { $0.entries.count == count } }

    package func load() async throws(GatewayError) -> RetiredTokenContents {
        let state = self.state.change { state in
            state.loads += 1
            return state
        }
        return RetiredTokenContents(
            entries: state.entries.map(Self.entry).sorted { $0.reportedAt < $1.reportedAt },
            detectors: state.detectors,
            counts: self.otherCounts(state),
            bookmark: state.end
        )
    }

    package func changes(since bookmark: RetiredTokenBookmark) async throws(GatewayError) -> RetiredTokenNews? {
        let state = self.state.current
        guard !state.refuses else { throw GatewayError(.storeUnavailable, "The list refuses, as it was told to") }
        guard state.epoch == bookmark.epoch else { return nil }
        let changes = state.changes.enumerated().dropFirst(Int(bookmark.place.number)).prefix(Self.changesPerPage)
            .map { index, change in
                let entry = state.entries.first { $0.owner.tenant == change.tenant && $0.key == change.key }
                return RetiredTokenNews.Change(
                    place: .init(transaction: 0, number: Int64(index + 1)),
                    tenant: change.tenant,
                    key: change.key,
                    entry: entry.map(Self.entry)
                )
            }
        var end = state.end
        if let last = changes.last?.place, last < end.place { (end.place, end.pageEnd) = (last, last) }
        return RetiredTokenNews(
            changes: changes,
            detectors: state.detectors,
            counts: self.otherCounts(state),
            bookmark: end
        )
    }

    private func otherCounts(_ state: State) -> [RetiredTokenCount] {
        state.counts.values.filter { $0.counter.replica != self.replica }
    }

    package func apply(_ changes: [RetiredTokenChange]) async throws(GatewayError) {
        let isDone = self.state.change { state in
            guard !state.refuses else { return false }
            state.batches.append(changes.count)
            for change in changes { self.apply(change, to: &state) }
            return true
        }
        guard isDone else { throw GatewayError(.storeUnavailable, "The list refuses, as it was told to") }
    }

    package func feed(
        of owner: RetiredTokenOwner,
        after cursor: RetiredTokenCursor?,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed {
        let state = self.state.current
        guard cursor == nil || cursor?.epoch == state.epoch else { throw GatewayError(.invalid, "cursor is stale") }
        let position = Int(cursor?.position ?? 0)
        let fed = state.entries.filter { $0.owner.tenant == owner.tenant && $0.position ?? 0 > position }
            .sorted { $0.position ?? 0 < $1.position ?? 0 }
        let shown = fed.prefix(limit)
        return RetiredTokenFeed(
            tokens: shown.map(\.token),
            cursor: RetiredTokenCursor(
                epoch: state.epoch,
                transaction: 0,
                position: Int64(shown.last?.position ?? position)
            ),
            hasMore: fed.count > limit
        )
    }

    package func trim(
        reportedBefore cutoff: Timestamp,
        keeping maxEntries: Int
    ) async throws(GatewayError) -> [RetiredTokenEntry] {
        self.state.change { state in
            let sorted = state.entries.sorted { $0.reportedAt < $1.reportedAt }
            let kept = sorted.filter { $0.reportedAt >= cutoff }.suffix(maxEntries)
            let dropped = sorted.prefix(sorted.count - kept.count)
            state.entries = Array(kept)
            state.changes += dropped.map { (tenant: $0.owner.tenant, key: $0.key) }
            return dropped.map(Self.entry)
        }
    }

    private static func entry(_ entry: Entry) -> RetiredTokenEntry {
        RetiredTokenEntry(
            tenant: entry.owner.tenant,
            key: entry.key,
            state: entry.token.state,
            reportedAt: entry.reportedAt,
            replacement: entry.replacement
        )
    }

    private func apply(_ change: RetiredTokenChange, to state: inout State) {
        state.changes += change.keys.map { (tenant: change.owner.tenant, key: $0) }
        func next(_ owner: RetiredTokenOwner) -> Int {
            state.positions[owner.tenant, default: 0] += 1
            return state.positions[owner.tenant] ?? 0
        }
        func index(_ owner: RetiredTokenOwner, _ key: UInt64) -> Int? {
            state.entries.firstIndex { $0.owner.tenant == owner.tenant && $0.key == key }
        }
        switch change {
        case .put(let owner, let key, var token, let replacement, let keepsSince):
            let reportedAt = token.since
            if let index = index(owner, key) {
                if keepsSince { token.since = state.entries[index].token.since }
                state.entries.remove(at: index)
            }
            let entry = Entry(
                owner: owner,
                key: key,
                token: token,
                reportedAt: reportedAt,
                replacement: replacement,
                position: token.state.isFed ? next(owner) : nil
            )
            state.entries.append(entry)
        case .move(let owner, let keys, let new):
            for key in keys {
                guard let index = index(owner, key), state.entries[index].token.state == .pending else { continue }
                state.entries[index].token.state = new
                state.entries[index].position = new.isFed ? next(owner) : nil
            }
        case .touch(let owner, let key, let time):
            if let index = index(owner, key) { state.entries[index].reportedAt = time }
        case .remove(let owner, let key):
            if let index = index(owner, key) { state.entries.remove(at: index) }
        case .save(let owner, let detector):
            guard state.detectors[owner.tenant]?.transitions ?? 0 <= detector.transitions else { return }
            state.detectors[owner.tenant] = detector
        case .count(let owner, let accepted, let unregistered):
            let counter = RetiredTokenCount.Counter(tenant: owner.tenant, replica: self.replica)
            let before = state.counts[counter]
            state.counts[counter] = RetiredTokenCount(
                counter,
                accepted: accepted + (before?.accepted ?? 0),
                unregistered: unregistered + (before?.unregistered ?? 0)
            )
        }
    }
}
