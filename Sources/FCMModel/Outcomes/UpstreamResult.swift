/// What one upstream call achieved.
package struct UpstreamResult: Sendable, Hashable {
    /// The shape of the answer.
    package enum Answer: Sendable, Hashable {
        /// One outcome for each recipient, in the request's order; a topic or a condition counts as one recipient.
        case recipients([RecipientOutcome])
        /// Counts for a device group, which FCM answers instead of single outcomes.
        case group(GroupOutcome)
        /// The call failed as a whole, for every recipient alike.
        case failed(OutcomeCode)
    }

    /// The outcomes.
    package var answer: Answer
    /// Seconds to wait before repeating, where the upstream named them and something can be repeated.
    package var retryAfter: Int?
    /// What the upstream itself said, bounded and free of payload: an HTTP status or an error name.
    package var upstreamCode: String
    /// The legacy protocol's name for why the call failed as a whole, where it says more than the code: `InvalidTtl` is
    /// an invalid field among others.
    package private(set) var legacyName: LegacyErrorName?
    /// The answer itself, where a caller of the v1 facade gets it as it came.
    package var handedOn: V1HandedOn?

    /// An answered call.
    ///
    /// - Parameters:
    ///   - answer: the outcomes.
    ///   - retryAfter: seconds to wait before repeating.
    ///   - upstreamCode: what the upstream itself said.
    ///   - legacyName: what the legacy protocol calls the reason of a failed call; kept only where the code alone would
    ///     be called something else.
    ///   - handedOn: the answer itself, where a caller gets it as it came.
    package init(
        answer: Answer,
        retryAfter: Int? = nil,
        upstreamCode: String,
        legacyName: LegacyErrorName? = nil,
        handedOn: V1HandedOn? = nil
    ) {
        self.answer = answer
        self.retryAfter = retryAfter
        self.upstreamCode = upstreamCode
        self.handedOn = handedOn
        if let legacyName, case .failed(let code) = answer, code.legacyErrorName != legacyName.current {
            self.legacyName = legacyName.current
        }
    }
}

/// What became of a message to a device group.
///
/// Counts are kept within 0 and ``AnswerBounds/maxMembers``, so that they can be added up.
package struct GroupOutcome: Sendable, Hashable {
    /// Members that FCM accepted the message for.
    package let success: Int
    /// Members that FCM could not accept it for.
    package let failure: Int
    /// The failed members that FCM named; worth repeating with backoff.
    package var failedTokens: [String]
    /// FCM's own id of the message, where it named one beside or in place of counts.
    package var messageID: String?

    /// Whether a repeat to the failed members makes sense.
    package var isRetryable: Bool { self.failure > 0 }

    /// Counts as FCM reported them.
    package init(success: Int, failure: Int, failedTokens: [String], messageID: String? = nil) {
        self.success = min(max(0, success), AnswerBounds.maxMembers)
        self.failure = min(max(0, failure), AnswerBounds.maxMembers)
        self.failedTokens = failedTokens
        self.messageID = messageID
    }
}
