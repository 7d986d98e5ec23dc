import Synchronization

/// Which tenants the span that is being written has been entered for, so that most commits enter none.
final class AuditSpanMemory: Sendable {
    /// A tenant, told from others of its name.
    private struct Tenant: Hashable {
        let name: String
        let uid: UInt64
    }

    /// The tenants of one span.
    struct Entries: Sendable, Hashable {
        private var writer = 0
        private var span = 0
        private var tenants: Set<Tenant> = []
        /// Rises whenever what was entered may be gone.
        fileprivate var generation = 0

        /// Forgets the tenants when the span is another one.
        mutating func turn(toWriter writer: Int, span: Int) {
            guard (self.writer, self.span) != (writer, span) else { return }
            (self.writer, self.span, self.tenants) = (writer, span, [])
        }

        /// - Returns: whether the tenant is new.
        mutating func insert(_ tenant: String, uid: UInt64) -> Bool {
            self.tenants.insert(Tenant(name: tenant, uid: uid)).inserted
        }
    }

    private let state = Mutex(Entries())

    /// What is known to be committed; to be asked within the transaction that relies on it.
    var entries: Entries { self.state.withLock { $0 } }

    /// Remembers what a transaction has entered, once it is committed.
    ///
    /// Forgetting costs time, remembering too much would hide records: nothing is remembered from before ``forget()``.
    func remember(_ entries: Entries) {
        self.state.withLock { state in
            if state.generation == entries.generation { state = entries }
        }
    }

    /// Forgets everything; to be called within the transaction that removes what was entered.
    func forget() {
        self.state.withLock { state in
            var entries = Entries()
            entries.generation = state.generation + 1
            state = entries
        }
    }
}
