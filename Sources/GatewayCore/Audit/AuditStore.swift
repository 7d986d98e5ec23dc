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
