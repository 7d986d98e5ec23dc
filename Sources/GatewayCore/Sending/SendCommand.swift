package import FCMModel

/// A checked message on its way into the pipeline.
///
/// It is a class because copying its parts at every step would cost more than the pipeline itself.
package final class SendCommand: Sendable {
    package let caller: Caller
    package let target: Target
    /// True if its one token may be the key of a device group: FCM's own protocols take either in one place.
    let tokenMayBeGroup: Bool
    /// The name of the target, if it is a device group by its name.
    let groupName: String?
    package let message: Message
    package let payloadBytes: Int
    // Stored, because reading it from the target or the message elsewhere would copy that as a whole.
    package let recipientCount: Int
    package let isUrgent: Bool

    package var principal: Principal { self.caller.principal }
    package var profile: TenantProfile { self.caller.profile }
    package var origin: RequestOrigin { self.caller.origin }
    package var deadline: Uptime { self.caller.deadline }

    /// Creates a command. Without a payload's size given, it is the message's own.
    package init(
        by caller: Caller,
        to target: Target,
        tokenMayBeGroup: Bool = false,
        message: Message,
        payloadBytes: Int? = nil
    ) {
        self.caller = caller
        self.target = target
        self.tokenMayBeGroup = tokenMayBeGroup
        self.groupName = if case .deviceGroup(let name) = target { name } else { nil }
        self.payloadBytes = payloadBytes ?? message.payloadBytes
        self.recipientCount = target.recipientCount
        self.isUrgent = message.isUrgent
        self.message = message
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
    /// The form of a send's audit record.
    enum Recording {
        /// By a record of its own.
        case own
        /// A refusal: the gateway itself refused every recipient, and a summary may count it.
        case refusal
        /// No record: the intent could not be committed, so nothing was sent.
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
    /// True if nothing reached FCM, or FCM accepted nothing, for temporary causes. A repeat with the same idempotency
    /// key then sends.
    var freesKey: Bool {
        switch self.answer {
        case .refused(let refusal): refusal.code.freesKey
        case .recipients(let outcomes): outcomes.allSatisfy { $0.code?.freesKey == true }
        case .group: false
        }
    }

    /// True if another replica holds the request's key.
    var isInProgress: Bool { self.refusal?.code == .idempotencyInProgress }

    /// True if the outcome of some recipient is unknown.
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

extension LimitDecision.Denial {
    var rejection: Rejection {
        Rejection(code: self.scope.outcomeCode, retryAfter: self.retryAfter, limitedBy: .gateway)
    }
}

extension Refusal {
    package init(_ denial: LimitDecision.Denial) {
        self.init(
            denial.scope.outcomeCode,
            retryAfter: denial.retryAfter,
            limitedBy: .gateway,
            limit: denial.scope.rawValue
        )
    }
}
