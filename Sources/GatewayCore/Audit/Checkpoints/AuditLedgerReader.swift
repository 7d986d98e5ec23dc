/// Reads what a store keeps about its audit's chains.
package protocol AuditLedgerReader: Sendable {
    /// All of it, as one consistent picture.
    ///
    /// - Throws: `storeUnavailable`.
    func ledger() async throws(GatewayError) -> AuditLedger

    /// The kept checkpoints after one of them, by rising number.
    ///
    /// - Throws: `storeUnavailable`.
    func checkpoints(after number: Int, limit: Int) async throws(GatewayError) -> [SignedCheckpoint]

    /// Where chains begin whose oldest records were removed, by rising writer.
    ///
    /// - Throws: `storeUnavailable`.
    func cuts() async throws(GatewayError) -> [AuditCut]

    /// The first place whose records are not found by look-ups as they should be, or where look-ups lead to none.
    ///
    /// - Throws: `storeUnavailable`.
    func firstMisfiled() async throws(GatewayError) -> AuditPosition?

    /// Whether look-ups find a record, and those around it, as they should.
    ///
    /// - Throws: `storeUnavailable`.
    func isFiled(_ place: AuditPosition) async throws(GatewayError) -> Bool
}
