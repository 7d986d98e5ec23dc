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
