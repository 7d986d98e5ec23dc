import FCMModel

extension AuditRecord {
    /// The record of a send.
    ///
    /// - Parameters:
    ///   - command: what was asked for.
    ///   - outcome: what became of it.
    ///   - targets: its recipients' pseudonyms.
    ///   - upstreamCode: what the upstream said, if it was asked.
    ///   - time: when the gateway took the command.
    /// - Returns: the record.
    static func send(
        _ command: SendCommand,
        _ outcome: SendOutcome,
        targets: SendTargets,
        upstreamCode: String?,
        at time: Timestamp
    ) -> AuditRecord {
        let tally = Tally(of: outcome.answer, recipients: command.target.recipientCount)
        var record = AuditRecord(
            time: time,
            tenant: command.principal.profile.id.text,
            principal: command.principal.auditName,
            action: (command.message.dryRun ? AuditAction.messageValidate : .messageSend).rawValue,
            outcome: tally.outcome,
            requestID: command.origin.requestID
        )
        record.tenantUID = command.principal.profile.uid
        record.method = command.origin.method
        record.targetKind = command.target.kind.rawValue
        record.targets = targets.auditBytes
        record.recipients = tally.recipients
        record.accepted = tally.accepted
        record.bytes = command.payloadBytes
        record.code = tally.code
        record.upstreamCode = upstreamCode
        record.fcmMessageID = tally.fcmMessageID
        record.messageID = outcome.messageID
        record.traceID = command.origin.traceID
        return record
    }
}

/// An answer as the audit counts it.
private struct Tally {
    var recipients: Int
    var accepted = 0
    /// The first refusal's code.
    var code: String?
    /// A lone message's id.
    var fcmMessageID: String?

    init(of answer: SendOutcome.Answer, recipients: Int) {
        self.recipients = recipients
        switch answer {
        case .refused(let refusal):
            self.code = refusal.code.rawValue
        case .group(let group):
            self.recipients = group.success + group.failure
            self.accepted = group.success
            self.fcmMessageID = group.messageID
        case .single(let result):
            self.add(result, isOnly: true)
        case .multiple(let results):
            for result in results { self.add(result, isOnly: results.count == 1) }
        }
    }

    private mutating func add(_ result: RecipientOutcome, isOnly: Bool) {
        switch result {
        case .accepted(let acceptance):
            self.accepted += 1
            if isOnly { self.fcmMessageID = acceptance.messageID }
        case .rejected(let rejection):
            self.code = self.code ?? rejection.code.rawValue
        }
    }

    var outcome: AuditRecord.Outcome {
        self.accepted == 0 ? .rejected : self.accepted == self.recipients ? .accepted : .partial
    }
}
