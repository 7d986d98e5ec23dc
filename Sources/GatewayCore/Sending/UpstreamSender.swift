package import FCMModel

/// Carries messages to FCM.
package protocol UpstreamSender: Sendable {
    /// Why a tenant's upstream has no form for a target; `nil` when it has one. Nothing is sent or spent.
    func refusal(of target: Target, for profile: TenantProfile) -> Refusal?

    /// Sends a message and says what became of it; trouble on the way is a result too: the call then failed as a whole.
    func send(_ call: UpstreamCall) async -> UpstreamResult
}

/// One message to be carried.
package struct UpstreamCall: Sendable {
    private let command: SendCommand
    /// Whom the message is for: the command's target, or those of its recipients that limits let through.
    package let target: Target
    /// What each call of a list has to pass before it leaves; `nil` unless the command carries an idempotency key.
    package let gate: SendReservation?

    package init(_ command: SendCommand, target: Target) {
        self.init(command, target: target, gate: nil)
    }

    private init(_ command: SendCommand, target: Target, gate: SendReservation?) {
        self.command = command
        self.target = target
        self.gate = gate
    }

    /// The same call with an idempotency key, each part of which has to pass a gate.
    func passing(_ gate: SendReservation) -> UpstreamCall {
        UpstreamCall(self.command, target: self.target, gate: gate)
    }

    package var profile: TenantProfile { self.command.principal.profile }
    package var message: Message { self.command.message }
    /// Whether the target may be a device group, so that an empty object is its answer (TB-GROUP).
    package var mayBeGroup: Bool {
        switch self.target {
        case .notificationKey: true
        case .token: self.command.tokenMayBeGroup
        case .tokens, .installation, .installations, .topic, .condition: false
        }
    }
    /// When waiting for an answer ends.
    package var deadline: ContinuousClock.Instant { self.command.deadline }
    package var origin: RequestOrigin { self.command.origin }
}
