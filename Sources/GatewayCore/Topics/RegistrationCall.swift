/// A device to be looked up.
package struct RegistrationCall: Sendable {
    /// What is to be known of it.
    package enum Part: Sendable, Hashable {
        /// Its subscriptions.
        case subscriptions
        /// Its app and platform as well, which only the Instance ID API tells.
        case everything
    }

    /// Whose it is.
    package let profile: TenantProfile
    /// The device.
    package let token: String
    /// What is to be known of it.
    package let part: Part
    /// When waiting for answers ends.
    package let deadline: ContinuousClock.Instant
    /// The request behind it.
    package let origin: RequestOrigin

    /// A call.
    package init(
        profile: TenantProfile,
        token: String,
        part: Part,
        deadline: ContinuousClock.Instant,
        origin: RequestOrigin
    ) {
        self.origin = origin
        self.profile = profile
        self.token = token
        self.part = part
        self.deadline = deadline
    }
}
