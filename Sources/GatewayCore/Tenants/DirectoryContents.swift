/// What the directory holds, or as much of it as belongs to one tenant.
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

    /// Rows that are left out because their seal is not the gateway's.
    package var refused: [RefusedRow] = []

    /// An empty directory.
    package init() {}
}

/// A row of the directory that is not served, because somebody without the master key made or changed it.
package struct RefusedRow: Sendable, Hashable {
    /// What the row is.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A tenant, with its limits: nothing of it is served.
        case tenant
        /// An API key.
        case key
        /// A credential: the tenant has none of this protocol.
        case credential
    }

    /// What the row is.
    package let kind: Kind
    /// The tenant that the row names, if that is a tenant's name.
    package let tenant: TenantID?
    /// The row's own name, as it stands in the store: the tenant, the key's id, or the credential's protocol.
    package let name: String

    /// A row.
    package init(_ kind: Kind, _ name: String, of tenant: TenantID?) {
        self.kind = kind
        self.tenant = tenant
        self.name = name
    }
}

extension RefusedRow: CustomStringConvertible {
    /// Names the row and its tenant.
    package var description: String {
        switch self.kind {
        case .tenant: "tenant \(self.name)"
        case .key, .credential: "\(self.kind.rawValue) \(self.name) of tenant \(self.tenant?.text ?? "?")"
        }
    }
}
