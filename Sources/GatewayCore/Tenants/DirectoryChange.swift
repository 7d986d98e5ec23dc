/// One change of the directory.
package enum DirectoryChange: Sendable {
    /// Makes or replaces a tenant; a new one gets the salt, an existing one keeps its own.
    case putTenant(Tenant, salt: [UInt8])
    /// Removes a tenant with its credentials, keys, limits and salt.
    case deleteTenant(TenantID)
    /// Adds a version of a credential and forgets the earlier ones.
    case putCredential(StoredCredential)
    /// Adds a key whose id no key has yet.
    case addKey(APIKeyRecord)
    /// Adds or replaces a key.
    case putKey(APIKeyRecord)
    /// Adds a key and shortens the life of another, in one step.
    case rotateKey(new: APIKeyRecord, old: APIKeyRecord)
    /// Removes a key of a tenant.
    case removeKey(id: String, TenantID)
    /// Replaces a tenant's limits.
    case putLimits(TenantID, LimitOverrides)

    /// The tenant that is changed; no other is.
    package var tenant: TenantID {
        switch self {
        case .putTenant(let tenant, salt: _): tenant.id
        case .deleteTenant(let id), .removeKey(id: _, let id), .putLimits(let id, _): id
        case .putCredential(let credential): credential.tenant
        case .addKey(let key), .putKey(let key), .rotateKey(new: let key, old: _): key.tenant
        }
    }
}
