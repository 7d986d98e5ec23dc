package import FCMModel

/// Carries requests to FCM's management of device groups.
package protocol GroupUpstream: Sendable {
    /// Makes a request by a tenant's own sender id and credential, and says what became of it.
    ///
    /// Trouble on the way is a result too.
    func perform(
        _ request: GroupRequest,
        of profile: TenantProfile,
        deadline: ContinuousClock.Instant
    ) async -> GroupResult
}
