/// Keeps the audit: the chains of records with their sealed ends, and what is signed of them.
///
/// It hands stored rows over as they are and judges none: a verifier has to see what was changed. Its calls throw
/// `storeUnavailable`; one that writes has changed nothing then.
package protocol AuditStore: Sendable {
    // MARK: Chains

    /// Adds records and moves the writer's head, in one transaction, durably.
    ///
    /// Records that are there already are left alone, so that a commit whose answer got lost can be repeated.
    ///
    /// - Throws: `conflict` when another record is in the place of one.
    func append(_ records: [ChainedAuditRecord], head: AuditHead) async throws(GatewayError)

    /// The end of every writer's chain, by rising writer.
    func heads() async throws(GatewayError) -> [AuditHead]

    /// The writers that have records, rising; those without a head were not written by the gateway.
    func writersWithRecords() async throws(GatewayError) -> [Int]

    /// A writer's rows from a place on, by rising place, with the head and the cut that are stored at the same moment.
    func rows(of writer: Int, from sequence: Int, limit: Int) async throws(GatewayError) -> AuditRows

    /// When some records of a range of a chain were made, by rising place: the first, the next at or behind each multiple
    /// of a step, and the last.
    func times(of writer: Int, in places: ClosedRange<Int>, every step: Int) async throws(GatewayError) -> [AuditMoment]

    /// Records that match, newest first.
    ///
    /// A page takes a bounded time, so it may hold fewer than asked for, or none, and still have a next.
    ///
    /// - Throws: `overloaded` when too many pages are asked for.
    func page(_ query: AuditQuery) async throws(GatewayError) -> AuditPage

    /// Removes a chain's records up to a cut, and keeps the cut in their stead, in one transaction.
    ///
    /// - Throws: `conflict` when the record of the cut is not there with its hash.
    func remove(upTo cut: AuditCut) async throws(GatewayError)

    // MARK: What is signed

    /// Checkpoints, cuts and what they are compared with, in one snapshot.
    func ledger() async throws(GatewayError) -> AuditLedger

    /// The kept checkpoints after one of them, by rising number.
    func checkpoints(after number: Int, limit: Int) async throws(GatewayError) -> [SignedCheckpoint]

    /// Where chains begin whose oldest records were removed, by rising writer.
    func cuts() async throws(GatewayError) -> [AuditCut]

    /// Adds a checkpoint as the latest, and removes others where it says which are kept, in one transaction.
    func append(_ checkpoint: SignedCheckpoint, thinnedBy content: AuditCheckpoint?, end: CheckpointEnd)
        async throws(GatewayError)
}

extension AuditStore {
    /// Records of one writer, by rising place, after one of them; what can't be read comes with an empty hash.
    package func records(
        of writer: Int,
        after sequence: Int,
        limit: Int
    ) async throws(GatewayError) -> [ChainedAuditRecord] {
        guard sequence < Int.max else { return [] }
        let rows = try await self.rows(of: writer, from: sequence + 1, limit: limit)
        guard !rows.isDamaged || !rows.rows.isEmpty else {
            throw GatewayError(.storeUnavailable, "The store's file is damaged or no database")
        }
        return rows.rows.map { $0.record(of: writer) }
    }

    /// Walks on along a chain; the number of rows that there were.
    func walk(_ walker: inout AuditWalker, limit: Int) async throws(GatewayError) -> Int {
        let page = try await self.rows(of: walker.chain.writer, from: walker.nextSequence, limit: limit)
        walker.beginPage(head: page.head, cut: page.cut)
        for row in page.rows {
            guard walker.step(row) else { break }
        }
        if page.isDamaged { walker.stop("the store's file is damaged here") }
        return page.rows.count
    }
}

/// A record's place among all of them.
package struct AuditPosition: Sendable, Hashable {
    package var writer: Int
    package var sequence: Int

    package init(writer: Int, sequence: Int) {
        self.writer = writer
        self.sequence = sequence
    }
}

/// A record in its place in a writer's chain.
package struct ChainedAuditRecord: Sendable, Hashable {
    /// Writers of one store count up from 1.
    package var writer: Int
    /// The place, dense from 1.
    package var sequence: Int
    /// The record as it is stored.
    package var entry: AuditEntry
    /// SHA-256 of the predecessor's hash and this record.
    package var hash: [UInt8]

    package init(writer: Int, sequence: Int, entry: AuditEntry, hash: [UInt8]) {
        self.writer = writer
        self.sequence = sequence
        self.entry = entry
        self.hash = hash
    }

    package var record: AuditRecord {
        get { self.entry.record }
        set { self.entry = AuditEntry(newValue) }
    }
}

/// One stored record as its bytes, as a verifier hashes them.
package struct AuditRow: Sendable {
    /// The place in the writer's chain.
    package var sequence: Int
    /// Microseconds since 1970.
    package var time: Int64
    package var tenant: [UInt8]?
    /// The rest of the record (``AuditBody``).
    package var body: [UInt8]
    package var hash: [UInt8]
    /// Whether every column has a value of the type that the gateway writes.
    package var isReadable: Bool

    package init(sequence: Int, time: Int64, tenant: [UInt8]?, body: [UInt8], hash: [UInt8], isReadable: Bool = true) {
        (self.sequence, self.time, self.tenant) = (sequence, time, tenant)
        (self.body, self.hash, self.isReadable) = (body, hash, isReadable)
    }

    package init(_ record: ChainedAuditRecord) {
        self.init(
            sequence: record.sequence,
            time: record.entry.time.microseconds,
            tenant: record.entry.tenant.map { Array($0.utf8) },
            body: record.entry.body,
            hash: record.hash
        )
    }

    /// The record of the row; one that the gateway would not have written has an empty hash, which no record's is.
    package func record(of writer: Int) -> ChainedAuditRecord {
        let time = Timestamp(microseconds: self.time)
        let tenant = self.tenant.map { String(validating: $0, as: UTF8.self) }
        if self.isReadable, tenant != .some(nil),
            let entry = AuditEntry(time: time, tenant: tenant ?? nil, body: self.body)
        {
            return ChainedAuditRecord(writer: writer, sequence: self.sequence, entry: entry, hash: self.hash)
        }
        let nothing = AuditRecord(time: time, tenant: nil, principal: "", action: "", outcome: .failed, requestID: "")
        return ChainedAuditRecord(writer: writer, sequence: self.sequence, entry: AuditEntry(nothing), hash: [])
    }
}

/// Neighbouring rows of a chain, and its two ends as they are stored at the same moment.
package struct AuditRows: Sendable {
    package var head: AuditHead?
    package var cut: AuditCut?
    package var rows: [AuditRow]
    /// Whether what follows can't be read.
    package var isDamaged: Bool

    package init(head: AuditHead?, cut: AuditCut?, rows: [AuditRow], isDamaged: Bool = false) {
        (self.head, self.cut, self.rows, self.isDamaged) = (head, cut, rows, isDamaged)
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
