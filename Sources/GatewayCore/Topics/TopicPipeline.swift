package import FCMModel

/// What a request about subscriptions came to.
package struct TopicAnswer<Value: Sendable>: Sendable {
    /// What was asked for, or why it can't be had.
    package enum Content: Sendable {
        case value(Value)
        /// Nothing could be done, for one cause.
        case refused(Refusal)
    }

    package var content: Content
    /// The tenant's quotas after the request; empty where they were not asked.
    package var quotas: [QuotaStatus]

    package init(_ content: Content, quotas: [QuotaStatus] = []) {
        self.content = content
        self.quotas = quotas
    }
}

/// The one way that requests about subscriptions take, whichever surface they came in by: scope, limits, upstream, audit.
package struct TopicPipeline: Sendable {
    private let limiter: any RateLimiter
    private let upstream: any TopicUpstream
    private let audit: AuditLog
    private let clock: any WallClock
    let metrics: TenantCounters

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
        self.metrics = TenantCounters(
            .subscriptionChanges,
            metrics,
            startingWith: SubscriptionChange.allCases.map(\.rawValue)
        )
    }

    /// Changes subscriptions and records what became of them: one outcome for each entry of the call's list, or one
    /// cause for all.
    package func change(_ call: SubscriptionCall) async -> TopicAnswer<[SubscriptionOutcome]> {
        let answer: TopicAnswer<[SubscriptionOutcome]> = await self.recording(
            call.caller.principal,
            topic: call.topic,
            { .subscription(call, $0, upstreamCode: $1, at: $2) },
            { now, upstreamCode in await self.deliver(call, now: now, &upstreamCode) }
        )
        self.metrics.count(call, answer.content)
        return answer
    }

    package func look(up call: RegistrationCall) async -> TopicAnswer<RegistrationInfo> {
        await self.recording(
            call.caller.principal,
            topic: nil,
            { .registration(call, $0, upstreamCode: $1, at: $2) },
            { now, upstreamCode in await self.deliver(call, now: now, &upstreamCode) }
        )
    }

    /// Does what a body does, which also tells what FCM said, and records it; first it refuses what the key may not do, and
    /// what the tenant is known to have no room for.
    private func recording<Value: Sendable>(
        _ principal: Principal,
        topic: TopicName?,
        _ record: (TopicAnswer<Value>.Content, _ upstreamCode: String?, _ time: Timestamp) -> AuditRecord,
        _ body: (_ now: Timestamp, _ upstreamCode: inout String?) async -> TopicAnswer<Value>
    ) async -> TopicAnswer<Value> {
        let now = self.clock.now()
        if let (refusal, quotas) = self.refusal(of: principal, topic: topic, now) {
            await self.audit.record(refused: record(.refused(refusal), nil, now))
            return TopicAnswer(.refused(refusal), quotas: quotas)
        }
        let unrecordable = Refusal(.auditUnavailable)
        let draft = record(.refused(unrecordable), nil, now)
        do throws(Refusal) {
            return try await self.audit.recording(draft, orThrow: unrecordable) { done throws(Refusal) in
                var upstreamCode: String?
                let answer = await body(now, &upstreamCode)
                done = record(answer.content, upstreamCode, now)
                return answer
            }
        } catch {
            return TopicAnswer(.refused(error))
        }
    }

    // MARK: Changes

    private func deliver(
        _ call: SubscriptionCall,
        now: Timestamp,
        _ upstreamCode: inout String?
    ) async -> TopicAnswer<[SubscriptionOutcome]> {
        let distinct = DistinctTokens(call.tokens)
        guard !distinct.tokens.isEmpty else { return TopicAnswer(.value(distinct.spread([]))) }
        let decision = await self.charge(call.profile, distinct.tokens.count, now: now)
        var outcomes: [SubscriptionOutcome]
        switch decision.admission {
        case .none(let denial):
            return TopicAnswer(.refused(Refusal(denial)), quotas: decision.tenantQuotas)
        case .all:
            let result = await self.upstream.change(call.addressing(distinct.tokens))
            upstreamCode = result.upstreamCode
            outcomes = result.outcomes
        case .some(let denials):
            let admitted = zip(distinct.tokens, denials).compactMap { $1 == nil ? $0 : nil }
            let result = await self.upstream.change(call.addressing(admitted))
            upstreamCode = result.upstreamCode
            var made = result.outcomes.makeIterator()
            outcomes = denials.map { denial in
                denial.map { .rejected($0.rejection) } ?? made.next() ?? .rejected(.upstreamProtocol)
            }
        }
        outcomes = distinct.spread(outcomes)
        return TopicAnswer(Self.content(outcomes, of: call.profile), quotas: decision.tenantQuotas)
    }

    /// The outcomes, or the one cause that all of them share.
    private static func content(
        _ outcomes: [SubscriptionOutcome],
        of profile: TenantProfile
    ) -> TopicAnswer<[SubscriptionOutcome]>.Content {
        guard case .rejected(let first)? = outcomes.first, first.code.isSharedBySubscriptions else {
            return .value(outcomes)
        }
        var shared = first
        shared.retryAfter = nil
        for outcome in outcomes {
            guard case .rejected(let rejection) = outcome, rejection.code == first.code,
                rejection.limitedBy == first.limitedBy
            else { return .value(outcomes) }
            if let delay = rejection.retryAfter { shared.retryAfter = max(shared.retryAfter ?? 0, delay) }
        }
        return .refused(Refusal(shared, ofTopicsOf: profile))
    }

    // MARK: Look-ups

    private func deliver(
        _ call: RegistrationCall,
        now: Timestamp,
        _ upstreamCode: inout String?
    ) async -> TopicAnswer<RegistrationInfo> {
        guard RegistrationToken.isPlausible(call.token) else { return TopicAnswer(.refused(Refusal(.invalidToken))) }
        let decision = await self.charge(call.profile, 1, now: now)
        if case .none(let denial) = decision.admission {
            return TopicAnswer(.refused(Refusal(denial)), quotas: decision.tenantQuotas)
        }
        let result = await self.upstream.lookUp(call)
        upstreamCode = result.upstreamCode
        let content: TopicAnswer<RegistrationInfo>.Content =
            switch result.answer {
            case .found(let info): .value(info.showing(to: call.caller.principal))
            case .rejected(let rejection): .refused(Refusal(rejection, ofTopicsOf: call.profile))
            }
        return TopicAnswer(content, quotas: decision.tenantQuotas)
    }

    // MARK: Both

    private typealias Refused = (refusal: Refusal, quotas: [QuotaStatus])

    private func refusal(of principal: Principal, topic: TopicName?, _ now: Timestamp) -> Refused? {
        if let topic, !principal.key.mayAddress(topic: topic.text) {
            return (Refusal(.forbidden, "The key may not address this topic"), [])
        }
        return self.limiter.refusal(of: principal.profile, now: now)
    }

    /// Charges the tenant for each device; neither devices nor topics receive a message by it.
    private func charge(_ profile: TenantProfile, _ count: Int, now: Timestamp) async -> LimitDecision {
        await self.limiter.admit(LimitRequest(calls: count, of: profile), now: now)
    }
}

/// A list of devices as it is worked off: each once, and only those that can be devices at all.
struct DistinctTokens: Sendable {
    /// The devices to ask FCM about, in the order in which they were named first.
    let tokens: [String]
    /// For each entry of the list the place of its device in ``tokens``; `nil` for what is none.
    private let places: [Int?]

    init(_ list: [String]) {
        // By bytes: as text, some that FCM tells apart are equal.
        var known: [[UInt8]: Int] = [:]
        var tokens: [String] = []
        known.reserveCapacity(list.count)
        tokens.reserveCapacity(list.count)
        self.places = list.map { token in
            let bytes = Array(token.utf8)
            if let place = known[bytes] { return place }
            guard RegistrationToken.isPlausible(token) else { return nil }
            known[bytes] = tokens.count
            tokens.append(token)
            return tokens.count - 1
        }
        self.tokens = tokens
    }

    func spread(_ outcomes: [SubscriptionOutcome]) -> [SubscriptionOutcome] {
        self.places.map { place in
            guard let place else { return .rejected(.invalidToken) }
            // Each device has an outcome; one that an upstream owes is nobody's success.
            return outcomes.indices.contains(place) ? outcomes[place] : .rejected(.upstreamProtocol)
        }
    }
}

extension RegistrationInfo {
    fileprivate func showing(to principal: Principal) -> RegistrationInfo {
        var info = self
        info.subscriptions.removeAll { !principal.key.mayAddress(topic: $0.topic) }
        return info
    }
}

extension Refusal {
    fileprivate init(_ rejection: Rejection, ofTopicsOf profile: TenantProfile) {
        self.init(
            rejection.code,
            rejection.code == .upstreamCredentials ? profile.missingCredential : nil,
            retryAfter: rejection.retryAfter,
            limitedBy: rejection.limitedBy
        )
    }
}

// MARK: Records

extension AuditRecord {
    /// The record of a change of subscriptions: its targets are the topic, then the devices as they were named.
    static func subscription(
        _ call: SubscriptionCall,
        _ content: TopicAnswer<[SubscriptionOutcome]>.Content,
        upstreamCode: String?,
        at time: Timestamp
    ) -> AuditRecord {
        var accepted = 0
        var code: String?
        var results: [TargetResult] = []
        switch content {
        case .refused(let refusal): code = refusal.code.rawValue
        case .value(let outcomes):
            for outcome in outcomes {
                switch outcome {
                case .done:
                    accepted += 1
                    results.append(TargetResult())
                case .rejected(let rejection):
                    code = code ?? rejection.code.rawValue
                    results.append(TargetResult(code: rejection.code.rawValue))
                }
            }
        }
        let count = call.tokens.count
        var record = AuditRecord(
            AuditAction(call.change),
            by: call.caller.principal,
            call.origin,
            accepted == 0 ? .rejected : accepted == count ? .accepted : .partial,
            at: time
        )
        record.targetKind = Self.subscriptionKind
        record.append([call.topic.text] + call.tokens, of: call.profile)
        record.results = results
        record.recipients = count
        record.accepted = accepted
        record.code = code
        record.upstreamCode = upstreamCode
        return record
    }

    static func registration(
        _ call: RegistrationCall,
        _ content: TopicAnswer<RegistrationInfo>.Content,
        upstreamCode: String?,
        at time: Timestamp
    ) -> AuditRecord {
        var record = AuditRecord(.topicList, by: call.caller.principal, call.origin, at: time)
        record.targetKind = Self.subscriptionKind
        record.append([call.token], of: call.profile)
        record.recipients = 1
        record.accepted = 1
        record.upstreamCode = upstreamCode
        if case .refused(let refusal) = content { record.reject(refusal.code) }
        return record
    }

    private static let subscriptionKind = "subscription"
}

extension AuditAction {
    package init(_ change: SubscriptionChange) {
        switch change {
        case .subscribe: self = .topicSubscribe
        case .unsubscribe: self = .topicUnsubscribe
        }
    }
}
