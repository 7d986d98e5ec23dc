package import FCMModel
import Logging
import Metrics
import Synchronization

extension RetiredTokens {
    /// How a send's recipients stand; answered from memory.
    package func screen(
        _ target: Target,
        _ pseudonyms: [Pseudonym],
        of profile: TenantProfile,
        at now: Timestamp
    ) -> RetiredTokenScreening {
        let ledger = self.ledger(of: profile)
        guard !ledger.isEmpty, RetiredTokenKind.of(target) != nil else { return .clear }
        return ledger.screen(pseudonyms, at: now)
    }

    /// Takes a token off a tenant's list, at once in memory and within the flush interval in the store.
    ///
    /// - Returns: whether it was there.
    func delete(_ pseudonym: Pseudonym, of profile: TenantProfile) -> Bool {
        self.ledger(of: profile).delete(pseudonym.high)
    }

    /// Counts recipients that were refused without asking FCM.
    func countRefused(_ count: Int) {
        self.refusals.increment(by: count)
    }

    /// Takes in what FCM answered.
    ///
    /// - Parameters:
    ///   - result: the answer.
    ///   - target: whom the call was for.
    ///   - pseudonyms: the pseudonyms of the target's recipients, in the same order.
    ///   - isListed: whether some of them were on the list before the call.
    ///   - profile: whose call it was.
    ///   - now: the present moment.
    func learn(
        _ result: UpstreamResult,
        to target: Target,
        _ pseudonyms: [Pseudonym],
        isListed: Bool,
        of profile: TenantProfile,
        at now: Timestamp
    ) {
        // The way of nearly every send: nothing is gathered, nothing is locked.
        if !isListed, target.isLoneDevice, result.answer.isPlainAcceptance {
            self.ledger(of: profile).accept(1)
        } else {
            self.learnEach(result, target, pseudonyms, isListed: isListed, of: profile, at: now)
        }
    }

    @inline(never)  // Keeps what it needs out of the way of nearly every send.
    private func learnEach(
        _ result: UpstreamResult,
        _ target: Target,
        _ pseudonyms: [Pseudonym],
        isListed: Bool,
        of profile: TenantProfile,
        at now: Timestamp
    ) {
        switch (target, result.answer) {
        case (.token(let text), .recipients(let outcomes)), (.installation(let text), .recipients(let outcomes)):
            self.learn(outcomes, [text], pseudonyms, isListed: isListed, target, of: profile, at: now)
        case (.tokens(let texts), .recipients(let outcomes)), (.installations(let texts), .recipients(let outcomes)):
            self.learn(outcomes, texts, pseudonyms, isListed: isListed, target, of: profile, at: now)
        case (.token(let text), .failed(.unregistered)), (.installation(let text), .failed(.unregistered)):
            self.learn([.rejected(.unregistered)], [text], pseudonyms, isListed: isListed, target, of: profile, at: now)
        case (.token, _), (.tokens, _), (.installation, _), (.installations, _):
            // A call that failed as a whole says nothing of its recipients, nor does a group's count.
            return
        case (.topic, _), (.condition, _), (.notificationKey, _):
            return
        }
    }

    private func learn(
        _ outcomes: [RecipientOutcome],
        _ texts: [String],
        _ pseudonyms: [Pseudonym],
        isListed: Bool,
        _ target: Target,
        of profile: TenantProfile,
        at now: Timestamp
    ) {
        guard let kind = RetiredTokenKind.of(target), outcomes.count == texts.count, pseudonyms.count == texts.count
        else {
            return
        }
        var accepted = 0
        var reports: [RetiredTokenReport] = []
        for index in outcomes.indices {
            let evidence: RetiredTokenBook.Evidence
            var replacement: String?
            switch outcomes[index] {
            case .accepted(let acceptance):
                replacement = acceptance.replacementToken
                if let replacement {
                    let bits = UInt16(truncatingIfNeeded: profile.pseudonymizer.pseudonym(of: replacement).low)
                    evidence = .replaced(by: bits)
                } else if isListed {
                    evidence = .alive
                } else {
                    accepted += 1
                    continue
                }
            case .rejected(let rejection):
                guard rejection.code == .unregistered else { continue }
                evidence = .dead
            }
            reports.append(
                RetiredTokenReport(
                    finding: RetiredTokenBook.Finding(key: pseudonyms[index].high, evidence: evidence),
                    kind: kind,
                    text: texts[index],
                    replacement: replacement
                )
            )
        }
        let ledger = self.ledger(of: profile)
        ledger.accept(accepted)
        guard !reports.isEmpty else { return }
        guard self.queue.hasRoom else { return self.turnAway(reports.count) }
        self.note(ledger.learn(reports, at: now), in: ledger)
    }

    /// Leaves reports out; they come again with the next sends to their tokens.
    private func turnAway(_ count: Int) {
        self.droppedChanges.increment(by: count)
        guard !self.isOverflowing.exchange(true, ordering: .relaxed) else { return }
        self.logger.error("Reports of retired tokens are left out, because too many wait to be written")
    }
}

extension RetiredTokenKind {
    /// What a target's recipients are; `nil` for one whose recipients can't retire.
    ///
    /// No initialiser, which would take the target over and so count its references.
    static func of(_ target: Target) -> RetiredTokenKind? {
        switch target {
        case .token, .tokens: .token
        case .installation, .installations: .installation
        case .topic, .condition, .notificationKey: nil
        }
    }
}

extension Target {
    /// Whether this is one device, not in a list.
    fileprivate var isLoneDevice: Bool {
        switch self {
        case .token, .installation: true
        case .tokens, .installations, .topic, .condition, .notificationKey: false
        }
    }
}

extension UpstreamResult.Answer {
    /// Whether one recipient was accepted and nothing more was said of it.
    fileprivate var isPlainAcceptance: Bool {
        guard case .recipients(let outcomes) = self, outcomes.count == 1, case .accepted(let acceptance) = outcomes[0]
        else { return false }
        return acceptance.replacementToken == nil
    }
}
