/// What one call of `messages:send` came to.
package struct V1Reading: Sendable, Hashable {
    /// The answer's meaning for the caller.
    package enum Answer: Sendable, Hashable {
        /// FCM took the message, under its own id.
        case accepted(messageID: String)
        /// FCM took a message for a device group; it tells neither an id nor counts (TB-GROUP).
        case group
        /// FCM did not take the message.
        case rejected(Rejection)
    }

    /// The answer's meaning for whoever keeps up the connection to FCM.
    package enum Signal: Sendable, Hashable {
        /// Nothing beyond the answer.
        case none
        /// Our access token was refused: a fresh one is worth one repeat (V-TOKEN).
        case tokenRefused
        /// Our credential or configuration is at fault, and no token mends it.
        case credentialRefused
        /// The project's quota is used up: all of its calls have to wait.
        case projectQuota
        /// One target's quota is used up.
        case targetQuota
        /// FCM or the way to it is in trouble; counts for the breaker.
        case trouble
    }

    /// What became of the message.
    package var answer: Answer
    /// What the sender has to heed.
    package var signal: Signal
    /// What FCM itself said, a bounded set: its error code, or the HTTP status.
    package var upstreamCode: String
    /// Whether a caller of the v1 facade gets the answer as it came: it carries an `FcmError`, or is a 400 (V-FACADE).
    package var isHandedOn: Bool
    /// That answer, where the reader was asked to keep it.
    package var handedOn: V1HandedOn?

    /// A reading.
    package init(answer: Answer, signal: Signal = .none, upstreamCode: String, isHandedOn: Bool = false) {
        self.answer = answer
        self.signal = signal
        self.upstreamCode = upstreamCode
        self.isHandedOn = isHandedOn
    }

    /// A call that got no answer (TB-TRANSPORT): `Unavailable` in legacy words, whether or not FCM may have taken it.
    ///
    /// - Parameters:
    ///   - code: what REST callers are told, such as `outcome_unknown` where the request may have arrived.
    ///   - upstreamCode: what happened, from a bounded set.
    package init(transportFailure code: OutcomeCode, upstreamCode: String) {
        self.init(
            answer: .rejected(Rejection(code: code, legacyName: .unavailable)),
            signal: .trouble,
            upstreamCode: upstreamCode
        )
    }

    /// The outcome for one recipient of a list, where an empty answer proves nothing.
    package var outcome: RecipientOutcome {
        switch self.answer {
        case .accepted(let messageID): .accepted(Acceptance(messageID: messageID))
        case .group: .rejected(.upstreamProtocol)
        case .rejected(let rejection): .rejected(rejection)
        }
    }
}
