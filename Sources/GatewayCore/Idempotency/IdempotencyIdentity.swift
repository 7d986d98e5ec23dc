/// Which send a key names: keys of different tenants and routes have nothing to do with each other.
package struct IdempotencyIdentity: Sendable, Hashable {
    /// The tenant.
    package var tenant: TenantID
    /// When the tenant was made: one that is made anew under an old name has nothing of the old one.
    package var tenantCreatedAt: Timestamp
    /// Where the key was used.
    package var route: KeyedRequest.Route
    /// The key's SHA-256.
    package var keyDigest: [UInt8]

    /// An identity.
    package init(tenant: TenantID, tenantCreatedAt: Timestamp, route: KeyedRequest.Route, keyDigest: [UInt8]) {
        self.tenant = tenant
        self.tenantCreatedAt = tenantCreatedAt
        self.route = route
        self.keyDigest = keyDigest
    }

    /// The identity of a tenant's request.
    init(_ request: KeyedRequest, of profile: TenantProfile) {
        self.init(
            tenant: profile.id,
            tenantCreatedAt: profile.tenant.createdAt,
            route: request.route,
            keyDigest: request.key.digest
        )
    }
}
