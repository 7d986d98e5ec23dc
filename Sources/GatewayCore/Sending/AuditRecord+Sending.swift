import FCMModel

extension AuditRecord {
    /// The record of a send.
    init(
        sending command: SendCommand,
        outcome: SendOutcome,
        targets: SendTargets,
        upstreamCode: String?,
        at time: Timestamp
    ) {
        self.init(
            time: time,
            tenant: command.principal.profile.id.text,
            principal: command.principal.auditName,
            action: command.message.dryRun ? "message.validate" : "message.send",
            outcome: .rejected,
            requestID: command.origin.requestID
        )
        self.method = command.origin.method
        self.targetKind = command.target.kind.rawValue
        self.targets = targets.auditBytes
        self.recipients = command.target.recipientCount
        self.bytes = command.payloadBytes
        self.upstreamCode = upstreamCode
        self.messageID = outcome.messageID
        self.traceID = command.origin.traceID

        switch outcome.answer {
        case .refused(let refusal):
            self.code = refusal.code.rawValue
        case .group(let group):
            self.recipients = group.success + group.failure
            self.accepted = group.success
        case .single(let result):
            self.note([result])
        case .multiple(let results):
            self.note(results)
        }
        if self.accepted > 0 {
            self.outcome = self.accepted == self.recipients ? .accepted : .partial
        }
    }

    /// Counts results; a lone message's id and the first refusal's code are kept.
    private mutating func note(_ results: [RecipientOutcome]) {
        for result in results {
            switch result {
            case .accepted(let acceptance):
                self.accepted += 1
                if results.count == 1 { self.fcmMessageID = acceptance.messageID }
            case .rejected(let rejection):
                self.code = self.code ?? rejection.code.rawValue
            }
        }
    }
}
