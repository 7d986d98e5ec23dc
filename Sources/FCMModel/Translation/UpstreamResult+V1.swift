extension UpstreamResult {
    /// What one v1 call to a single target achieved.
    ///
    /// - Parameters:
    ///   - reading: the call.
    ///   - knownMembers: how many members the gateway knows of the group; v1 gives no counts, and none
    ///     at all would read as a failure, so an unknown number counts as one (TB-GROUP).
    package init(_ reading: V1Reading, knownMembers: Int? = nil) {
        switch reading.answer {
        case .accepted, .rejected:
            self.init(gathering: [reading])
            self.handedOn = reading.handedOn
        case .group:
            self.init(
                answer: .group(GroupOutcome(success: max(1, knownMembers ?? 1), failure: 0, failedTokens: [])),
                upstreamCode: reading.upstreamCode
            )
        }
    }

    /// What the calls achieved that a list of recipients became.
    ///
    /// Where all failed for one shared cause, such as an upstream that is down, the call failed as a whole.
    ///
    /// - Parameter readings: the calls in the order of the recipients.
    package init(gathering readings: [V1Reading]) {
        var outcomes: [RecipientOutcome] = []
        outcomes.reserveCapacity(readings.count)
        var longestDelay: Int?
        var upstreamCode: String?
        var common: CommonCause = .none
        for reading in readings {
            let outcome = reading.outcome
            common.meet(outcome)
            if case .rejected(let rejection) = outcome {
                upstreamCode = upstreamCode ?? reading.upstreamCode
                if rejection.code.isRetryable, let delay = rejection.retryAfter {
                    longestDelay = max(longestDelay ?? 0, delay)
                }
            }
            outcomes.append(outcome)
        }
        let answer: Answer = if case .one(let code) = common { .failed(code) } else { .recipients(outcomes) }
        self.init(
            answer: answer,
            retryAfter: longestDelay,
            upstreamCode: upstreamCode ?? readings.first?.upstreamCode ?? "none"
        )
    }

    /// The cause that all outcomes met so far share.
    private enum CommonCause {
        /// None was met. Next: `one`, `several`.
        case none
        /// All failed for this. Next: `several`.
        case one(OutcomeCode)
        /// They differ, or are a recipient's own. Final.
        case several

        mutating func meet(_ outcome: RecipientOutcome) {
            // A reason that legacy calls by a name of its own would be lost with the list.
            guard case .rejected(let rejection) = outcome, rejection.code.isShared, rejection.legacyName == nil else {
                self = .several
                return
            }
            switch self {
            case .none: self = .one(rejection.code)
            case .one(rejection.code): break
            case .one, .several: self = .several
            }
        }
    }
}
