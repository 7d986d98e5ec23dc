/// What became of one device's subscription.
package enum SubscriptionOutcome: Sendable, Hashable {
    /// It is as was asked for, whether or not it was so before.
    case done
    /// It could not be changed.
    case rejected(Rejection)

    /// A rejection that carries nothing but its code.
    package static func rejected(_ code: OutcomeCode) -> SubscriptionOutcome {
        .rejected(Rejection(code: code))
    }
}
