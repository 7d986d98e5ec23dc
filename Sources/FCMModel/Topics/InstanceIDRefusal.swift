/// Why a request by the Instance ID API is refused as a whole.
package struct InstanceIDRefusal: Error, Sendable, Hashable {
    /// Why.
    package var rejection: Rejection
    /// What a developer should know beside the error's name.
    package var reason: String?

    /// A refusal for a reason that waiting does not mend.
    package init(_ code: OutcomeCode, reason: String? = nil) {
        self.init(Rejection(code: code), reason: reason)
    }

    /// A refusal.
    package init(_ rejection: Rejection, reason: String? = nil) {
        self.rejection = rejection
        self.reason = reason
    }
}
