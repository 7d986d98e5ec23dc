import FCMModel

extension SendPipeline {
    /// Records what is known of a send whose end was not kept, mostly since its process did not live to see it.
    func recordAbandoned(_ command: SendCommand, _ outcome: SendOutcome, in place: consuming AuditReservation) {
        var record = AuditRecord.send(
            command,
            outcome,
            targets: SendTargets(command.target, profile: command.principal.profile),
            upstreamCode: nil,
            at: self.clock.now()
        )
        record.object = "settled by a repeat"
        place.fill(record)
        self.metrics.count(command, outcome.answer)
    }
}
