package import FCMModel

/// A checked message on its way into the pipeline.
///
/// A class, since it is handed on many times and copying its parts each time would cost more than the pipeline itself.
package final class SendCommand: Sendable {
    package let caller: Caller
    /// Whom it is for; for a device group that was named, its name stands in place of the key that is not known yet.
    package let target: Target
    /// Whether its one token may be the key of a device group: FCM's own protocols take either in one place.
    let tokenMayBeGroup: Bool
    /// The name of the device group that it is for, where the caller named one; its key is found on the way.
    package let groupName: String?
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
        groupName: String? = nil,
        message: Message,
        payloadBytes: Int
    ) {
        self.caller = caller
        self.target = target
        self.tokenMayBeGroup = tokenMayBeGroup
        self.groupName = groupName
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

/// What became of a send.
package struct SendOutcome: Sendable {
    /// An answer by the form of what was addressed.
    package enum Answer: Sendable, Hashable {
        /// One recipient, a topic or a condition.
        case single(RecipientOutcome)
        /// One outcome for each recipient, in the request's order.
        case multiple([RecipientOutcome])
        case group(GroupOutcome)
        /// Nothing could be tried, for one cause.
        ///
        /// Indirect, so that the answers of nearly all sends stay small.
        indirect case refused(Refusal)
    }

    /// The message's id, under which it is audited.
    package var messageID: String
    package var answer: Answer
    /// The tenant's quotas after the send; empty where they were not asked.
    package var quotas: [QuotaStatus]
    /// The upstream's own answer, where a caller of the v1 facade gets it as it came.
    package var passThrough: PassThrough?

    package init(messageID: String, answer: Answer, quotas: [QuotaStatus] = [], passThrough: PassThrough? = nil) {
        self.messageID = messageID
        self.answer = answer
        self.quotas = quotas
        self.passThrough = passThrough
    }
}

extension SendOutcome {
    /// The code of the first refusal; `nil` where everybody was accepted.
    package var code: OutcomeCode? {
        switch self.answer {
        case .refused(let refusal): refusal.code
        case .single(let outcome): outcome.code
        case .multiple(let outcomes): outcomes.lazy.compactMap(\.code).first
        case .group: nil
        }
    }
}

extension SendOutcome.Answer {
    /// Whether nothing reached FCM, or FCM itself said that it took nothing, for causes that pass: a repeat under the same
    /// idempotency key then sends.
    var freesKey: Bool {
        switch self {
        case .refused(let refusal): refusal.code.freesKey
        case .single(let outcome): outcome.code?.freesKey == true
        case .multiple(let outcomes): outcomes.allSatisfy { $0.code?.freesKey == true }
        case .group: false
        }
    }

    /// Whether another replica had taken the request's key, or took it meanwhile.
    var isInProgress: Bool {
        if case .refused(let refusal) = self { refusal.code == .idempotencyInProgress } else { false }
    }

    /// Whether it is unknown of some recipient if the message was delivered.
    var hasUnknown: Bool {
        switch self {
        case .refused(let refusal): refusal.code == .outcomeUnknown
        case .single(let outcome): outcome.code == .outcomeUnknown
        case .multiple(let outcomes): outcomes.contains { $0.code == .outcomeUnknown }
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
