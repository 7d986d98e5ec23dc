package import FCMModel

/// A checked message on its way into the pipeline.
///
/// A class, since it is handed on many times and copying its parts each time would cost more than the pipeline itself.
package final class SendCommand: Sendable {
    package let caller: Caller
    package let target: Target
    /// True if its one token may be the key of a device group: FCM's own protocols take either in one place.
    let tokenMayBeGroup: Bool
    /// The name of the target, if it is a device group by its name.
    let groupName: String?
    package let message: Message
    package let payloadBytes: Int
    // Kept, since to ask the target or the message elsewhere would copy it as a whole.
    package let recipientCount: Int
    package let isUrgent: Bool

    package var principal: Principal { self.caller.principal }
    package var profile: TenantProfile { self.caller.profile }
    package var origin: RequestOrigin { self.caller.origin }
    package var deadline: ContinuousClock.Instant { self.caller.deadline }

    package init(
        by caller: Caller,
        to target: Target,
        tokenMayBeGroup: Bool = false,
        message: Message,
        payloadBytes: Int
    ) {
        self.caller = caller
        self.target = target
        self.tokenMayBeGroup = tokenMayBeGroup
        self.groupName = if case .deviceGroup(let name) = target { name } else { nil }
        self.message = message
        self.payloadBytes = payloadBytes
        self.recipientCount = target.recipientCount
        self.isUrgent = message.isUrgent
    }

    func addressing(_ target: Target) -> SendCommand {
        SendCommand(
            by: self.caller,
            to: target,
            tokenMayBeGroup: self.tokenMayBeGroup,
            message: self.message,
            payloadBytes: self.payloadBytes
        )
    }
}

/// The outcome of a send: its result, under the id by which it is audited.
package struct SendOutcome: Sendable {
    /// How a send is recorded.
    enum Recording {
        /// By a record of its own.
        case own
        /// As a refusal: the gateway itself refused every recipient, so that a summary may count it.
        case refusal
        /// Not at all: its intent could not be committed, so that nothing was sent.
        case none
    }

    /// The message's id, under which it is audited.
    package var messageID: String
    package var result: SendResult
    /// The tenant's quotas after the send; empty where they were not asked.
    package var quotas: [QuotaStatus]
    var recording = Recording.own
    /// The number of recipients that were refused without asking FCM, which had called them unregistered.
    var refusedAsRetired = 0

    package init(messageID: String, _ result: SendResult, quotas: [QuotaStatus] = []) {
        self.messageID = messageID
        self.result = result
        self.quotas = quotas
    }

    /// A send that the gateway refused whole.
    init(
        messageID: String,
        refused refusal: Refusal,
        quotas: [QuotaStatus] = [],
        recording: Recording = .refusal
    ) {
        self.init(messageID: messageID, SendResult(.refused(refusal)), quotas: quotas)
        self.recording = recording
    }
}

extension SendResult {
    /// True if nothing reached FCM, or FCM itself said that it took nothing, for causes that pass: a repeat under the same
    /// idempotency key then sends.
    var freesKey: Bool {
        switch self.answer {
        case .refused(let refusal): refusal.code.freesKey
        case .recipients(let outcomes): outcomes.allSatisfy { $0.code?.freesKey == true }
        case .group: false
        }
    }

    /// True if another replica had taken the request's key, or took it meanwhile.
    var isInProgress: Bool { self.refusal?.code == .idempotencyInProgress }

    /// True if it is unknown of some recipient whether the message was delivered.
    var hasUnknown: Bool {
        switch self.answer {
        case .refused(let refusal): refusal.code == .outcomeUnknown
        case .recipients(let outcomes): outcomes.contains { $0.code == .outcomeUnknown }
        case .group: false
        }
    }

    /// True if FCM has no device, or no group, of the key that was sent to.
    var isUnregistered: Bool {
        switch self.answer {
        case .refused(let refusal): refusal.code == .unregistered
        case .recipients(let outcomes): outcomes.contains { $0.code == .unregistered }
        case .group: false
        }
    }
}

extension LimitScope {
    package var outcomeCode: OutcomeCode {
        switch self {
        case .tenant: .tenantRateExceeded
        case .device, .deviceCollapsible: .deviceRateExceeded
        case .topic: .topicRateExceeded
        }
    }
}

extension LimitDenial {
    var rejection: Rejection {
        Rejection(code: self.scope.outcomeCode, retryAfter: self.retryAfter, limitedBy: .gateway)
    }
}

extension Refusal {
    package init(_ denial: LimitDenial) {
        self.init(
            denial.scope.outcomeCode,
            retryAfter: denial.retryAfter,
            limitedBy: .gateway,
            limit: denial.scope.rawValue
        )
    }
}
