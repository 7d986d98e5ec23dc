/// A second place that the audit is written to, which others than the store's owner may keep.
package protocol AuditSink: Sendable {
    /// Makes ready for writing, again after something failed.
    ///
    /// - Returns: the last checkpoint that the sink holds with all before it; `nil` when it does not know of any.
    /// - Throws: `storeUnavailable` when the sink can't be reached.
    func resume() async throws(GatewayError) -> SignedCheckpoint?

    /// Writes lines in order.
    ///
    /// - Parameters:
    ///   - lines: what is written.
    ///   - isWhole: whether a checkpoint is complete with it, so that it is to be made durable.
    /// - Throws: `storeUnavailable` when not all was written; ``resume()`` tells what was.
    func write(_ lines: [AuditSinkLine], isWhole: Bool) async throws(GatewayError)
}
