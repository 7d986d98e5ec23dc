package import GatewayCore
import Synchronization

/// A list of retired tokens that lives as long as the test, in a store that can refuse.
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
    }

    private let state = Observed(State())

    package init() {}

    package var entries: [Entry] { self.state.current.entries }

    package var batches: [Int] { self.state.current.batches }

    package func refuse(_ refuses: Bool = true) { self.state.change { $0.refuses = refuses } }

    package func wait(forEntries count: Int) async throws { try await self.state.wait { $0.entries.count == count } }

    package func load() async throws(GatewayError) -> RetiredTokenContents {
        let state = self.state.current
        return (
            entries: state.entries.map(Self.entry).sorted { $0.reportedAt < $1.reportedAt },
            detectors: state.detectors
        )
    }

    package func apply(_ changes: [RetiredTokenChange]) async throws(GatewayError) {
        let isDone = self.state.change { state in
            guard !state.refuses else { return false }
            state.batches.append(changes.count)
            for change in changes { Self.apply(change, to: &state) }
            return true
        }
        guard isDone else { throw GatewayError(.storeUnavailable, "The list refuses, as it was told to") }
    }

    package func feed(
        of owner: RetiredTokenOwner,
        after position: Int,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed {
        let fed = self.state.current.entries.filter { $0.owner.tenant == owner.tenant && $0.position ?? 0 > position }
            .sorted { $0.position ?? 0 < $1.position ?? 0 }
        let shown = fed.prefix(limit)
        return RetiredTokenFeed(
            tokens: shown.map(\.token),
            position: shown.last?.position ?? position,
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

    private static func apply(_ change: RetiredTokenChange, to state: inout State) {
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
                guard let index = index(owner, key) else { continue }
                state.entries[index].token.state = new
                state.entries[index].position = new.isFed ? next(owner) : nil
            }
        case .touch(let owner, let key, let time):
            if let index = index(owner, key) { state.entries[index].reportedAt = time }
        case .remove(let owner, let key):
            if let index = index(owner, key) { state.entries.remove(at: index) }
        case .save(let owner, let detector):
            state.detectors[owner.tenant] = detector
        }
    }
}
