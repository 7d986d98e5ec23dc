/// Checks every chain of a store from its first record to its sealed head.
package struct AuditVerifier: Sendable {
    /// What was found.
    package enum Verdict: Sendable, Hashable {
        /// Every record is what was written.
        case intact(records: Int)
        /// Something was changed; this is the first bad place.
        case tampered(AuditPosition, reason: String)
        /// The chains hold, but this writer ended uncleanly and no later start has closed its chain yet.
        case unclean(writer: Int, records: Int)
    }

    private static let chunk = 1_000

    private let reader: any AuditReader
    private let sealer: AuditSealer?

    /// A verifier.
    ///
    /// - Parameters:
    ///   - reader: where the chains are.
    ///   - sealer: checks the heads' seals; without it, only the chains themselves are checked.
    package init(reader: any AuditReader, sealer: AuditSealer?) {
        self.reader = reader
        self.sealer = sealer
    }

    /// Verifies everything.
    ///
    /// - Parameter isLive: whether a process writes at this moment, so that the last writer may be open.
    /// - Returns: whether the audit is intact, and the first place where it is not.
    /// - Throws: `storeUnavailable`.
    package func verify(isLive: Bool) async throws(GatewayError) -> Verdict {
        // Records are read after the heads, so a live writer may be ahead of its head, never behind.
        let heads = try await self.reader.heads()
        if let stray = try await self.strayWriter(heads) {
            return .tampered(
                AuditPosition(writer: stray, sequence: 1),
                reason: "records of a writer that never started"
            )
        }
        var records = 0
        var unclean: Int?
        // Commands that work on the store while it is served add chains behind the live one, closed at once.
        let live = isLive ? heads.last { $0.state == .open }?.writer : nil
        for (index, head) in heads.enumerated() {
            guard head.writer == index + 1 else {
                return .tampered(AuditPosition(writer: index + 1, sequence: 1), reason: "a writer is missing")
            }
            if let verdict = try await self.verify(head, mayGrow: isLive && head.state == .open) { return verdict }
            records += head.sequence
            if head.state == .open, head.writer != live { unclean = unclean ?? head.writer }
        }
        if let unclean { return .unclean(writer: unclean, records: records) }
        return .intact(records: records)
    }

    private func strayWriter(_ heads: [AuditHead]) async throws(GatewayError) -> Int? {
        let known = Set(heads.map(\.writer))
        let stray = try await self.reader.writersWithRecords().first { !known.contains($0) }
        guard let stray else { return nil }
        // A writer that started after the heads were read is no stranger.
        return try await self.reader.heads().contains { $0.writer == stray } ? nil : stray
    }

    private func head(of writer: Int) async throws(GatewayError) -> AuditHead? {
        try await self.reader.heads().first { $0.writer == writer }
    }

    /// - Returns: what is wrong with one chain, or `nil`.
    private func verify(_ head: AuditHead, mayGrow: Bool) async throws(GatewayError) -> Verdict? {
        let writer = head.writer
        func tampered(_ sequence: Int, _ reason: String) -> Verdict {
            .tampered(AuditPosition(writer: writer, sequence: sequence), reason: reason)
        }
        var head = head
        var chain = AuditChain(writer: head.writer)
        while true {
            let chunk = try await self.reader.records(of: head.writer, after: chain.sequence, limit: Self.chunk)
            for stored in chunk {
                guard stored.sequence == chain.sequence + 1 else {
                    return tampered(chain.sequence + 1, "the record is missing")
                }
                if stored.sequence > head.sequence, mayGrow {
                    // A record and its head are written together, so the head of this moment covers the record.
                    head = try await self.head(of: head.writer) ?? head
                }
                guard stored.sequence <= head.sequence else {
                    return tampered(stored.sequence, "the record was never written by the gateway")
                }
                guard chain.append(stored.entry).hash == stored.hash else {
                    return tampered(stored.sequence, "the record was changed")
                }
                if stored.sequence == head.sequence, stored.hash != head.hash {
                    return tampered(stored.sequence, "the chain's end is not the recorded one")
                }
            }
            guard chunk.count == Self.chunk || !chunk.isEmpty && chain.sequence < head.sequence else { break }
        }
        guard chain.sequence >= head.sequence else {
            return tampered(chain.sequence + 1, "the record is missing")
        }
        if let sealer = self.sealer, !sealer.isGenuine(head) {
            return tampered(head.sequence, "the seal on the chain's end is not genuine")
        }
        return nil
    }
}
