import Synchronization

/// The directory in memory: the current snapshot, swapped whole.
///
/// Look-ups never touch the store. A request reads ``snapshot`` once and keeps it, so that it sees one picture.
package final class Directory: Sendable {
    private let store: any DirectoryStore
    private let masterKey: MasterKey
    private let auditKey: Secret
    private let defaultLimits: LimitPolicies
    private let current = Mutex(DirectorySnapshot())

    /// A directory that starts empty; call ``reload()`` before serving.
    package init(store: any DirectoryStore, masterKey: MasterKey, auditKey: Secret, defaultLimits: LimitPolicies) {
        self.store = store
        self.masterKey = masterKey
        self.auditKey = auditKey
        self.defaultLimits = defaultLimits
    }

    /// The current picture.
    package var snapshot: DirectorySnapshot {
        self.current.withLock { $0 }
    }

    /// Reads the store and swaps the picture.
    ///
    /// - Throws: `storeUnavailable`; the old picture stays.
    package func reload() async throws(GatewayError) {
        let snapshot = DirectorySnapshot(
            contents: try await self.store.load(),
            after: self.snapshot,
            masterKey: self.masterKey,
            auditKey: self.auditKey,
            defaultLimits: self.defaultLimits
        )
        self.current.withLock { $0 = snapshot }
    }
}
