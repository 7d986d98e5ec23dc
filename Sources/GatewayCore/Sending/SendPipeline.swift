package import FCMModel

/// The one way that a message takes, whichever surface it came in by: scope, retired tokens, limits, upstream, audit.
package struct SendPipeline: Sendable {
    private let retired: RetiredTokens
    private let limiter: any RateLimiter
    private var upstream: any UpstreamSender
    let audit: AuditLog
    let clock: any WallClock
    let metrics: TenantCounters
    private let groups: DeviceGroups?
    /// The next message's id, where it is not a new one.
    private var messageID: String?

    /// Without device groups, none is known by any name.
    package init(
        retired: RetiredTokens,
        limiter: any RateLimiter,
        upstream: any UpstreamSender,
        audit: AuditLog,
        clock: any WallClock,
        metrics: GatewayMetrics = GatewayMetrics(),
        groups: DeviceGroups? = nil
    ) {
        self.retired = retired
        self.limiter = limiter
        self.upstream = upstream
        self.audit = audit
        self.clock = clock
        self.metrics = TenantCounters(.messages, metrics, startingWith: TargetKind.allCases.map(\.rawValue))
        self.groups = groups
    }

    /// Sends a message and records what became of it: a place in the audit first, then the tenant's limit, and only then
    /// what costs work.
    package func send(_ command: SendCommand) async -> SendOutcome {
        let now = self.clock.now()
        let messageID = self.messageID ?? UUIDv7.generate(at: now)
        guard let place = self.audit.reserve(for: command.profile.uid) else {
            let outcome = Self.unrecordable(messageID)
            self.metrics.count(command, outcome.answer)
            return outcome
        }
        if let refused = self.refusedAtOnce(command, now) {
            let (outcome, isDone) = self.record(command, messageID, targets: nil, refused, at: now, in: place)
            if !isDone { await self.audit.finish() }
            return outcome
        }
        let targets = SendTargets(command.target, profile: command.profile)
        let delivery: Delivery
        if let groups = self.groups?.known, groups.mayBeAddressed(by: command) {
            delivery = await self.deliver(command, targets: targets, messageID, chargedBy: groups, now: now)
        } else {
            delivery = await self.deliver(command, targets: targets, messageID, now: now)
        }
        let (outcome, isDone) = self.record(command, messageID, targets: targets, delivery, at: now, in: place)
        if !isDone { await self.audit.finish() }
        return outcome
    }

    /// Returns the refusal of a send that needs no look at its recipients: the key may not send it, or it is a list and the
    /// tenant's bucket has no room for one message.
    @inline(never)  // As for `record`.
    private func refusedAtOnce(_ command: SendCommand, _ now: Timestamp) -> Delivery? {
        if let refusal = self.refusal(of: command) {
            return Delivery(answer: .refused(refusal), isNothingSent: true)
        }
        let count = command.recipientCount
        // For one recipient a look would cost as much as the charge.
        guard count > 1, let refused = self.limiter.refusal(of: command.profile, count: count, now: now)
        else { return nil }
        return Delivery(answer: .refused(refused.refusal), quotas: refused.quotas, isNothingSent: true)
    }

    /// The pipeline of one send that carries an idempotency key.
    func reserved(by reservation: SendReservation) -> SendPipeline {
        var pipeline = self
        pipeline.upstream = ReservedUpstream(upstream: self.upstream, reservation: reservation)
        pipeline.messageID = reservation.messageID
        return pipeline
    }

    @inline(never)  // As for `record`.
    private static func unrecordable(_ messageID: String) -> SendOutcome {
        SendOutcome(messageID: messageID, answer: .refused(Refusal(.auditUnavailable)))
    }

    /// Fills the place of a send's record, or counts the send in a summary of refused ones, whose id it then has; done if
    /// there is no record to wait for.
    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller, which is allocated.
    private func record(
        _ command: SendCommand,
        _ messageID: String,
        targets: SendTargets?,
        _ delivery: Delivery,
        at time: Timestamp,
        in place: consuming AuditReservation
    ) -> (outcome: SendOutcome, isDone: Bool) {
        var outcome = SendOutcome(
            messageID: messageID,
            answer: delivery.answer,
            quotas: delivery.quotas,
            passThrough: delivery.passThrough
        )
        self.metrics.count(command, outcome.answer)
        if delivery.isUnrecordable { return (outcome, true) }
        func record() -> AuditRecord {
            .send(
                command,
                outcome,
                // A list that the tenant's limit refuses is recorded by its length.
                targets: delivery.isRefusedByTenant ? nil : targets,
                object: delivery.refusedAsRetired > 0 ? "retired: \(delivery.refusedAsRetired)" : nil,
                upstreamCode: delivery.upstreamCode,
                at: time
            )
        }
        guard delivery.isNothingSent else {
            place.fill(record())
            return (outcome, false)
        }
        guard let id = place.fill(refusal: record()) else { return (outcome, false) }
        outcome.messageID = id
        return (outcome, true)
    }

    /// What a delivery came to, before it is recorded.
    private struct Delivery {
        var answer: SendOutcome.Answer
        var quotas: [QuotaStatus] = []
        var upstreamCode: String?
        var passThrough: PassThrough?
        /// How many recipients were refused without asking FCM, because it called them unregistered lately.
        var refusedAsRetired = 0
        /// True if the gateway itself refused every recipient, so that no call was made for the message.
        var isNothingSent = false
        /// True if its intent could not be committed: nothing was sent, and the place is given back.
        var isUnrecordable = false

        var isRefusedByTenant: Bool {
            guard self.isNothingSent, case .refused(let refusal) = self.answer else { return false }
            return refusal.code == .tenantRateExceeded
        }
    }

    @inline(never)  // As for `record`: two frames of half the size cost less than one.
    private func deliver(
        _ command: SendCommand,
        targets: SendTargets,
        _ messageID: String,
        now: Timestamp
    ) async -> Delivery {
        let screening = self.screening(of: command, targets, now)
        if case .refused(let isRefused) = screening {
            return await self.deliverRest(command, targets, messageID, isRefused: isRefused, now: now)
        }
        let decision = await self.limiter.admit(LimitRequest(command, targets), now: now)
        let quotas = decision.tenantQuotas
        switch decision.admission {
        case .none(let denial):
            return Delivery(answer: .refused(Refusal(denial)), quotas: quotas, isNothingSent: true)
        case .all where command.groupName != nil:
            guard await self.announce(command, targets, messageID, now) else { return Self.unannounced(quotas) }
            return await self.deliverToGroup(command, quotas: quotas)
        case .all:
            guard await self.announce(command, targets, messageID, now) else { return Self.unannounced(quotas) }
            var result = await self.upstream.send(UpstreamCall(command, target: command.target))
            if case .notificationKey = command.target { result = result.inCounts }
            if case .group = result.answer { return await self.delivery(toGroup: command, result, quotas: quotas) }
            self.learn(result, command, targets, screening, now)
            return Self.delivery(result, to: command, quotas: quotas)
        case .some(let denials):
            guard await self.announce(command, targets, messageID, now) else { return Self.unannounced(quotas) }
            return await self.deliverSome(command, targets, screening, denials: denials, quotas: quotas, now: now)
        }
    }

    /// Commits the intent to send in strict mode; false where that fails, so that nothing must be sent.
    ///
    /// Limits come before: a send that they refuse has one record, and no intent.
    @inline(__always)  // Costs a load in the other mode.
    private func announce(
        _ command: SendCommand,
        _ targets: SendTargets,
        _ messageID: String,
        _ now: Timestamp
    ) async -> Bool {
        guard self.audit.isStrict else { return true }
        return await self.audit.announce {
            .send(command, Self.unrecordable(messageID), targets: targets, upstreamCode: nil, at: now)
        }
    }

    private static func unannounced(_ quotas: [QuotaStatus]) -> Delivery {
        Delivery(answer: .refused(Refusal(.auditUnavailable)), quotas: quotas, isUnrecordable: true)
    }

    /// Delivers to recipients some of which may be device groups, once it is known what those are charged to.
    ///
    /// Without room in the tenant's quota the groups are not looked up.
    @inline(never)  // As for `record`.
    private func deliver(
        _ command: SendCommand,
        targets: SendTargets,
        _ messageID: String,
        chargedBy groups: KnownGroups,
        now: Timestamp
    ) async -> Delivery {
        var quotas: [QuotaStatus] = []
        do throws(Refusal) {
            let keys = try await groups.limitKeys(of: command) { () async throws(Refusal) in
                if let refused = self.limiter.refusal(of: command.profile, now: now) {
                    quotas = refused.quotas
                    throw refused.refusal
                }
                quotas = await self.limiter.status(of: .nothing(of: command), now: now).tenant
                if let denial = LimitDenial(quotas) { throw Refusal(denial) }
            }
            return await self.deliver(command, targets: targets.charging(keys), messageID, now: now)
        } catch {
            return Delivery(answer: .refused(error), quotas: quotas, isNothingSent: true)
        }
    }

    // MARK: Retired tokens

    @inline(never)  // As for `record`.
    private func screening(of command: SendCommand, _ targets: SendTargets, _ now: Timestamp) -> RetiredTokenScreening {
        let screening = self.retired.screen(command.target, targets.pseudonyms, of: command.profile, at: now)
        // What a dry run asks is what FCM says of the token now.
        if command.message.dryRun, case .refused = screening { return .listed }
        return screening
    }

    @inline(never)  // As for `record`.
    private func learn(
        _ result: UpstreamResult,
        _ command: SendCommand,
        _ targets: SendTargets,
        _ screening: RetiredTokenScreening,
        _ now: Timestamp
    ) {
        let isListed = screening != .clear
        let pseudonyms = targets.pseudonyms
        self.retired.learn(result, to: command.target, pseudonyms, isListed: isListed, of: command.profile, at: now)
    }

    /// Why nobody would be sent to, where all recipients are retired.
    private func retirement(of command: SendCommand, _ targets: SendTargets, _ now: Timestamp) -> Refusal? {
        guard case .refused(let isRefused) = self.screening(of: command, targets, now), !isRefused.contains(false)
        else { return nil }
        return Refusal(
            .unregistered,
            "FCM called this unregistered within the last day, so that it is not asked again",
            field: command.target.kind.rawValue
        )
    }

    /// Sends to the recipients that are not retired and puts every result at its recipient's place. The refused ones
    /// cost nobody's quota, nor FCM's.
    @inline(never)  // As for `record`.
    private func deliverRest(
        _ command: SendCommand,
        _ targets: SendTargets,
        _ messageID: String,
        isRefused: [Bool],
        now: Timestamp
    ) async -> Delivery {
        let refusedCount = isRefused.count { $0 }
        self.retired.countRefused(refusedCount)
        let isKept = isRefused.map { !$0 }
        guard refusedCount < isRefused.count, let target = command.target.keeping(isKept) else {
            let quotas = await self.limiter.status(of: .nothing(of: command), now: now).tenant
            let outcomes = isRefused.map { _ in RecipientOutcome.rejected(.unregistered) }
            let isList = command.target.isList
            let answer: SendOutcome.Answer = isList ? .multiple(outcomes) : .single(.rejected(.unregistered))
            return Delivery(answer: answer, quotas: quotas, refusedAsRetired: refusedCount, isNothingSent: true)
        }
        let kept = targets.keeping(isKept)
        var delivery = await self.deliver(command.addressing(target), targets: kept, messageID, now: now)
        if delivery.isUnrecordable { return delivery }
        let rest = Self.outcomes(of: delivery.answer, count: target.recipientCount)
        let own = isRefused.map { isRefused -> RecipientOutcome? in isRefused ? .rejected(.unregistered) : nil }
        delivery.answer = .multiple(Self.merged(own, rest))
        delivery.refusedAsRetired += refusedCount
        return delivery
    }

    /// One outcome for each recipient of a list: the gateway's own where it has one, else the next of those that were
    /// sent to.
    private static func merged(_ own: [RecipientOutcome?], _ sent: [RecipientOutcome]) -> [RecipientOutcome] {
        var sent = sent.makeIterator()
        return own.map { $0 ?? sent.next() ?? .rejected(.upstreamProtocol) }
    }

    /// One outcome for each recipient of a list that was answered in whichever way.
    static func outcomes(of answer: SendOutcome.Answer, count: Int) -> [RecipientOutcome] {
        switch answer {
        case .multiple(let outcomes): outcomes
        case .single(let outcome): [outcome]
        case .refused(let refusal): Array(repeating: .rejected(refusal.rejection), count: count)
        case .group: Array(repeating: .rejected(.upstreamProtocol), count: count)
        }
    }

    // MARK: Steps

    @inline(never)  // As for `record`.
    private func deliverToGroup(_ command: SendCommand, quotas: [QuotaStatus]) async -> Delivery {
        do throws(Refusal) {
            guard let groups = self.groups, let name = command.groupName,
                let group = try await groups.recipient(name, by: command.caller), let key = group.key
            else { throw .groupNotFound }
            var result = await self.upstream.send(UpstreamCall(command, target: .notificationKey(key))).inCounts
            if result.isUnregistered { await groups.forget(key: key, of: name, by: command.caller) }
            if command.profile.tenant.upstream == .v1 { result = result.counting(group.memberCount) }
            return Self.delivery(result, to: command, quotas: quotas)
        } catch {
            let field = error.code == .notFound ? "device_group" : nil
            let refusal = Refusal(error.code, error.detail, retryAfter: error.retryAfter, field: field)
            return Delivery(answer: .refused(refusal), quotas: quotas)
        }
    }

    /// What a send to a group by FCM's own key came to.
    @inline(never)  // As for `record`.
    private func delivery(
        toGroup command: SendCommand,
        _ result: UpstreamResult,
        quotas: [QuotaStatus]
    ) async -> Delivery {
        guard command.profile.tenant.upstream == .v1, let groups = self.groups,
            let count = await groups.known.memberCount(of: command)
        else { return Self.delivery(result, to: command, quotas: quotas) }
        return Self.delivery(result.counting(count), to: command, quotas: quotas)
    }

    @inline(never)  // As for `record`.
    func refusal(of command: SendCommand) -> Refusal? {
        guard command.principal.has(.sendMessages) else { return Refusal(lacking: .sendMessages) }
        for topic in command.target.topics where !command.principal.key.mayAddress(topic: topic.text) {
            return Refusal(.forbidden, "The key may not address this topic")
        }
        return self.upstream.refusal(of: command.target, for: command.profile)
    }

    /// Sends to the recipients that were not denied and puts every result at its recipient's place.
    private func deliverSome(
        _ command: SendCommand,
        _ targets: SendTargets,
        _ screening: RetiredTokenScreening,
        denials: [LimitDenial?],
        quotas: [QuotaStatus],
        now: Timestamp
    ) async -> Delivery {
        let isAdmitted = denials.map { $0 == nil }
        guard let target = command.target.keeping(isAdmitted) else {
            // Only a list of recipients can be admitted in part.
            let denial = denials.lazy.compactMap { $0 }.first ?? LimitDenial(scope: .tenant, retryAfter: 1)
            return Delivery(answer: .refused(Refusal(denial)), quotas: quotas)
        }
        let outcomes = denials.map { denial -> RecipientOutcome? in denial.map { .rejected($0.rejection) } }
        guard target.recipientCount > 0 else {
            return Delivery(answer: .multiple(outcomes.compactMap { $0 }), quotas: quotas)
        }
        let result = await self.upstream.send(UpstreamCall(command, target: target))
        self.learn(result, command.addressing(target), targets.keeping(isAdmitted), screening, now)
        let sent = Self.outcomes(of: result, count: target.recipientCount)
        return Delivery(
            answer: .multiple(Self.merged(outcomes, sent)),
            quotas: quotas,
            upstreamCode: result.upstreamCode
        )
    }

    @inline(never)  // As for `record`.
    private static func delivery(_ result: UpstreamResult, to command: SendCommand, quotas: [QuotaStatus]) -> Delivery {
        Delivery(
            answer: Self.answer(result, to: command),
            quotas: quotas,
            upstreamCode: result.upstreamCode,
            passThrough: result.passThrough
        )
    }

    static func answer(_ result: UpstreamResult, to command: SendCommand) -> SendOutcome.Answer {
        switch result.answer {
        case .failed(let code):
            let refusal = Refusal(
                code,
                code == .upstreamCredentials ? command.profile.missingCredential : nil,
                retryAfter: code.isRetryable ? result.retryAfter : nil,
                limitedBy: code.isRateLimit ? .fcm : nil,
                legacyName: result.legacyName
            )
            return .refused(refusal)
        case .group(let group):
            return .group(group)
        case .recipients:
            let outcomes = Self.outcomes(of: result, count: command.target.recipientCount)
            if command.target.isList { return .multiple(outcomes) }
            return .single(outcomes.first ?? .rejected(.upstreamProtocol))
        }
    }

    /// One outcome for each recipient of a call, with the upstream's delay on what can be repeated.
    private static func outcomes(of result: UpstreamResult, count: Int) -> [RecipientOutcome] {
        func completed(_ outcome: RecipientOutcome) -> RecipientOutcome {
            guard case .rejected(var rejection) = outcome, outcome.isRetryable else { return outcome }
            rejection.retryAfter = rejection.retryAfter ?? result.retryAfter
            if rejection.code.isRateLimit { rejection.limitedBy = .fcm }
            return .rejected(rejection)
        }
        switch result.answer {
        case .recipients(let outcomes):
            return outcomes.contains(where: \.isRetryable) ? outcomes.map(completed) : outcomes
        case .failed(let code):
            let rejection = Rejection(code: code, legacyName: result.legacyName)
            return Array(repeating: completed(.rejected(rejection)), count: count)
        case .group:
            return Array(repeating: .rejected(.upstreamProtocol), count: count)
        }
    }

    // MARK: Previews

    /// Charges a tenant for a preview: one message of its quota, and nothing of any device's or topic's.
    package func charge(_ principal: Principal) async -> Refusal? {
        await self.limiter.charge(principal.profile, now: self.clock.now())
    }

    /// Tells how far a send would get; nothing is sent, spent or recorded.
    package func preview(_ command: SendCommand) async -> SendPreview {
        var targets = SendTargets(command.target, profile: command.profile)
        var refusal = self.refusal(of: command)
        if let groups = self.groups?.known, groups.mayBeAddressed(by: command) {
            do throws(Refusal) {
                targets = targets.charging(try await groups.limitKeys(of: command))
            } catch {
                refusal = refusal ?? error
            }
        }
        let now = self.clock.now()
        return SendPreview(
            refusal: refusal ?? self.retirement(of: command, targets, now),
            limits: await self.limiter.status(of: LimitRequest(command, targets), now: now)
        )
    }

    // MARK: Abandoned sends

    /// Records what is known of a send whose end was not kept, mostly since its process did not live to see it.
    func recordAbandoned(_ command: SendCommand, _ outcome: SendOutcome, in place: consuming AuditReservation) {
        place.fill(
            .send(
                command,
                outcome,
                targets: SendTargets(command.target, profile: command.profile),
                object: "settled by a repeat",
                upstreamCode: nil,
                at: self.clock.now()
            )
        )
        self.metrics.count(command, outcome.answer)
    }
}

/// How far a send would get before it leaves the gateway.
package struct SendPreview: Sendable {
    /// Why it would be refused whatever its quotas, if it would be.
    package var refusal: Refusal?
    package var limits: LimitStatus
}

extension OutcomeCode {
    fileprivate var isRateLimit: Bool {
        self == .deviceRateExceeded || self == .topicRateExceeded || self == .tenantRateExceeded
    }
}

// MARK: Records

extension AuditRecord {
    static func send(
        _ command: SendCommand,
        _ outcome: SendOutcome,
        targets: SendTargets?,
        object: String? = nil,
        upstreamCode: String?,
        at time: Timestamp
    ) -> AuditRecord {
        let tally = Tally(of: outcome.answer, recipients: command.recipientCount)
        let action: AuditAction = command.message.dryRun ? .messageValidate : .messageSend
        // At once: the record of every send would be copied by each initialiser that it came by, and by each variable.
        return AuditRecord(
            time: time,
            tenant: command.principal.profile.id.text,
            principal: command.principal.auditName,
            action: action.rawValue,
            outcome: tally.outcome,
            requestID: command.origin.requestID,
            tenantUID: command.principal.profile.uid,
            method: command.origin.method,
            targetKind: command.target.kind.rawValue,
            targets: targets?.auditBytes ?? [],
            object: object,
            results: tally.results,
            recipients: tally.recipients,
            accepted: tally.accepted,
            bytes: command.payloadBytes,
            code: tally.code,
            upstreamCode: upstreamCode,
            fcmMessageID: tally.fcmMessageID,
            messageID: outcome.messageID,
            traceID: command.origin.traceID
        )
    }
}

/// An answer as the audit counts it.
private struct Tally {
    var recipients: Int
    var accepted = 0
    var code: String?
    var fcmMessageID: String?
    /// What became of each recipient of a list.
    var results: [AuditRecord.TargetResult] = []

    init(of answer: SendOutcome.Answer, recipients: Int) {
        self.recipients = recipients
        switch answer {
        case .refused(let refusal):
            self.code = refusal.code.rawValue
        case .group(let group):
            self.recipients = group.success + group.failure
            self.accepted = group.success
            self.fcmMessageID = group.messageID
        case .single(let result):
            self.add(result, isOnly: true)
        case .multiple(let outcomes):
            self.results.reserveCapacity(outcomes.count)
            for outcome in outcomes {
                self.add(outcome, isOnly: outcomes.count == 1)
                self.results.append(AuditRecord.TargetResult(outcome))
            }
        }
    }

    private mutating func add(_ result: RecipientOutcome, isOnly: Bool) {
        switch result {
        case .accepted(let acceptance):
            self.accepted += 1
            if isOnly { self.fcmMessageID = acceptance.messageID }
        case .rejected(let rejection):
            self.code = self.code ?? rejection.code.rawValue
        }
    }

    var outcome: AuditRecord.Outcome {
        self.accepted == 0 ? .rejected : self.accepted == self.recipients ? .accepted : .partial
    }
}

extension AuditRecord.TargetResult {
    fileprivate init(_ outcome: RecipientOutcome) {
        switch outcome {
        case .accepted(let acceptance): self.init(fcmMessageID: acceptance.messageID)
        case .rejected(let rejection): self.init(code: rejection.code.rawValue)
        }
    }
}
