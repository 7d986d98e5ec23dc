package import FCMModel

extension SendPipeline {
    /// Commits that a message is about to be sent.
    ///
    /// - Returns: whether it may be.
    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller.
    func announce(
        _ command: SendCommand,
        _ messageID: String,
        targets: SendTargets,
        at time: Timestamp
    ) async -> Bool {
        let outcome = SendOutcome(messageID: messageID, answer: .refused(Refusal(.auditUnavailable)))
        let refused = AuditRecord.send(command, outcome, targets: targets, upstreamCode: nil, at: time)
        return (try? await self.audit.announce(refused: refused)) != nil
    }
}

extension SendPipeline {
    /// Refuses a send by a key that may not send, before its body is read, and records that.
    package func refuse(_ principal: Principal, origin: RequestOrigin) async -> Refusal {
        let refusal = await self.audit.refuse(
            principal,
            lacking: .sendMessages,
            action: .messageSend,
            origin: origin,
            at: self.clock.now()
        )
        self.metrics.count(refusal, of: principal)
        return refusal
    }
}
