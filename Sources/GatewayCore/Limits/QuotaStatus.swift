/// What is left of one policy.
package struct QuotaStatus: Sendable, Hashable {
    /// The policy.
    package var policy: RatePolicy
    /// How many events fit now.
    package var remaining: Int
    /// Seconds, rounded up, until one event fits where none does now, else until the quota is whole again.
    package var resetSeconds: Int

    /// A status.
    package init(policy: RatePolicy, remaining: Int, resetSeconds: Int) {
        self.policy = policy
        self.remaining = remaining
        self.resetSeconds = resetSeconds
    }
}
