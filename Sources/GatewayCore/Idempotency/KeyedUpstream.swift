import FCMModel

/// An upstream that is asked only once it is durable that it is about to be.
struct KeyedUpstream: UpstreamSender {
    let upstream: any UpstreamSender
    let attempt: SendAttempt

    func refusal(of target: Target, for profile: TenantProfile) -> Refusal? {
        self.upstream.refusal(of: target, for: profile)
    }

    func send(_ call: UpstreamCall) async -> UpstreamResult {
        let gate = self.attempt.gate(to: call.target)
        // By v1 a list is a call for each of its recipients; anything else leaves as a whole.
        if call.profile.tenant.upstream == .v1, call.target.isList {
            let result = await self.upstream.send(call.passing(gate))
            // Without the key, no call has left; one answer says so better than one for each.
            return self.attempt.recordID == nil ? self.refused ?? result : result
        }
        guard await gate.pass(call.target.recipientCount - 1) else {
            return self.refused ?? UpstreamResult(answer: .failed(.overloaded), upstreamCode: "not_started")
        }
        return await self.upstream.send(call.passing(gate))
    }

    private var refused: UpstreamResult? {
        self.attempt.refusal.map {
            UpstreamResult(answer: .failed($0.code), retryAfter: $0.retryAfter, upstreamCode: "not_started")
        }
    }
}
