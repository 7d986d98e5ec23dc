/// Reads chains back, to verify them.
package protocol AuditReader: Sendable {
    /// The end of every writer's chain, by rising writer.
    ///
    /// - Throws: `storeUnavailable`.
    func heads() async throws(GatewayError) -> [AuditHead]

    /// Records of one writer, by rising sequence, after one of them.
    ///
    /// - Throws: `storeUnavailable`.
    func records(of writer: Int, after sequence: Int, limit: Int) async throws(GatewayError) -> [ChainedAuditRecord]

    /// The writers that have records, rising; those without a head were not written by the gateway.
    ///
    /// - Throws: `storeUnavailable`.
    func writersWithRecords() async throws(GatewayError) -> [Int]
}

/// Keeps the audit's chains.
package protocol AuditStore: AuditReader {
    /// Adds records and moves the writer's head, in one transaction. Records that are there already are left alone, so
    /// that a commit whose answer got lost can be repeated.
    ///
    /// - Throws: `storeUnavailable`; then nothing was added.
    func append(_ records: [ChainedAuditRecord], head: AuditHead) async throws(GatewayError)

    /// Records that match, newest first.
    ///
    /// - Throws: `storeUnavailable`.
    func page(_ query: AuditQuery) async throws(GatewayError) -> AuditPage
}

/// What to look for in the audit.
package struct AuditQuery: Sendable, Hashable {
    /// Only this tenant's records.
    package var tenant: String?
    /// Only records at or after this moment.
    package var from: Timestamp?
    /// Only records before this moment.
    package var to: Timestamp?
    /// Only this action.
    package var action: String?
    /// Only this outcome.
    package var outcome: AuditRecord.Outcome?
    /// Only records that have this recipient.
    package var target: Pseudonym?
    /// Only the record of this message.
    package var messageID: String?
    /// How many records at most.
    package var limit: Int
    /// Only records older than this place.
    package var before: AuditPosition?

    /// All records.
    package init(limit: Int) {
        self.limit = limit
    }
}

/// A record's place among all of them.
package struct AuditPosition: Sendable, Hashable {
    /// Which writer.
    package var writer: Int
    /// The place in its chain.
    package var sequence: Int

    /// A place.
    package init(writer: Int, sequence: Int) {
        self.writer = writer
        self.sequence = sequence
    }
}

/// Some of the records that a query found.
package struct AuditPage: Sendable, Hashable {
    /// The records, newest first.
    package var records: [ChainedAuditRecord]
    /// Where the next page goes on; `nil` at the end.
    package var next: AuditPosition?

    /// A page.
    package init(records: [ChainedAuditRecord], next: AuditPosition?) {
        self.records = records
        self.next = next
    }
}
