import FCMModel

extension AuditRecord {
    /// The record of a change of subscriptions.
    ///
    /// Its targets are the topic, then the devices as they were named.
    static func subscription(
        _ command: SubscriptionCommand,
        _ content: TopicAnswer<[SubscriptionOutcome]>.Content,
        upstreamCode: String?,
        at time: Timestamp
    ) -> AuditRecord {
        var accepted = 0
        var code: String?
        switch content {
        case .refused(let refusal): code = refusal.code.rawValue
        case .value(let outcomes):
            for outcome in outcomes {
                switch outcome {
                case .done: accepted += 1
                case .rejected(let rejection): code = code ?? rejection.code.rawValue
                }
            }
        }
        let count = command.tokens.count
        var record = AuditRecord(
            command.principal,
            action: AuditAction(command.change),
            outcome: accepted == 0 ? .rejected : accepted == count ? .accepted : .partial,
            origin: command.origin,
            targets: [command.topic.text] + command.tokens,
            at: time
        )
        record.recipients = count
        record.accepted = accepted
        record.code = code
        record.upstreamCode = upstreamCode
        return record
    }

    /// The record of a look-up of one device.
    static func registration(
        _ command: RegistrationCommand,
        _ content: TopicAnswer<RegistrationInfo>.Content,
        upstreamCode: String?,
        at time: Timestamp
    ) -> AuditRecord {
        var refusal: Refusal?
        if case .refused(let cause) = content { refusal = cause }
        var record = AuditRecord(
            command.principal,
            action: .topicList,
            outcome: refusal == nil ? .accepted : .rejected,
            origin: command.origin,
            targets: [command.token],
            at: time
        )
        record.recipients = 1
        record.accepted = refusal == nil ? 1 : 0
        record.code = refusal?.code.rawValue
        record.upstreamCode = upstreamCode
        return record
    }

    private init(
        _ principal: Principal,
        action: AuditAction,
        outcome: Outcome,
        origin: RequestOrigin,
        targets: [String],
        at time: Timestamp
    ) {
        self.init(
            time: time,
            tenant: principal.profile.id.text,
            principal: principal.auditName,
            action: action.rawValue,
            outcome: outcome,
            requestID: origin.requestID
        )
        self.tenantUID = principal.profile.uid
        self.method = origin.method
        self.targetKind = "subscription"
        self.targets.reserveCapacity(targets.count * Pseudonym.byteCount)
        for target in targets {
            principal.profile.pseudonymizer.pseudonym(of: target).append(to: &self.targets)
        }
        self.traceID = origin.traceID
    }
}

extension AuditAction {
    /// A change of subscriptions, or a look-up.
    init(_ change: SubscriptionChange?) {
        switch change {
        case .subscribe: self = .topicSubscribe
        case .unsubscribe: self = .topicUnsubscribe
        case nil: self = .topicList
        }
    }
}
