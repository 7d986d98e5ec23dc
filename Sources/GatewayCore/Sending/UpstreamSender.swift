package import FCMModel

/// Carries messages to FCM.
package protocol UpstreamSender: Sendable {
    /// Returns a refusal if a tenant's upstream has no form for a target. Nothing is sent or charged.
    func refusal(of target: Target, for profile: TenantProfile) -> Refusal?

    /// Returns the first requests that ``send(_:)`` would make, at most so many, or none if the upstream has no form for the
    /// target. Nothing is sent, and no credential is needed.
    func requests(of call: UpstreamCall, limit: Int) -> [Message.Request]

    /// Sends a message. A failure on the way is a result as well: the call failed as a whole.
    func send(_ call: UpstreamCall) async -> SendResult
}

/// One message on its way to FCM.
package struct UpstreamCall: Sendable {
    package let command: SendCommand
    /// The command's target, or the recipients that limits admitted.
    package let target: Target
    /// Consulted before each call of a list leaves, and before each attempt. `nil` without an idempotency key.
    package let reservation: SendReservation?

    package init(_ command: SendCommand, target: Target, reservation: SendReservation? = nil) {
        self.command = command
        self.target = target
        self.reservation = reservation
    }

    package var profile: TenantProfile { self.command.profile }
    /// True if the target may be a device group, so that an empty object is its answer (TB-GROUP).
    package var mayBeGroup: Bool {
        switch self.target {
        case .notificationKey, .deviceGroup: true
        case .token: self.command.tokenMayBeGroup
        case .tokens, .installation, .installations, .topic, .condition: false
        }
    }
    package var deadline: Uptime { self.command.deadline }
    package var origin: RequestOrigin { self.command.origin }
}

extension UpstreamKind {
    /// True if a message to a target becomes a call for each recipient: HTTP v1 has no lists (TR-FANOUT).
    package func sendsEach(of target: Target) -> Bool { self == .v1 && target.isList }

    /// The number of calls that a message to a target becomes.
    package func callCount(of target: Target) -> Int { self.sendsEach(of: target) ? target.recipientCount : 1 }
}
