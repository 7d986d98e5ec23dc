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

    /// Walks on along a chain: hands the walk the rows from its next place on, in order, together with the head, and
    /// for a walk that follows cuts with the cut, that are stored at the same moment.
    ///
    /// - Parameters:
    ///   - walker: the walk so far.
    ///   - limit: how many rows at most.
    /// - Returns: the walk after those rows, and how many there were.
    /// - Throws: `storeUnavailable`.
    func walk(_ walker: AuditWalker, limit: Int) async throws(GatewayError) -> (walker: AuditWalker, rows: Int)

    /// The writers that have records, rising; those without a head were not written by the gateway.
    ///
    /// - Throws: `storeUnavailable`.
    func writersWithRecords() async throws(GatewayError) -> [Int]
}
