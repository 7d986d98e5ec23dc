import GatewayCore

/// Watches over the cuts in a sink: a genuine one that was put in later, in the place of records, is found.
///
/// Pure. A checkpoint that follows says which cuts were in force and what the sink had by then. One that knows that the
/// cut had been delivered, and knows of no such cut, shows that it was put in afterwards.
struct AuditSinkCuts: Sendable {
    private struct Item: Sendable {
        var cut: AuditCut
        /// The checkpoint that the cut stands before.
        var checkpoint: Int
        var failure: AuditSinkVerifier.Failure
    }

    /// Those since the last checkpoint.
    private var fresh: [Item] = []
    /// Those that a checkpoint has yet to speak of.
    private var open: [Item] = []
    /// Those that a checkpoint spoke against.
    private var refuted: [Item] = []

    /// No cuts.
    init() {}

    /// What is wrong with the first that was put in later; `nil` for none.
    var failure: AuditSinkVerifier.Failure? { self.refuted.first?.failure }

    /// Takes a cut; its failure is what is told if it turns out to be wrong.
    mutating func add(_ cut: AuditCut, _ failure: AuditSinkVerifier.Failure) {
        self.fresh.append(Item(cut: cut, checkpoint: 0, failure: failure))
    }

    /// Forgets the cuts since the last checkpoint: they follow again.
    mutating func rollBack() {
        self.fresh = []
    }

    /// Takes a checkpoint.
    ///
    /// - Parameters:
    ///   - checkpoint: what it says.
    ///   - isFirst: whether the sink begins with it; what precedes it is as if it were not there.
    mutating func pass(_ checkpoint: AuditCheckpoint, isFirst: Bool) {
        // What the sink had is gone, so it was another sink that had it: in this one, it came later.
        self.refuted.removeAll { checkpoint.delivered < $0.checkpoint }
        let told = self.open.filter { $0.checkpoint <= checkpoint.delivered }
        self.open.removeAll { $0.checkpoint <= checkpoint.delivered }
        self.refuted += told.filter { item in
            checkpoint.removedWriter < item.cut.writer
                && !checkpoint.cuts.contains { $0.writer == item.cut.writer && $0.sequence >= item.cut.sequence }
        }
        if !isFirst {
            self.open += self.fresh.map { Item(cut: $0.cut, checkpoint: checkpoint.number, failure: $0.failure) }
        }
        self.fresh = []
    }
}
