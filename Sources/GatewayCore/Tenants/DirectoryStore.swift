/// Keeps tenants, their credentials, keys and limits.
package protocol DirectoryStore: Sendable {
    /// Everything, as one consistent picture.
    ///
    /// - Throws: `storeUnavailable`.
    func load() async throws(GatewayError) -> DirectoryContents

    /// Makes one change in one transaction.
    ///
    /// - Throws: `storeUnavailable`; `notFound` where the change needs a tenant or key that is not there.
    func apply(_ change: DirectoryChange) async throws(GatewayError)

    /// The sealed secrets of the gateway itself; absent ones are stored first, as given.
    ///
    /// - Parameter candidates: freshly sealed secrets for a first start.
    /// - Returns: what is stored, for every candidate.
    /// - Throws: `storeUnavailable`.
    func gatewaySecrets(
        orInsert candidates: [GatewaySecret: Envelope]
    ) async throws(GatewayError) -> [GatewaySecret: Envelope]
}

/// What the directory holds.
package struct DirectoryContents: Sendable {
    /// All tenants.
    package var tenants: [Tenant] = []
    /// The random bytes that each tenant's pseudonyms are salted with; destroyed with the tenant.
    package var salts: [TenantID: [UInt8]] = [:]
    /// The newest version of each credential.
    package var credentials: [StoredCredential] = []
    /// All keys, revoked ones included.
    package var keys: [APIKeyRecord] = []
    /// The tenants' own limits.
    package var limits: [TenantID: LimitOverrides] = [:]

    /// An empty directory.
    package init() {}
}

/// One change of the directory.
package enum DirectoryChange: Sendable {
    /// Makes or replaces a tenant; a new one gets the salt, an existing one keeps its own.
    case putTenant(Tenant, salt: [UInt8])
    /// Removes a tenant with its credentials, keys, limits and salt.
    case deleteTenant(TenantID)
    /// Adds a version of a credential and forgets the earlier ones.
    case putCredential(StoredCredential)
    /// Adds or replaces a key.
    case putKey(APIKeyRecord)
    /// Adds a key and shortens the life of another, in one step.
    case rotateKey(new: APIKeyRecord, old: APIKeyRecord)
    /// Replaces a tenant's limits.
    case putLimits(TenantID, LimitOverrides)
}
