package import FCMModel

/// What became of the devices of a ``SubscriptionCall``.
package struct SubscriptionResult: Sendable, Hashable {
    /// One outcome for each device, in the call's order.
    package var outcomes: [SubscriptionOutcome]
    /// What FCM itself said, bounded and free of tokens: an HTTP status or an error's name.
    package var upstreamCode: String

    /// A result.
    package init(_ outcomes: [SubscriptionOutcome], upstreamCode: String) {
        self.outcomes = outcomes
        self.upstreamCode = upstreamCode
    }

    /// The same rejection for every device of a call.
    package init(_ rejection: Rejection, for call: SubscriptionCall, upstreamCode: String) {
        self.init(Array(repeating: .rejected(rejection), count: call.tokens.count), upstreamCode: upstreamCode)
    }
}
