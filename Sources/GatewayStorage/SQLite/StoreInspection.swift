package import GatewayCore

/// What a store looks like from outside, for an operator who asks whether it is well.
package struct StoreInspection: Sendable, Hashable {
    /// A tenant and what is known of its credentials.
    package struct TenantCredentials: Sendable, Hashable {
        /// The tenant.
        package var tenant: Tenant
        /// Its credentials as stored.
        package var credentials: [StoredCredential]

        /// A tenant with its credentials.
        package init(tenant: Tenant, credentials: [StoredCredential]) {
            self.tenant = tenant
            self.credentials = credentials
        }
    }

    /// The newest step of the schema's history that was taken.
    package var schema: String
    /// Whether that is this version's newest.
    package var isCurrent: Bool
    /// The time of the newest audit record; `nil` when there is none.
    package var newestRecord: Timestamp?
    /// All that is sealed; empty for a store of another version.
    package var sealed: [SealedSecret] = []
    /// The tenants; empty for a store of another version.
    package var tenants: [TenantCredentials] = []
}
