import Logging

extension AuditLog {
    /// The most records of one transaction at a start.
    private static let recordsPerTransaction = 2_000

    /// Hands the store what an earlier process's spool holds, in the places that the records have, and moves that process's
    /// chain. The returned records must be added together with the chain's end.
    ///
    /// Places that the store has already are left alone, so that this can be repeated after another crash. A place may be
    /// taken by another record: one that was refused, of which the disk kept more than it said. Then the rest gets new
    /// places.
    func replaySpool(onto chain: inout AuditChain) async throws(GatewayError) -> [ChainedAuditRecord] {
        guard let spool = self.spool else { return [] }
        let known = chain.sequence
        var cursor = AuditSpool.Cursor()
        var ready: [ChainedAuditRecord] = []
        var moved: [ChainedAuditRecord] = []
        while case .batch(let batch) = try await spool.next(from: &cursor) {
            for record in try await self.missing(batch, storedThrough: known) {
                let link = chain.append(record.entry)
                if moved.isEmpty, link == record { ready.append(record) } else { moved.append(link) }
            }
            guard ready.count >= Self.recordsPerTransaction, moved.isEmpty else { continue }
            try await self.store.append(ready, head: self.sealer.head(of: chain, state: .open))
            ready = []
        }
        return ready + moved
    }

    private func missing(
        _ batch: AuditSpool.Batch,
        storedThrough known: Int
    ) async throws(GatewayError) -> [ChainedAuditRecord] {
        let (base, records) = (batch.base, batch.records)
        guard base.sequence < known else { return records }
        let stored = try await self.store.records(of: base.writer, after: base.sequence, limit: records.count)
            .keyed(by: \.sequence)
        return records.filter { stored[$0.sequence]?.hash != $0.hash }
    }

    /// Empties a spool of which the store has everything, or puts it aside when that is not sure; moves this process's chain.
    ///
    /// `isReplayed` is true if the store was given all of it just now, `hasChain` if it has the chain of the spool's
    /// records.
    func emptySpool(
        _ found: AuditSpool.Finding,
        isReplayed: Bool,
        hasChain: Bool,
        _ chain: inout AuditChain
    ) async throws(GatewayError) {
        guard let spool = self.spool else { return }
        let isComplete = isReplayed || found.writer == nil
        let lost = isComplete ? 0 : try await self.countMissing(from: spool)
        if found.isTorn {
            self.logger.notice(
                "The audit's spool ends within a batch, as after a kill; no caller was told that it was recorded"
            )
        }
        guard found.isDamaged || lost > 0 else {
            if try await spool.file.size() > 0 { try await spool.file.cut(to: 0) }
            return
        }
        var reason = "changed after \(found.records) records"
        if !found.isDamaged {
            reason =
                hasChain
                ? "the chain had ended without \(lost) records" : "\(lost) records belong to no chain of this store"
        }
        // The record comes first, so that no crash hides the damage.
        let chained = chain.append(self.damageRecord(reason))
        try await self.store.append([chained], head: self.sealer.head(of: chain, state: .open))
        let path = try await spool.file.setAside(self.asideSuffix)
        self.noteDamage(reason, kept: path, lost: lost)
    }

    /// The number of a spool's records that are nowhere in the chain that they belong to.
    ///
    /// A start that was killed before it could empty the spool has added them, behind another record maybe. One that was
    /// given another spool has ended the chain without them.
    private func countMissing(from spool: AuditSpool) async throws(GatewayError) -> Int {
        var (missing, cursor) = (0, AuditSpool.Cursor())
        while case .batch(let batch) = try await spool.next(from: &cursor) {
            let (base, limit) = (batch.base, batch.entries.count + self.configuration.queueRecords)
            let stored = try await self.store.records(of: base.writer, after: base.sequence, limit: limit)
            let known = Set(stored.map(\.entry))
            missing += batch.entries.count { !known.contains($0) }
        }
        return missing
    }

    var asideSuffix: String {
        "damaged-\(self.clock.now().milliseconds)"
    }

    /// The record of a spool that is not what the gateway wrote.
    func damageRecord(_ what: String) -> AuditRecord {
        var record = AuditRecord(.auditSpoolDamaged, at: self.clock.now())
        (record.outcome, record.object) = (.failed, what)
        return record
    }

    /// Reports a spool that the gateway did not write, or that does not continue the store's chains.
    func noteDamage(_ reason: String, kept path: String?, lost: Int) {
        self.logger.error(
            "The audit's spool was changed, or is not this store's; not all that it holds is in the audit",
            metadata: ["reason": "\(reason)", "kept": "\(path ?? "nowhere")", "lost_records": .stringConvertible(lost)]
        )
    }
}
