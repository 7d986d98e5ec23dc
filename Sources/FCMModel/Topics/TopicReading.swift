/// What one call about subscriptions came to.
package struct TopicReading: Sendable, Hashable {
    /// The answer's meaning for the caller.
    package enum Answer: Sendable, Hashable {
        /// One outcome for each device of the call, in its order.
        case changed([SubscriptionOutcome])
        /// What is known of the device, and by what the rest of it is asked for, if there is more.
        case registration(RegistrationInfo, nextPage: String?)
        /// The call was refused as a whole.
        case rejected(Rejection)
    }

    /// The answer's meaning for whoever makes the calls.
    package enum Signal: Sendable, Hashable {
        /// Nothing beyond the answer.
        case none
        /// Our access token was refused: a fresh one is worth one repeat (V-TOKEN).
        case tokenRefused
        /// Every further call of the tenant's would be refused alike: its credential, or its quota.
        case holdsForAll
        /// What answers knows nothing at this path: the API is not served there, or not to this project (V-TOPICS).
        case apiMissing
    }

    /// What became of the call.
    package var answer: Answer
    /// What the caller of the API has to heed.
    package var signal: Signal
    /// What FCM itself said, a bounded set: an error's name, or the HTTP status.
    package var upstreamCode: String

    /// A reading.
    package init(_ answer: Answer, signal: Signal = .none, upstreamCode: String) {
        self.answer = answer
        self.signal = signal
        self.upstreamCode = upstreamCode
    }

    /// A call that was refused as a whole.
    ///
    /// - Parameters:
    ///   - code: why.
    ///   - retryAfter: seconds to wait, where somebody named them.
    ///   - signal: what to heed.
    ///   - upstreamCode: what FCM said, or what happened on the way.
    package init(rejected code: OutcomeCode, retryAfter: Int? = nil, signal: Signal = .none, upstreamCode: String) {
        let isQuota = code == .tenantRateExceeded
        self.init(
            .rejected(Rejection(code: code, retryAfter: retryAfter, limitedBy: isQuota ? .fcm : nil)),
            signal: signal,
            upstreamCode: upstreamCode
        )
    }
}
