package import GatewayCore
import GatewayStorage
import Synchronization

/// Retired tokens in SQLite, with the sizes of transactions.
package final class TestRetiredTokenStore: RetiredTokenStore {
    package let database: TestDatabase
    private let store: SQLRetiredTokenStore
    private let sizes = Mutex<[Int]>([])

    package init(in database: TestDatabase) {
        self.database = database
        self.store = SQLRetiredTokenStore(database: database)
    }

    /// Creates a sample database that uses this clock.
    package convenience init(clock: any WallClock) { self.init(in: .sample(clock: clock)) }

    /// Gives the store a new epoch, as a restored backup gets.
    package func renewEpoch() async throws {
        try await self.database.write(scope: .gateway, isolation: .serializable) { try StoreEpoch.renew($0) }
    }

    package func entries() async throws(GatewayError) -> [RetiredToken.Entry] { try await self.store.load().entries }

    /// The number of changes in each transaction.
    package var batches: [Int] { self.sizes.withLock { $0 } }

    package func refuse(_ refuses: Bool = true) { self.database.refuse(refuses) }

    package func wait(forEntries count: Int) async throws {
        while true {
            let writes = self.database.writes
            if try await self.entries().count == count { return }
            try await self.database.wait { $0.writes > writes }
        }
    }

    package func load() async throws(GatewayError) -> (entries: [RetiredToken.Entry], readAt: Timestamp) {
        try await self.store.load()
    }

    package func apply(_ changes: [RetiredToken.Change]) async throws(GatewayError) {
        try await self.store.apply(changes)
        self.sizes.withLock { $0.append(changes.count) }
    }

    package func remove(_ key: UInt64, of owner: RetiredToken.Owner) async throws(GatewayError) -> Bool {
        try await self.store.remove(key, of: owner)
    }

    package func settle(newsSince moment: Timestamp) async throws(GatewayError) -> RetiredTokenFeed.News {
        try await self.store.settle(newsSince: moment)
    }

    package func feed(
        of owner: RetiredToken.Owner,
        after cursor: RetiredTokenFeed.Cursor?,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed {
        try await self.store.feed(of: owner, after: cursor, limit: limit)
    }

    package func trim(reportedBefore cutoff: Timestamp, keeping maxEntries: Int) async throws(GatewayError) {
        try await self.store.trim(reportedBefore: cutoff, keeping: maxEntries)
    }
}
