package import FCMModel

/// Carries requests to FCM's management of device groups.
package protocol GroupUpstream: Sendable {
    /// Makes a request by a tenant's own sender id and credential, and says what became of it.
    ///
    /// Trouble on the way is a result too. FCM is told of the trace that its origin belongs to, if it belongs to one.
    func perform(
        _ request: GroupRequest,
        of profile: TenantProfile,
        deadline: ContinuousClock.Instant,
        origin: RequestOrigin
    ) async -> GroupResult
}
