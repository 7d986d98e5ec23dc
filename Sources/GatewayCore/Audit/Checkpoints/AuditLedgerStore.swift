/// Keeps what is to be known about an audit's chains.
package protocol AuditLedgerStore: AuditLedgerReader {
    /// Adds a checkpoint as the latest, and removes others by it, if any are to be removed, in one transaction.
    ///
    /// - Parameters:
    ///   - checkpoint: the checkpoint.
    ///   - content: what it says, to remove those that it says are not kept; `nil` to remove none.
    ///   - end: the word that it is the latest.
    /// - Throws: `storeUnavailable`; then nothing was changed.
    func append(_ checkpoint: SignedCheckpoint, thinnedBy content: AuditCheckpoint?, end: CheckpointEnd)
        async throws(GatewayError)

    /// Removes a chain's records up to a cut, and keeps the cut in their stead, in one transaction.
    ///
    /// - Throws: `conflict` when the record of the cut is not there with its hash, `storeUnavailable`; then nothing was
    ///   changed.
    func remove(upTo cut: AuditCut) async throws(GatewayError)

    /// When the records were made, by rising writer and place; no piece covers more than a duration.
    ///
    /// - Throws: `storeUnavailable`.
    func timeline(maxLength: Duration) async throws(GatewayError) -> [AuditTimePiece]
}
