/// The audit's store, for the parts that write to the audit. ``AuditPageReader`` reads pages for people.
///
/// A store hands rows over as they are and judges none: a verifier has to see what was changed. The calls of all its
/// ports throw `storeUnavailable`; one that writes has changed nothing then.
package typealias AuditStore = AuditAppender & AuditChainReader & AuditSignatureReader

/// Adds to the audit and removes from its beginning.
package protocol AuditAppender: Sendable {
    /// Adds records and moves the writer's head, in one transaction, durably; throws `conflict` when another record is
    /// in the place of one.
    ///
    /// Records that are there already are left alone, so that a commit whose answer got lost can be repeated.
    func append(_ records: [ChainedAuditRecord], head: AuditHead) async throws(GatewayError)

    /// Removes a chain's records up to a truncation marker, and keeps that in their stead, in one transaction; throws
    /// `conflict` when the record of the marker is not there with its hash.
    func remove(upTo truncation: AuditTruncation) async throws(GatewayError)

    /// Adds a checkpoint as the latest and removes those up to the end's marker, in one transaction; throws `conflict`
    /// where that number, or a later one, is there already.
    func append(_ checkpoint: SignedCheckpoint, end: CheckpointEnd) async throws(GatewayError)

    /// Notes that a second sink holds a checkpoint, and all before it.
    func note(delivered number: Int, to sink: String) async throws(GatewayError)
}

/// Reads the chains of records.
package protocol AuditChainReader: Sendable {
    /// Returns the end of every writer's chain, by rising writer.
    func heads() async throws(GatewayError) -> [AuditHead]

    /// Returns the writers that have records, rising; those without a head were not written by the gateway.
    func writersWithRecords() async throws(GatewayError) -> [Int]

    /// Returns a writer's rows from a place on, by rising place, with the head and the truncation marker that are
    /// stored at the same moment.
    func rows(of writer: Int, from sequence: Int, limit: Int) async throws(GatewayError) -> AuditRows

    /// Returns the first of some neighbouring records of a chain that is stored and that look-ups by time or tenant
    /// don't find; `nil` for none.
    func unlisted(among records: [ChainedAuditRecord]) async throws(GatewayError) -> AuditChain.Position?

    /// Returns when some records of a range of a chain were made, by rising place: the first, the next at or behind
    /// each multiple of a step, and the last.
    func times(of writer: Int, in places: ClosedRange<Int>, every step: Int) async throws(GatewayError) -> [AuditMoment]
}

/// Reads what is signed of the chains.
package protocol AuditSignatureReader: Sendable {
    /// Returns which checkpoints there are, truncation markers and what they are compared with, in one snapshot.
    func signatures() async throws(GatewayError) -> AuditSignatures

    /// Returns the stored checkpoints after a number, by rising number.
    func checkpoints(after number: Int, limit: Int) async throws(GatewayError) -> [SignedCheckpoint]

    /// Returns where chains begin whose oldest records were removed, by rising writer.
    func truncations() async throws(GatewayError) -> [AuditTruncation]

    /// Returns the latest checkpoint that each second sink is known to hold, by the sinks' names.
    func sinks() async throws(GatewayError) -> [String: Int]
}

/// Finds records for people.
package protocol AuditPageReader: Sendable {
    /// Returns records that match, newest first; throws `overloaded` when too many pages are asked for.
    ///
    /// A page takes a bounded time, so it may hold fewer than asked for, or none, and still have a next.
    func page(_ query: AuditQuery) async throws(GatewayError) -> AuditQuery.Page
}

extension AuditChainReader {
    /// Records of one writer, by rising place, after one of them; what can't be read comes with an empty hash.
    package func records(
        of writer: Int,
        after sequence: Int,
        limit: Int
    ) async throws(GatewayError) -> [ChainedAuditRecord] {
        guard sequence < Int.max else { return [] }
        return try await self.rows(of: writer, from: sequence + 1, limit: limit).readable()
    }

    /// Walks on along a chain; the rows that there were.
    func walk(_ walker: inout AuditWalker, limit: Int) async throws(GatewayError) -> [ChainedAuditRecord] {
        let page = try await self.rows(of: walker.chain.writer, from: walker.nextSequence, limit: limit)
        walker.beginPage(head: page.head, truncation: page.truncation)
        for row in page.rows {
            guard walker.step(row) else { break }
        }
        if page.isDamaged { walker.stop("the store's file is damaged here") }
        return page.rows
    }
}

/// Neighbouring rows of a chain, and its two ends as they are stored at the same moment.
package struct AuditRows: Sendable {
    package var head: AuditHead?
    package var truncation: AuditTruncation?
    /// As they are stored; one with a value of a type that the gateway does not write has an empty hash.
    package var rows: [ChainedAuditRecord]
    /// True if the row behind these can't be read.
    package var isDamaged: Bool

    package init(head: AuditHead?, truncation: AuditTruncation?, rows: [ChainedAuditRecord], isDamaged: Bool = false) {
        (self.head, self.truncation, self.rows, self.isDamaged) = (head, truncation, rows, isDamaged)
    }

    /// The rows, those that can't be read with an empty hash; throws `storeUnavailable` where the file is damaged at
    /// the first.
    func readable() throws(GatewayError) -> [ChainedAuditRecord] {
        guard !self.isDamaged || !self.rows.isEmpty else {
            throw GatewayError(.storeUnavailable, "The store's file is damaged or no database")
        }
        var records = self.rows
        for index in records.indices where !records[index].entry.isReadable { records[index].hash = [] }
        return records
    }
}

/// When a record of a chain was made.
package struct AuditMoment: Sendable, Hashable {
    package var sequence: Int
    package var time: Timestamp

    package init(sequence: Int, time: Timestamp) {
        (self.sequence, self.time) = (sequence, time)
    }
}
