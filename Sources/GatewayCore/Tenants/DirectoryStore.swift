/// Keeps tenants, their credentials, keys and limits.
package protocol DirectoryStore: Sendable {
    /// Everything, as one consistent picture.
    ///
    /// - Throws: `storeUnavailable`.
    func load() async throws(GatewayError) -> DirectoryContents

    /// Makes one change in one transaction, and reads in it what the tenant has then; its cost does not grow with the
    /// number of tenants.
    ///
    /// - Returns: what there is of the changed tenant; nothing when it was deleted.
    /// - Throws: `storeUnavailable`; `notFound` where the change needs a tenant or key that is not there; `conflict` where
    ///   what it adds is there already, or what it builds on is a refused row.
    @discardableResult
    func apply(_ change: DirectoryChange) async throws(GatewayError) -> DirectoryContents
}
