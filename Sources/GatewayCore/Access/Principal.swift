/// Who is calling: a tenant, by one of its keys.
package struct Principal: Sendable {
    /// The tenant.
    package let profile: TenantProfile
    /// The key.
    package let key: APIKeyRecord

    /// A caller.
    package init(profile: TenantProfile, key: APIKeyRecord) {
        self.profile = profile
        self.key = key
    }

    /// How the audit names the caller.
    package var auditName: String { "key:\(self.key.id)" }

    /// Whether the key carries a scope.
    package func has(_ scope: Scope) -> Bool {
        self.key.scopes.contains(scope)
    }
}
