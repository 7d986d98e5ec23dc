package import FCMModel

/// The one way of all requests about subscriptions, from any surface: topics of the key, limits, upstream, audit.
package struct TopicPipeline: Sendable {
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
                // Each device has an outcome. A missing one does not count as a success.
                return outcomes.indices.contains(place) ? outcomes[place] : .rejected(.upstreamProtocol)
            }
        }
    }

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

    /// Changes subscriptions and records the outcomes: one for each entry of the call's list, or one refusal of all.
    package func change(_ call: SubscriptionCall) async -> ChargedAnswer<[SubscriptionOutcome]> {
        let draft = AuditRecord(call, at: self.clock.now())
        let answer = await self.recording(draft, by: call.caller.principal, topic: call.topic) { record in
            let answer = await self.deliver(call, &record)
            if case .success(let outcomes) = answer.result { record.note(outcomes) }
            return answer
        }
        self.metrics.count(call, answer.result)
        return answer
    }

    package func look(up call: RegistrationCall) async -> ChargedAnswer<RegistrationInfo> {
        let draft = AuditRecord(call, at: self.clock.now())
        return await self.recording(draft, by: call.caller.principal) { await self.deliver(call, &$0) }
    }

    /// Records a request, and refuses it first if the key may not address the topic, or if the tenant's quota is known
    /// to have no room.
    private func recording<Value: Sendable>(
        _ draft: AuditRecord,
        by principal: Principal,
        topic: TopicName? = nil,
        _ body: (inout AuditRecord) async -> ChargedAnswer<Value>
    ) async -> ChargedAnswer<Value> {
        if let (refusal, quotas) = self.refusal(of: principal, topic: topic, draft.time) {
            var record = draft
            record.reject(refusal.code)
            await self.audit.record(refused: record)
            return ChargedAnswer(.failure(refusal), quotas: quotas)
        }
        do throws(Refusal) {
            return try await self.audit.recording(draft, orThrow: Refusal(.auditUnavailable)) {
                record throws(Refusal) in
                let answer = await body(&record)
                if case .failure(let refusal) = answer.result { record.reject(refusal.code) }
                return answer
            }
        } catch {
            return ChargedAnswer(.failure(error))
        }
    }

    private func refusal(
        of principal: Principal,
        topic: TopicName?,
        _ now: Timestamp
    ) -> (refusal: Refusal, quotas: [QuotaStatus])? {
        if let topic, !principal.key.mayAddress(topic: topic.text) {
            return (Refusal(.forbidden, "The key may not address this topic"), [])
        }
        return self.limiter.refusal(of: principal.profile, now: now)
    }

    // MARK: Changes

    private func deliver(
        _ call: SubscriptionCall,
        _ record: inout AuditRecord
    ) async -> ChargedAnswer<[SubscriptionOutcome]> {
        let distinct = DistinctTokens(call.tokens)
        guard !distinct.tokens.isEmpty else { return ChargedAnswer(.success(distinct.spread([]))) }
        let decision = await self.charge(call.profile, distinct.tokens.count, now: record.time)
        var outcomes: [SubscriptionOutcome]
        switch decision.admission {
        case .none(let denial):
            return ChargedAnswer(.failure(Refusal(denial)), quotas: decision.tenantQuotas)
        case .all:
            let result = await self.upstream.change(call.addressing(distinct.tokens))
            record.upstreamCode = result.upstreamCode
            outcomes = result.outcomes
        case .some(let denials):
            let admitted = zip(distinct.tokens, denials).compactMap { $1 == nil ? $0 : nil }
            let result = await self.upstream.change(call.addressing(admitted))
            record.upstreamCode = result.upstreamCode
            var made = result.outcomes.makeIterator()
            outcomes = denials.map { denial in
                denial.map { .rejected($0.rejection) } ?? made.next() ?? .rejected(.upstreamProtocol)
            }
        }
        outcomes = distinct.spread(outcomes)
        guard let shared = Self.sharedRefusal(of: outcomes) else {
            return ChargedAnswer(.success(outcomes), quotas: decision.tenantQuotas)
        }
        return ChargedAnswer(.failure(shared.namingCredential(of: call.profile)), quotas: decision.tenantQuotas)
    }

    /// Returns the one refusal that all outcomes share, with the longest delay; `nil` if they differ.
    private static func sharedRefusal(of outcomes: [SubscriptionOutcome]) -> Refusal? {
        guard case .rejected(let first)? = outcomes.first, first.code.isSharedBySubscriptions else { return nil }
        var shared = Refusal(first)
        shared.retryAfter = nil
        for outcome in outcomes {
            guard case .rejected(let rejection) = outcome, rejection.code == first.code,
                rejection.limitedBy == first.limitedBy
            else { return nil }
            if let delay = rejection.retryAfter { shared.retryAfter = max(shared.retryAfter ?? 0, delay) }
        }
        return shared
    }

    // MARK: Look-ups

    private func deliver(
        _ call: RegistrationCall,
        _ record: inout AuditRecord
    ) async -> ChargedAnswer<RegistrationInfo> {
        guard RegistrationToken.isPlausible(call.token) else { return ChargedAnswer(.failure(Refusal(.invalidToken))) }
        let decision = await self.charge(call.profile, 1, now: record.time)
        if case .none(let denial) = decision.admission {
            return ChargedAnswer(.failure(Refusal(denial)), quotas: decision.tenantQuotas)
        }
        let result = await self.upstream.lookUp(call)
        record.upstreamCode = result.upstreamCode
        let answer = result.answer.map { $0.showing(to: call.caller.principal) }
            .mapError { $0.namingCredential(of: call.profile) }
        return ChargedAnswer(answer, quotas: decision.tenantQuotas)
    }

    /// Charges the tenant for each device; neither devices nor topics receive a message by it.
    private func charge(_ profile: TenantProfile, _ count: Int, now: Timestamp) async -> LimitDecision {
        await self.limiter.admit(LimitRequest(calls: count, of: profile), now: now)
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
    /// Names the credential that the tenant lacks, if that is the cause.
    func namingCredential(of profile: TenantProfile) -> Refusal {
        var refusal = self
        if self.code == .upstreamCredentials { refusal.detail = profile.missingCredential }
        return refusal
    }
}

// MARK: Upstream

/// Keeps devices' subscriptions at FCM.
package protocol TopicUpstream: Sendable {
    /// Changes the subscriptions of some devices to one topic, each named once; trouble on the way is a result too.
    func change(_ call: SubscriptionCall) async -> SubscriptionResult

    func lookUp(_ call: RegistrationCall) async -> RegistrationResult
}

/// A checked request to change some devices' subscriptions to one topic.
package struct SubscriptionCall: Sendable {
    package let caller: Caller
    package let change: SubscriptionChange
    package let topic: TopicName
    /// 1 to 1,000 devices; from callers in order and as often as they were named, to the upstream each once.
    package let tokens: [String]
    /// What ``tokens`` holds.
    package let kind: RetiredToken.Kind

    package init(
        _ change: SubscriptionChange,
        of tokens: [String],
        _ kind: RetiredToken.Kind = .token,
        to topic: TopicName,
        by caller: Caller
    ) {
        (self.caller, self.change, self.topic) = (caller, change, topic)
        (self.tokens, self.kind) = (tokens, kind)
    }

    package var profile: TenantProfile { self.caller.profile }
    package var origin: RequestOrigin { self.caller.origin }
    package var deadline: Uptime { self.caller.deadline }

    func addressing(_ tokens: [String]) -> SubscriptionCall {
        SubscriptionCall(self.change, of: tokens, self.kind, to: self.topic, by: self.caller)
    }
}

/// The outcomes of a ``SubscriptionCall``, one for each device.
package struct SubscriptionResult: Sendable, Hashable {
    package var outcomes: [SubscriptionOutcome]
    /// FCM's own code, bounded and free of tokens: an HTTP status or an error's name.
    package var upstreamCode: String

    package init(_ outcomes: [SubscriptionOutcome], upstreamCode: String) {
        self.outcomes = outcomes
        self.upstreamCode = upstreamCode
    }
}

/// A checked request to look a device up.
package struct RegistrationCall: Sendable {
    /// The requested facts about the device.
    package enum Part: Sendable, Hashable {
        case subscriptions
        /// Its app and platform as well, which only the Instance ID API tells.
        case everything
    }

    package let caller: Caller
    package let token: String
    package let kind: RetiredToken.Kind
    package let part: Part

    package init(_ part: Part, of token: String, _ kind: RetiredToken.Kind = .token, by caller: Caller) {
        (self.caller, self.token, self.kind, self.part) = (caller, token, kind, part)
    }

    package var profile: TenantProfile { self.caller.profile }
    package var origin: RequestOrigin { self.caller.origin }
    package var deadline: Uptime { self.caller.deadline }
}

/// The answer to a ``RegistrationCall``.
package struct RegistrationResult: Sendable, Hashable {
    package var answer: Result<RegistrationInfo, Refusal>
    /// As in ``SubscriptionResult``.
    package var upstreamCode: String

    package init(_ answer: Result<RegistrationInfo, Refusal>, upstreamCode: String) {
        self.answer = answer
        self.upstreamCode = upstreamCode
    }
}

// MARK: Records

extension AuditRecord {
    /// The record of a change of subscriptions, before its outcomes: the targets are the topic, then the devices as
    /// they were named.
    init(_ call: SubscriptionCall, at time: Timestamp) {
        self.init(AuditRecord.Action(call.change), by: call.caller.principal, call.origin, at: time)
        self.targetKind = Self.subscriptionKind
        self.append([call.topic.text] + call.tokens, of: call.profile)
        self.recipients = call.tokens.count
        self.accepted = call.tokens.count
    }

    /// The record of a look-up.
    fileprivate init(_ call: RegistrationCall, at time: Timestamp) {
        self.init(.topicList, by: call.caller.principal, call.origin, at: time)
        self.targetKind = Self.subscriptionKind
        self.append([call.token], of: call.profile)
        self.recipients = 1
        self.accepted = 1
    }

    mutating func note(_ outcomes: [SubscriptionOutcome]) {
        let codes = outcomes.map { outcome in
            if case .rejected(let rejection) = outcome { rejection.code.rawValue } else { nil as String? }
        }
        self.results = codes.map { TargetResult(code: $0) }
        self.accepted = codes.count { $0 == nil }
        self.outcome = self.accepted == 0 ? .rejected : self.accepted == self.recipients ? .accepted : .partial
        self.code = codes.lazy.compactMap(\.self).first
    }

    private static let subscriptionKind = "subscription"
}

extension AuditRecord.Action {
    package init(_ change: SubscriptionChange) {
        switch change {
        case .subscribe: self = .topicSubscribe
        case .unsubscribe: self = .topicUnsubscribe
        }
    }
}
