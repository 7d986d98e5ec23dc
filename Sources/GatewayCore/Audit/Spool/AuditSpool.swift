/// Keeps the records that the store does not take, in the places that they have in the chain already.
///
/// Since a record's place is its identity, it can be handed to the store any number of times.
package struct AuditSpool: Sendable {
    /// The end of what was written.
    struct End: Sendable, Hashable {
        /// How many bytes there are.
        var size = 0
        /// The last seal; empty before the first.
        var seal: [UInt8] = []
        /// Whether a write that failed may have left something behind it.
        var hasRemains = false
    }

    let file: any AuditSpoolFile
    let sealer: AuditSpoolSealer
    private let maxBytes: Int

    /// A spool in a file.
    ///
    /// - Parameters:
    ///   - file: where it is.
    ///   - sealer: seals what is written.
    ///   - maxBytes: the most that it may hold.
    package init(file: any AuditSpoolFile, sealer: AuditSpoolSealer, maxBytes: Int) {
        self.file = file
        self.sealer = sealer
        self.maxBytes = maxBytes
    }

    /// Writes records behind the end; they are on the disk when it returns.
    ///
    /// - Parameters:
    ///   - entries: the records.
    ///   - base: the chain's end before them.
    ///   - end: the spool's end; moved.
    /// - Returns: the chain's end behind them.
    /// - Throws: `storeUnavailable` when they do not fit or can't be written; then nothing was added.
    func append(
        _ entries: [AuditEntry],
        after base: AuditChain,
        to end: inout End
    ) async throws(GatewayError) -> AuditChain {
        guard !entries.isEmpty else { return base }
        var bytes: [UInt8] = []
        var seal = end.seal
        if end.size == 0 {
            let nonce = Secret(randomBytes: AuditSpoolFormat.nonceByteCount).revealBytes()
            bytes = AuditSpoolFormat.magic + nonce
            seal = self.sealer.seal(of: bytes, after: [])
            bytes += seal
        }
        var chain = base
        for run in Self.runs(of: entries) {
            let batch = AuditSpoolBatch(base: chain, entries: Array(run))
            let payload = batch.encoded
            var frame: [UInt8] = []
            frame.reserveCapacity(payload.count + 4)
            frame.append(number: UInt32(payload.count))
            frame += payload
            seal = self.sealer.seal(of: frame, after: seal)
            bytes += frame
            bytes += seal
            for entry in run { _ = chain.append(entry) }
        }
        guard end.size + bytes.count <= self.maxBytes else {
            throw GatewayError(.storeUnavailable, "The audit's spool is full")
        }
        // A shorter batch in front of the remains of a longer one would look like tampering.
        if end.hasRemains { try await self.file.cut(to: end.size) }
        end.hasRemains = true
        try await self.file.write(bytes, at: end.size)
        end = End(size: end.size + bytes.count, seal: seal)
        return chain
    }

    /// Parts of records that fit a batch each.
    private static func runs(of entries: [AuditEntry]) -> [ArraySlice<AuditEntry>] {
        var runs: [ArraySlice<AuditEntry>] = []
        var (start, size) = (0, 0)
        for index in entries.indices {
            size += entries[index].byteCount
            guard size >= AuditSpoolFormat.batchBytes else { continue }
            runs.append(entries[start...index])
            (start, size) = (index + 1, 0)
        }
        if start < entries.count { runs.append(entries[start...]) }
        return runs
    }

    /// What is found in a spool at a start.
    package struct Finding: Sendable, Hashable {
        /// Whose records it holds; `nil` when it holds none.
        package var writer: Int?
        /// How many genuine records it holds.
        package var records = 0
        /// Whether the last batch was not written to its end.
        package var isTorn = false
        /// Whether something in it was not written by the gateway.
        package var isDamaged = false
    }

    /// Looks through a spool that an earlier process left.
    ///
    /// - Throws: `storeUnavailable` when it can't be read.
    package func inspect() async throws(GatewayError) -> Finding {
        var (finding, cursor) = (Finding(), AuditSpoolCursor())
        while true {
            switch try await cursor.next(in: self.file, self.sealer) {
            case .batch(let batch):
                finding.writer = finding.writer ?? batch.base.writer
                finding.records += batch.entries.count
            case .end: return finding
            case .torn:
                finding.isTorn = true
                return finding
            case .damaged:
                finding.isDamaged = true
                return finding
            }
        }
    }
}
