package import FCMModel

/// How far a send would get before it leaves the gateway.
package struct SendPreview: Sendable {
    /// Why it would be refused whatever its quotas, if it would be.
    package var refusal: Refusal?
    /// What is left of the quotas that it would be charged to.
    package var limits: LimitStatus

    /// A preview.
    package init(refusal: Refusal?, limits: LimitStatus) {
        self.refusal = refusal
        self.limits = limits
    }
}

extension SendPipeline {
    /// Charges a tenant for a preview: one message of its quota, and nothing of any device's or topic's.
    ///
    /// - Returns: `nil` where the quota has room, else the refusal.
    package func charge(_ principal: Principal) async -> Refusal? {
        let decision = await self.limiter.admit(LimitRequest(calls: 1, of: principal.profile), now: self.clock.now())
        guard case .none(let denial) = decision.admission else { return nil }
        return Refusal(denial)
    }

    /// Tells how far a send would get; nothing is sent, spent or recorded.
    package func preview(_ command: SendCommand) async -> SendPreview {
        var targets = SendTargets(command.target, profile: command.principal.profile)
        if let groups = self.groups, groups.mayBeAddressed(by: command) {
            targets = targets.charging(await groups.limitKeys(of: command))
        }
        let now = self.clock.now()
        return SendPreview(
            refusal: self.refusal(of: command) ?? self.retirement(of: command, targets, now),
            limits: await self.limiter.status(of: LimitRequest(command, targets), now: now)
        )
    }
}
