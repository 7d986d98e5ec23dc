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
    /// What was asked for.
    private let command: SendCommand
    /// Whom the message is for: the command's target, or those of its recipients that limits let through.
    package let target: Target
    /// What each call of a list has to pass before it leaves, where the command carries an idempotency key.
    package let gate: StartGate?

    /// A call for a command's message.
    package init(_ command: SendCommand, target: Target) {
        self.init(command, target: target, gate: nil)
    }

    private init(_ command: SendCommand, target: Target, gate: StartGate?) {
        self.command = command
        self.target = target
        self.gate = gate
    }

    /// The same call, each part of which has to pass a gate.
    func passing(_ gate: StartGate) -> UpstreamCall {
        UpstreamCall(self.command, target: self.target, gate: gate)
    }

    /// Whose message it is.
    package var profile: TenantProfile { self.command.principal.profile }
    /// What it says.
    package var message: Message { self.command.message }
    /// When waiting for an answer ends.
    package var deadline: ContinuousClock.Instant { self.command.deadline }
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
