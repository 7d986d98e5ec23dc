import GatewayCore

/// What the chains in a sink have come to.
struct AuditSinkChains: Sendable {
    /// The last place of each chain.
    private(set) var ends: [Int: AuditChain] = [:]
    /// How each chain ended, if it ended with that place.
    private var states: [Int: AuditHead.State] = [:]
    /// The chains whose last place is a cut: what preceded it, the sink may never have had.
    private var cuts: Set<Int> = []

    /// No chains.
    init() {}

    /// The chains as a checkpoint has them.
    init(_ checkpoint: AuditCheckpoint) {
        self.take(checkpoint)
    }

    /// The chain that a writer's next record follows.
    func end(of writer: Int) -> AuditChain { self.ends[writer] ?? AuditChain(writer: writer) }

    /// Goes on to a record, which is the end of this chain now.
    mutating func take(_ record: ChainedAuditRecord, end: AuditChain) {
        self.ends[record.writer] = end
        self.states[record.writer] = record.record.action == AuditAction.auditRecovered.rawValue ? .recovered : .closed
        self.cuts.remove(record.writer)
    }

    /// Goes on to a cut.
    ///
    /// - Returns: whether it lies behind what there is, or is there already.
    mutating func take(_ cut: AuditCut, ended: AuditHead.State?) -> Bool {
        let end = self.end(of: cut.writer)
        // While checkpoints lie below it, it comes before each of them.
        guard cut.sequence > end.sequence || (cut.sequence, cut.hash) == (end.sequence, end.hash) else { return false }
        if cut.sequence > end.sequence { self.cuts.insert(cut.writer) }
        self.ends[cut.writer] = cut.chain
        self.states[cut.writer] = ended ?? self.states[cut.writer]
        return true
    }

    /// Goes on to the ends that a checkpoint has.
    mutating func take(_ checkpoint: AuditCheckpoint) {
        for head in checkpoint.heads where !self.isCut(above: head) {
            self.ends[head.writer] = AuditChain(writer: head.writer, sequence: head.sequence, hash: head.hash)
            self.states[head.writer] = head.state == .open ? self.states[head.writer] : head.state
            self.cuts.remove(head.writer)
        }
    }

    /// Whether a chain has come to where a checkpoint says that it has.
    func agrees(with head: AuditCheckpoint.Head) -> Bool {
        let end = self.end(of: head.writer)
        return (end.sequence, end.hash) == (head.sequence, head.hash) || self.isCut(above: head)
    }

    /// A chain's end, if it has ended there.
    func settledHead(of writer: Int) -> AuditHead {
        let end = self.end(of: writer)
        let state = self.states[writer] ?? .closed
        return AuditHead(writer: writer, sequence: end.sequence, hash: end.hash, state: state, seal: [])
    }

    /// Whether the records around a place were removed before the sink could have them.
    private func isCut(above head: AuditCheckpoint.Head) -> Bool {
        self.cuts.contains(head.writer) && head.state == .open && self.end(of: head.writer).sequence > head.sequence
    }
}
