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
    package private(set) var gate: SendReservation?

    package init(_ command: SendCommand, target: Target) {
        self.command = command
        self.target = target
    }

    /// The same call with an idempotency key, each part of which has to pass a gate.
    func passing(_ gate: SendReservation) -> UpstreamCall {
        var call = self
        call.gate = gate
        return call
    }

    package var profile: TenantProfile { self.command.profile }
    package var message: Message { self.command.message }
    /// Whether the target may be a device group, so that an empty object is its answer (TB-GROUP).
    package var mayBeGroup: Bool {
        switch self.target {
        case .notificationKey: true
        case .token: self.command.tokenMayBeGroup
        case .tokens, .installation, .installations, .topic, .condition: false
        }
    }
    package var deadline: ContinuousClock.Instant { self.command.deadline }
    package var origin: RequestOrigin { self.command.origin }
}

extension UpstreamResult {
    /// Whether FCM has no device, or no group, of the key that was sent to.
    var isUnregistered: Bool {
        switch self.answer {
        case .failed(let code): code == .unregistered
        case .recipients(let outcomes):
            outcomes.contains { $0.code == .unregistered }
        case .group: false
        }
    }

    /// The result of a message to a device group's key, in counts, also where the upstream named the message as it does
    /// for a device: an answer's shape follows what was addressed.
    var inCounts: UpstreamResult {
        guard case .recipients(let outcomes) = self.answer, outcomes.count == 1,
            case .accepted(let acceptance) = outcomes[0]
        else { return self }
        var result = self
        result.answer = .group(GroupOutcome(success: 1, failure: 0, failedTokens: [], messageID: acceptance.messageID))
        return result
    }

    /// The result with the number of members that the gateway knows, for an upstream that names none (TB-GROUP).
    func counting(_ members: Int) -> UpstreamResult {
        guard case .group(let counts) = self.answer, counts.failure == 0 else { return self }
        var result = self
        result.answer = .group(
            GroupOutcome(success: max(1, members), failure: 0, failedTokens: [], messageID: counts.messageID)
        )
        return result
    }
}
