/// Who is calling: a tenant, by one of its keys.
///
/// Made once for each key of a picture of the directory.
package final class Principal: Sendable {
    /// The tenant.
    package let profile: TenantProfile
    /// The key.
    package let key: APIKeyRecord
    /// How the audit names the caller.
    package let auditName: String

    /// A caller.
    package init(profile: TenantProfile, key: APIKeyRecord) {
        self.profile = profile
        self.key = key
        self.auditName = "key:\(key.id)"
    }

    /// Whether the key carries a scope.
    package func has(_ scope: Scope) -> Bool {
        self.key.scopes.contains(scope)
    }
}
