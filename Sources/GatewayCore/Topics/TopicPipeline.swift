package import FCMModel

/// The one way that requests about subscriptions take, whichever surface they came in by: scope, limits, upstream, audit.
package struct TopicPipeline: Sendable {
    private let limiter: any RateLimiter
    private let upstream: any TopicUpstream
    private let audit: AuditLog
    private let clock: any WallClock
    private let metrics: TenantCounters

    /// A pipeline of these parts.
    package init(
        limiter: any RateLimiter,
        upstream: any TopicUpstream,
        audit: AuditLog,
        clock: any WallClock,
        metrics: GatewayMetrics = GatewayMetrics()
    ) {
        self.limiter = limiter
        self.upstream = upstream
        self.audit = audit
        self.clock = clock
        self.metrics = TenantCounters(.subscriptionChanges, metrics)
    }

    /// Changes subscriptions and records what became of them.
    ///
    /// A place in the audit is taken first, so that nothing is changed that can't be recorded.
    ///
    /// - Parameter command: what to change.
    /// - Returns: one outcome for each entry of the command's list; one cause for all is a refusal.
    package func change(_ command: SubscriptionCommand) async -> TopicAnswer<[SubscriptionOutcome]> {
        let now = self.clock.now()
        guard let place = self.audit.reserve() else {
            self.metrics.count(command, .refused(Refusal(.auditUnavailable)))
            return TopicAnswer(.refused(Refusal(.auditUnavailable)))
        }
        let unrecordable = Refusal(.auditUnavailable)
        if self.audit.isStrict,
            !(await self.announce(.subscription(command, .refused(unrecordable), upstreamCode: nil, at: now)))
        {
            self.metrics.count(command, .refused(unrecordable))
            return TopicAnswer(.refused(unrecordable))
        }
        let delivery = await self.deliver(command, now: now)
        place.fill(.subscription(command, delivery.answer.content, upstreamCode: delivery.upstreamCode, at: now))
        if self.audit.isStrict { await self.audit.settle() }
        self.metrics.count(command, delivery.answer.content)
        return delivery.answer
    }

    /// Looks a device up and records that somebody did.
    package func look(up command: RegistrationCommand) async -> TopicAnswer<RegistrationInfo> {
        let now = self.clock.now()
        guard let place = self.audit.reserve() else {
            return TopicAnswer(.refused(Refusal(.auditUnavailable)))
        }
        let unrecordable = Refusal(.auditUnavailable)
        if self.audit.isStrict,
            !(await self.announce(.registration(command, .refused(unrecordable), upstreamCode: nil, at: now)))
        {
            return TopicAnswer(.refused(unrecordable))
        }
        let delivery = await self.deliver(command, now: now)
        place.fill(.registration(command, delivery.answer.content, upstreamCode: delivery.upstreamCode, at: now))
        if self.audit.isStrict { await self.audit.settle() }
        return delivery.answer
    }

    /// Refuses a request by a key that may not manage topics, before its body is read, and records that.
    ///
    /// - Parameters:
    ///   - principal: whose key it is.
    ///   - change: what was to be done; `nil` for a look-up.
    ///   - origin: the request.
    /// - Returns: the refusal.
    package func refuse(
        _ principal: Principal,
        _ change: SubscriptionChange?,
        origin: RequestOrigin
    ) async -> Refusal {
        let refusal = await self.audit.refuse(
            principal,
            lacking: .manageTopics,
            action: AuditAction(change),
            origin: origin,
            at: self.clock.now()
        )
        if let change { self.metrics.count(refusal, of: principal, change) }
        return refusal
    }

    /// An answer before it is recorded.
    private struct Delivery<Value: Sendable> {
        var answer: TopicAnswer<Value>
        var upstreamCode: String?
    }

    // MARK: Changes

    private func deliver(_ command: SubscriptionCommand, now: Timestamp) async -> Delivery<[SubscriptionOutcome]> {
        if let refusal = Self.refusal(of: command.principal, topic: command.topic) {
            return Delivery(answer: TopicAnswer(.refused(refusal)))
        }
        let distinct = DistinctTokens(command.tokens)
        guard !distinct.tokens.isEmpty else {
            return Delivery(answer: TopicAnswer(.value(distinct.spread([]))))
        }
        let decision = await self.charge(command.principal, distinct.tokens.count, now: now)
        let quotas = decision.tenantQuotas
        switch decision.admission {
        case .none(let denial):
            return Delivery(answer: TopicAnswer(.refused(Refusal(denial)), quotas: quotas))
        case .all:
            let result = await self.upstream.change(command.of(distinct.tokens))
            let content = Self.content(distinct.spread(result.outcomes), of: command.principal.profile)
            return Delivery(answer: TopicAnswer(content, quotas: quotas), upstreamCode: result.upstreamCode)
        case .some(let denials):
            let admitted = zip(distinct.tokens, denials).compactMap { $1 == nil ? $0 : nil }
            let result = await self.upstream.change(command.of(admitted))
            var made = result.outcomes.makeIterator()
            let outcomes = denials.map { denial in
                denial.map { .rejected($0.rejection) } ?? made.next() ?? .rejected(.upstreamProtocol)
            }
            let content = Self.content(distinct.spread(outcomes), of: command.principal.profile)
            return Delivery(answer: TopicAnswer(content, quotas: quotas), upstreamCode: result.upstreamCode)
        }
    }

    /// The outcomes, or the one cause that all of them share.
    private static func content(
        _ outcomes: [SubscriptionOutcome],
        of profile: TenantProfile
    ) -> TopicAnswer<[SubscriptionOutcome]>.Content {
        guard case .rejected(let first)? = outcomes.first, first.code.isSharedBySubscriptions else {
            return .value(outcomes)
        }
        var longestDelay: Int?
        for outcome in outcomes {
            guard case .rejected(let rejection) = outcome, rejection.code == first.code,
                rejection.limitedBy == first.limitedBy
            else { return .value(outcomes) }
            if let delay = rejection.retryAfter { longestDelay = max(longestDelay ?? 0, delay) }
        }
        return .refused(
            Refusal(
                first.code,
                first.code == .upstreamCredentials ? profile.missingCredential : nil,
                retryAfter: longestDelay,
                limitedBy: first.limitedBy
            )
        )
    }

    // MARK: Look-ups

    private func deliver(_ command: RegistrationCommand, now: Timestamp) async -> Delivery<RegistrationInfo> {
        if let refusal = Self.refusal(of: command.principal, topic: nil) {
            return Delivery(answer: TopicAnswer(.refused(refusal)))
        }
        guard RegistrationToken.isPlausible(command.token) else {
            return Delivery(answer: TopicAnswer(.refused(Refusal(.invalidToken))))
        }
        let decision = await self.charge(command.principal, 1, now: now)
        let quotas = decision.tenantQuotas
        switch decision.admission {
        case .none(let denial):
            return Delivery(answer: TopicAnswer(.refused(Refusal(denial)), quotas: quotas))
        case .all, .some:
            let result = await self.upstream.lookUp(command)
            let content: TopicAnswer<RegistrationInfo>.Content =
                switch result.answer {
                case .found(let info): .value(info.showing(to: command.principal))
                case .rejected(let rejection):
                    .refused(
                        Refusal(
                            rejection.code,
                            rejection.code == .upstreamCredentials
                                ? command.principal.profile.missingCredential : nil,
                            retryAfter: rejection.retryAfter,
                            limitedBy: rejection.limitedBy
                        )
                    )
                }
            return Delivery(answer: TopicAnswer(content, quotas: quotas), upstreamCode: result.upstreamCode)
        }
    }

    // MARK: Both

    private func announce(_ refused: AuditRecord) async -> Bool {
        (try? await self.audit.announce(refused: refused)) != nil
    }

    private static func refusal(of principal: Principal, topic: TopicName?) -> Refusal? {
        guard principal.has(.manageTopics) else {
            return Refusal(.forbidden, "The key lacks the scope topics:manage")
        }
        if let topic, !principal.key.mayAddress(topic: topic.text) {
            return Refusal(.forbidden, "The key may not address this topic")
        }
        return nil
    }

    /// Charges the tenant for each device; neither devices nor topics receive a message by it.
    private func charge(_ principal: Principal, _ count: Int, now: Timestamp) async -> LimitDecision {
        await self.limiter.admit(LimitRequest(calls: count, of: principal.profile), now: now)
    }
}

extension RegistrationInfo {
    /// Without the topics that a key must not know of.
    fileprivate func showing(to principal: Principal) -> RegistrationInfo {
        var info = self
        info.subscriptions.removeAll { !principal.key.mayAddress(topic: $0.topic) }
        return info
    }
}
