/// How far the chain has got in the store and in the spool, and so where the next records go; known to the writer's task
/// alone.
struct AuditWriterState: Sendable {
    enum Phase: Sendable, Hashable {
        /// The store has everything and gets the next records. Next: `spooling`.
        case direct
        /// The store lacks what the spool holds, or has taken nothing since it refused. Next: `direct`.
        case spooling(isStoreWell: Bool)
    }

    private(set) var phase = Phase.direct
    /// The chain's end: what is before it is durable.
    private(set) var tail: AuditChain
    /// The chain's end as far as the store is known to have it.
    private(set) var stored: AuditChain
    /// The end of the spool.
    var end = AuditSpool.End()
    /// How far the store was given the spool's content.
    var cursor = AuditSpoolCursor()
    /// Whether the spool could not be emptied, so that nothing can follow in it.
    var isSpoolStuck = false
    /// Commits up to this number wait for the delivery under way.
    var awaited = 0

    /// A chain that the store has.
    init(chain: AuditChain) {
        self.tail = chain
        self.stored = chain
    }

    /// Whether records go straight to the store.
    var isDirect: Bool { self.phase == .direct }

    /// Whether the store took what it was given last.
    var isStoreWell: Bool { self.phase == .direct || self.phase == .spooling(isStoreWell: true) }

    /// How many records the spool has and the store has not.
    var lag: Int { max(0, self.tail.sequence - self.stored.sequence) }

    /// The store took everything up to an end.
    mutating func storeTook(_ end: AuditChain) {
        self.stored = end
        switch self.phase {
        case .direct: self.tail = end
        case .spooling: self.phase = .spooling(isStoreWell: true)
        }
    }

    /// The store refused what it was given from the spool.
    mutating func storeRefused() {
        if case .spooling = self.phase { self.phase = .spooling(isStoreWell: false) }
    }

    /// The spool took everything up to an end.
    mutating func spoolTook(_ end: AuditChain) {
        self.tail = end
        if self.phase == .direct { self.phase = .spooling(isStoreWell: false) }
    }

    /// Goes back to the store if it has everything; whether it has, so that the spool can be emptied.
    mutating func returnIfCaughtUp() -> Bool {
        guard self.phase == .spooling(isStoreWell: true), self.lag == 0 else { return false }
        self.phase = .direct
        return true
    }

    /// Goes back to the store without what the spool held; how many records are lost.
    mutating func abandonSpool() -> Int {
        defer { (self.tail, self.phase) = (self.stored, .direct) }
        return self.lag
    }

    /// The spool has nothing any more.
    mutating func spoolEmptied() {
        (self.end, self.cursor) = (AuditSpool.End(), AuditSpoolCursor())
    }
}
