/// Keeps what the gateway knows of tenants' device groups.
package protocol GroupStore: Sendable {
    /// A tenant's group of a name; `nil` where there is none.
    ///
    /// - Throws: `storeUnavailable`.
    func group(named name: String, of tenant: TenantID) async throws(GatewayError) -> DeviceGroup?

    /// A tenant's group that has, or had since it was made, exactly this key; `nil` where none is known by it.
    ///
    /// FCM goes on taking the keys that it handed out earlier, so that callers may keep the first they got. A store may
    /// forget all but the last thousand.
    ///
    /// - Throws: `storeUnavailable`.
    func group(withKey key: String, of tenant: TenantID) async throws(GatewayError) -> DeviceGroup?

    /// Every key by which ``group(withKey:of:)`` knows a group.
    ///
    /// - Throws: `storeUnavailable`.
    func keys() async throws(GatewayError) -> [(tenant: TenantID, key: String)]

    /// Stores a group in place of the version that it was made from.
    ///
    /// - Returns: its new version.
    /// - Throws: `conflict` when another version is stored meanwhile, or for version 0 any; `notFound` when the tenant is
    ///   not there, or was made anew; `storeUnavailable`.
    func save(_ group: DeviceGroup) async throws(GatewayError) -> Int

    /// Forgets a group.
    ///
    /// - Throws: `conflict` when another version, or none, is stored meanwhile; `storeUnavailable`.
    func remove(_ group: DeviceGroup) async throws(GatewayError)

    /// Names of a tenant's groups in the order of their bytes.
    ///
    /// - Parameters:
    ///   - tenant: whose groups.
    ///   - name: the name after which the page begins; `nil` for the first page.
    ///   - limit: how many at most, at least 1.
    /// - Returns: the names.
    /// - Throws: `storeUnavailable`.
    func names(of tenant: TenantID, after name: String?, limit: Int) async throws(GatewayError) -> [String]
}
