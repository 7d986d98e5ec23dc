import FCMModel

extension AuditRecord {
    /// The record of a send.
    static func send(
        _ command: SendCommand,
        _ outcome: SendOutcome,
        targets: SendTargets,
        upstreamCode: String?,
        at time: Timestamp
    ) -> AuditRecord {
        let tally = Tally(of: outcome.answer, recipients: command.target.recipientCount)
        var record = AuditRecord(
            command.message.dryRun ? .messageValidate : .messageSend,
            by: command.principal,
            command.origin,
            tally.outcome,
            at: time
        )
        record.targetKind = command.target.kind.rawValue
        record.targets = targets.auditBytes
        record.recipients = tally.recipients
        record.accepted = tally.accepted
        record.bytes = command.payloadBytes
        record.code = tally.code
        record.upstreamCode = upstreamCode
        record.fcmMessageID = tally.fcmMessageID
        record.messageID = outcome.messageID
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
