package import GatewayCore

/// Audit chains that live as long as the test, in a store that can refuse, hang, and be tampered with.
package final class InMemoryAuditStore: AuditStore {
    /// Everything that the store holds and has seen.
    package struct Contents: Sendable {
        /// All records, in the order of their arrival.
        package var records: [ChainedAuditRecord] = []
        /// The writers' ends, by rising writer.
        package var heads: [AuditHead] = []
        /// Where chains begin whose oldest records were removed.
        package var cuts: [AuditCut] = []
        /// How many records each successful append brought.
        package var batches: [Int] = []
        /// How many appends were refused.
        package var refused = 0
        /// How many appends hang at this moment.
        package var hanging = 0
        var refuses = false
        var hangs = false

        /// The records of one action.
        package func records(of action: String) -> [AuditRecord] {
            self.records.map(\.record).filter { $0.action == action }
        }
    }

    private let contents = Observed(Contents())

    /// An empty store.
    package init() {}

    /// What the store holds and has seen.
    package var current: Contents { self.contents.current }

    /// The recorded actions in the order of their arrival.
    package var actions: [String] { self.contents.current.records.map(\.record.action) }

    /// Makes appends fail from now on, or succeed again.
    package func refuse(_ refuses: Bool = true) {
        self.contents.change { $0.refuses = refuses }
    }

    /// Makes appends hang from now on, or go on.
    package func hang(_ hangs: Bool = true) {
        self.contents.change { $0.hangs = hangs }
    }

    /// Changes what is stored behind everybody's back.
    package func tamper(_ body: (inout Contents) -> Void) {
        self.contents.change(body)
    }

    /// Returns when the store has come to hold or to see something.
    ///
    /// - Throws: `CancellationError` when the task is cancelled first.
    package func wait(until isMet: @escaping @Sendable (Contents) -> Bool) async throws {
        try await self.contents.wait(until: isMet)
    }

    /// Adds records and moves the writer's head.
    ///
    /// - Throws: `storeUnavailable` while told to refuse; `conflict` where another record is in the place of one.
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
            return nil
        }
        if let failure { throw failure }
    }

    /// Records that match, newest first.
    ///
    /// - Throws: nothing; the port does.
    package func page(_ query: AuditQuery) async throws(GatewayError) -> AuditPage {
        var found = self.contents.current.records.filter { Self.matches($0, query) }
        found.sort { ($0.writer, $0.sequence) > ($1.writer, $1.sequence) }
        let page = Array(found.prefix(query.limit))
        let last = page.last.map { AuditPosition(writer: $0.writer, sequence: $0.sequence) }
        return AuditPage(records: page, next: found.count > page.count ? last : nil)
    }

    /// The end of every writer's chain, by rising writer.
    ///
    /// - Throws: nothing; the port does.
    package func heads() async throws(GatewayError) -> [AuditHead] {
        self.contents.current.heads
    }

    /// Records of one writer, by rising sequence, after one of them.
    ///
    /// - Throws: nothing; the port does.
    package func records(
        of writer: Int,
        after sequence: Int,
        limit: Int
    ) async throws(GatewayError) -> [ChainedAuditRecord] {
        let records = self.contents.current.records.filter { $0.writer == writer && $0.sequence > sequence }
        return Array(records.sorted { $0.sequence < $1.sequence }.prefix(limit))
    }

    /// Walks on along a chain.
    ///
    /// - Throws: nothing; the port does.
    package func walk(
        _ walker: AuditWalker,
        limit: Int
    ) async throws(GatewayError) -> (walker: AuditWalker, rows: Int) {
        let contents = self.contents.current
        let (writer, first) = (walker.chain.writer, walker.nextSequence)
        var walker = walker
        walker.beginPage(
            head: contents.heads.first { $0.writer == writer },
            cut: contents.cuts.first { $0.writer == writer }
        )
        let records = contents.records.filter { $0.writer == writer && $0.sequence >= first }
        var rows = 0
        for record in records.sorted(by: { $0.sequence < $1.sequence }).prefix(limit) {
            rows += 1
            guard walker.step(AuditRow(record)) else { break }
        }
        return (walker, rows)
    }

    /// The writers that have records, rising.
    ///
    /// - Throws: nothing; the port does.
    package func writersWithRecords() async throws(GatewayError) -> [Int] {
        Set(self.contents.current.records.map(\.writer)).sorted()
    }

    private static func matches(_ stored: ChainedAuditRecord, _ query: AuditQuery) -> Bool {
        let record = stored.record
        if let tenant = query.tenant, record.tenant != tenant { return false }
        if let from = query.from, record.time < from { return false }
        if let to = query.to, record.time >= to { return false }
        if let uid = query.tenantUID, record.tenantUID != uid { return false }
        guard query.matches(record) else { return false }
        guard let before = query.before else { return true }
        return (stored.writer, stored.sequence) < (before.writer, before.sequence)
    }
}
