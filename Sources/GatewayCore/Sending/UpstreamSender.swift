package import FCMModel

/// Carries messages to FCM.
package protocol UpstreamSender: Sendable {
    /// Why a tenant's upstream has no form for a target; `nil` when it has one. Nothing is sent or spent.
    func refusal(of target: Target, for profile: TenantProfile) -> Refusal?

    /// Sends a message and says what became of it.
    ///
    /// Trouble on the way is a result too: the call then failed as a whole.
    func send(_ call: UpstreamCall) async -> UpstreamResult
}
