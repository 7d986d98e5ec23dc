package import GatewayCore

/// An audit store in memory that can refuse, hang, and be tampered with.
package final class InMemoryAuditStore: AuditStore {
    /// The contents of the store, and counters of its calls.
    package struct Contents: Sendable {
        package var records: [ChainedAuditRecord] = []
        package var heads: [AuditHead] = []
        package var checkpoints: [SignedCheckpoint] = []
        package var sinks: [String: Int] = [:]
        /// The other signed values.
        package var signatures = AuditSignatures()
        package var batches: [Int] = []
        package var refused = 0
        package var hanging = 0
        package var writers: [Int: ReplicaID] = [:]
        /// A record that look-ups don't find.
        package var unlisted: AuditChain.Position?
        var refuses = false
        var hangs = false
        var losesAnswers = false

        func chain(of writer: Int, in places: ClosedRange<Int>) -> [ChainedAuditRecord] {
            self.records.filter { $0.writer == writer && places.contains($0.sequence) }
                .sorted { $0.sequence < $1.sequence }
        }

        package func records(of action: String) -> [AuditRecord] {
            self.records.map(\.record).filter { $0.action == action }
        }
    }

    private let contents = Observed(Contents())

    package init() {}

    package var current: Contents { self.contents.current }

    package var actions: [String] { self.contents.current.records.map(\.record.action) }

    package func refuse(_ refuses: Bool = true) { self.contents.change { $0.refuses = refuses } }

    package func hang(_ hangs: Bool = true) { self.contents.change { $0.hangs = hangs } }

    /// Makes appends throw an unknown outcome although they are stored, or succeed again.
    package func loseAnswers(_ loses: Bool = true) { self.contents.change { $0.losesAnswers = loses } }

    /// Closes all open chains, as a leader does for dead replicas; from then on, appends succeed again.
    package func closeChains(_ sealer: AuditSealer = AuditSealer(auditKey: .sample("audit"))) {
        self.contents.change { contents in
            (contents.refuses, contents.losesAnswers) = (false, false)
            for (index, head) in contents.heads.enumerated() where head.state == .open {
                var chain = head.chain
                contents.records.append(chain.append(.sample("audit.recovered")))
                contents.heads[index] = sealer.head(of: chain, state: .recovered)
            }
        }
    }

    package func tamper(_ body: (inout Contents) -> Void) { self.contents.change(body) }

    package func wait(until isMet: @escaping @Sendable (Contents) -> Bool) async throws {
        try await self.contents.wait(until: isMet)
    }

    package func append(_ records: [ChainedAuditRecord], head: AuditHead) async throws(GatewayError) {
        self.contents.change { $0.hanging += 1 }
        try? await self.contents.wait { !$0.hangs }
        let failure = self.contents.change { contents -> GatewayError? in
            contents.hanging -= 1
            guard !contents.refuses else {
                contents.refused += 1
                return GatewayError(.storeUnavailable, "The audit store refuses, as it was told to")
            }
            let first = records.first?.sequence ?? 0
            let taken = contents.records.filter { $0.writer == head.writer && $0.sequence >= first }
            for record in records {
                let place = taken.first { $0.sequence == record.sequence }
                if let place, place != record { return GatewayError(.conflict, "The place is taken") }
                if place == nil { contents.records.append(record) }
            }
            if let index = contents.heads.firstIndex(where: { $0.writer == head.writer }) {
                if contents.heads[index].sequence <= head.sequence { contents.heads[index] = head }
            } else {
                contents.heads.append(head)
                contents.heads.sort { $0.writer < $1.writer }
            }
            contents.batches.append(records.count)
            guard contents.losesAnswers else { return nil }
            return GatewayError(.storeUnavailable, "The answer is lost, as it was told", cause: CommitOutcomeUnknown())
        }
        if let failure { throw failure }
    }

    package func heads() async throws(GatewayError) -> [AuditHead] { self.contents.current.heads }

    package func rows(of writer: Int, from sequence: Int, limit: Int) async throws(GatewayError) -> AuditRows {
        let contents = self.contents.current
        return AuditRows(
            head: contents.heads.first { $0.writer == writer },
            truncation: contents.signatures.truncations.first { $0.writer == writer },
            rows: contents.chain(of: writer, in: sequence...Int.max).prefix(limit).map(\.self)
        )
    }

    package func unlisted(among records: [ChainedAuditRecord]) async throws(GatewayError) -> AuditChain.Position? {
        let unlisted = self.contents.current.unlisted
        return records.first { $0.position == unlisted }?.position
    }

    package func times(
        of writer: Int,
        in places: ClosedRange<Int>,
        every step: Int
    ) async throws(GatewayError) -> [AuditMoment] {
        self.contents.current.chain(of: writer, in: places)
            .map { AuditMoment(sequence: $0.sequence, time: $0.entry.time) }
    }

    package func writersWithRecords() async throws(GatewayError) -> [Int] {
        Set(self.contents.current.records.map(\.writer)).sorted()
    }

    package func remove(upTo truncation: AuditTruncation) async throws(GatewayError) {
        self.contents.change { contents in
            contents.records.removeAll { $0.writer == truncation.writer && $0.sequence <= truncation.sequence }
            contents.signatures.truncations.removeAll { $0.writer == truncation.writer }
            contents.signatures.truncations.append(truncation)
            contents.signatures.truncations.sort { $0.writer < $1.writer }
        }
    }

    package func signatures() async throws(GatewayError) -> AuditSignatures {
        let contents = self.contents.current
        var signatures = contents.signatures
        (signatures.oldest, signatures.latest) = (contents.checkpoints.first, contents.checkpoints.last)
        return signatures
    }

    package func truncations() async throws(GatewayError) -> [AuditTruncation] {
        self.contents.current.signatures.truncations
    }

    package func checkpoints(after number: Int, limit: Int) async throws(GatewayError) -> [SignedCheckpoint] {
        Array(self.contents.current.checkpoints.filter { $0.number > number }.prefix(limit))
    }

    package func sinks() async throws(GatewayError) -> [String: Int] { self.contents.current.sinks }

    package func note(delivered number: Int, to sink: String) async throws(GatewayError) {
        self.contents.change { $0.sinks[sink] = number }
    }

    package func append(_ checkpoint: SignedCheckpoint, end: CheckpointEnd) async throws(GatewayError) {
        self.contents.change { contents in
            contents.checkpoints.append(checkpoint)
            contents.checkpoints.sort { $0.number < $1.number }
            contents.checkpoints.removeAll { $0.number <= end.removed.number }
            contents.signatures.end = end
        }
    }
}

extension InMemoryAuditStore: AuditChainRegistry {
    package func begin(
        _ record: ChainedAuditRecord,
        head: AuditHead,
        by replica: ReplicaID
    ) async throws(GatewayError) {
        try await self.append([record], head: head)
        self.contents.change { $0.writers[record.writer] = replica }
    }

    /// The open chains of every replica except the one named `alive`.
    package func abandonedChains(silentFor age: Duration) async throws(GatewayError) -> [Int] {
        let contents = self.contents.current
        return contents.heads.filter { $0.state == .open && contents.writers[$0.writer]?.text != "alive" }.map(\.writer)
    }
}

extension AuditSignatureReader {
    package func allCheckpoints() async throws(GatewayError) -> [SignedCheckpoint] {
        try await self.checkpoints(after: .min, limit: .max)
    }
}
