/// How far a send would get before it leaves the gateway.
package struct SendPreview: Sendable {
    /// Why it would be refused whatever its quotas, if it would be.
    package var refusal: SendRefusal?
    /// What is left of the quotas that it would be charged to.
    package var limits: LimitStatus

    /// A preview.
    package init(refusal: SendRefusal?, limits: LimitStatus) {
        self.refusal = refusal
        self.limits = limits
    }
}
