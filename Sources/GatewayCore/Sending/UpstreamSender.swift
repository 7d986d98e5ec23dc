package import FCMModel

/// Carries messages to FCM.
package protocol UpstreamSender: Sendable {
    /// Why a tenant's upstream has no form for a target; `nil` when it has one. Nothing is sent or spent.
    func objection(to target: Target, of profile: TenantProfile) -> UpstreamObjection?

    /// Sends a message and says what became of it.
    ///
    /// Trouble on the way is a result too: the call then failed as a whole.
    func send(_ call: UpstreamCall) async -> UpstreamResult
}

/// One message to be carried.
package struct UpstreamCall: Sendable {
    /// Whose message it is.
    package var profile: TenantProfile
    /// Whom it is for.
    package var target: Target
    /// What it says.
    package var message: Message
    /// When waiting for an answer ends.
    package var deadline: ContinuousClock.Instant

    /// A call.
    package init(profile: TenantProfile, target: Target, message: Message, deadline: ContinuousClock.Instant) {
        self.profile = profile
        self.target = target
        self.message = message
        self.deadline = deadline
    }
}

/// A target that an upstream has no form for.
package struct UpstreamObjection: Sendable, Hashable {
    /// What the caller is told.
    package var code: OutcomeCode
    /// The REST field at fault.
    package var field: String
    /// Why, in words for a developer.
    package var detail: String

    /// An objection.
    package init(code: OutcomeCode, field: String, detail: String) {
        self.code = code
        self.field = field
        self.detail = detail
    }
}
