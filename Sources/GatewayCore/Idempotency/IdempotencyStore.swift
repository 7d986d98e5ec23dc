/// Keeps what became of sends that carry a key.
package protocol IdempotencyStore: Sendable {
    /// What is kept of a key, whether expired or not.
    ///
    /// - Throws: `storeUnavailable`.
    func record(of identity: IdempotencyIdentity) async throws(GatewayError) -> StoredIdempotencyRecord?

    /// Makes changes in their order, in one transaction; they are durable when it returns.
    ///
    /// Where a reservation finds no room, the finished records that are oldest give way: the tenant's own, or those of
    /// the tenant that has most.
    ///
    /// - Returns: what each change came to.
    /// - Throws: `storeUnavailable`; then nothing was changed.
    func apply(_ changes: [IdempotencyChange]) async throws(GatewayError) -> [IdempotencyChange.Outcome]

    /// Drops records whose time is up, and stores how far the time has come.
    ///
    /// - Parameters:
    ///   - mark: how far; those go that expire then or earlier.
    ///   - limit: how many at most.
    /// - Returns: how many.
    /// - Throws: `storeUnavailable`; then nothing was changed.
    func purge(at mark: IdempotencyMark, limit: Int) async throws(GatewayError) -> Int

    /// The mark that was stored last; `nil` before the first.
    ///
    /// - Throws: `storeUnavailable`.
    func mark() async throws(GatewayError) -> IdempotencyMark?
}

/// How much a store keeps of keys.
package struct IdempotencyBounds: Sendable, Hashable {
    /// The most records of all tenants together.
    package var maxRecords: Int
    /// The most records of one tenant.
    package var maxRecordsPerTenant: Int
    /// The most bytes of all tenants together, by the records' weights.
    package var maxBytes: Int
    /// The most bytes of one tenant.
    package var maxBytesPerTenant: Int

    /// Bounds; by default four million records and 4 GiB, half of each for one tenant.
    package init(
        maxRecords: Int = 4_000_000,
        maxRecordsPerTenant: Int = 2_000_000,
        maxBytes: Int = 4 << 30,
        maxBytesPerTenant: Int = 2 << 30
    ) {
        self.maxRecords = maxRecords
        self.maxRecordsPerTenant = maxRecordsPerTenant
        self.maxBytes = maxBytes
        self.maxBytesPerTenant = maxBytesPerTenant
    }
}
