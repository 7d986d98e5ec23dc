import Synchronization

/// Which tenants the span that is being written has been entered for, so that most commits enter none.
final class AuditSpanMemory: Sendable {
    /// The tenants of one span.
    struct Entries: Sendable, Hashable {
        private var writer = 0
        private var span = 0
        private var tenants: Set<String> = []

        /// Forgets the tenants when the span is another one.
        mutating func turn(toWriter writer: Int, span: Int) {
            guard (self.writer, self.span) != (writer, span) else { return }
            (self.writer, self.span, self.tenants) = (writer, span, [])
        }

        /// - Returns: whether the tenant is new.
        mutating func insert(_ tenant: String) -> Bool {
            self.tenants.insert(tenant).inserted
        }
    }

    private let state = Mutex(Entries())

    /// What is known to be committed; forgetting costs time, remembering too much would hide records.
    var entries: Entries {
        get { self.state.withLock { $0 } }
        set { self.state.withLock { $0 = newValue } }
    }
}
