/// Keeps tenants, their credentials, keys and limits.
package protocol DirectoryStore: Sendable {
    /// Everything, as one consistent picture.
    ///
    /// - Throws: `storeUnavailable`.
    func load() async throws(GatewayError) -> DirectoryContents

    /// Makes one change in one transaction.
    ///
    /// - Throws: `storeUnavailable`; `notFound` where the change needs a tenant or key that is not there; `conflict` where
    ///   what it adds is there already.
    func apply(_ change: DirectoryChange) async throws(GatewayError)

    /// The sealed secrets of the gateway itself; absent ones are stored first, as given.
    ///
    /// - Parameters:
    ///   - candidates: freshly sealed secrets for a first start.
    ///   - end: the end of a row of checkpoints that is still to come, kept with the first secrets of an unused store.
    /// - Returns: what is stored, for every candidate.
    /// - Throws: `storeUnavailable`.
    func gatewaySecrets(
        orInsert candidates: [GatewaySecret: Envelope],
        at end: CheckpointEnd
    ) async throws(GatewayError) -> [GatewaySecret: Envelope]
}
