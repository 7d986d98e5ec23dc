package import FCMModel

/// The steps of every send, from every surface: retired tokens, limits, upstream, audit. The request pipeline has
/// checked the key's scope.
package struct SendPipeline: Sendable {
    /// The result of a preview: the steps that a send would pass.
    package struct Preview: Sendable {
        /// Why it would be refused whatever its quotas, if it would be.
        package var refusal: Refusal?
        package var limits: LimitStatus
        /// The first requests that it would make, whether or not it would be refused; none for a message that is too
        /// big.
        package var requests: [Message.Request]
    }

    private let retired: RetiredTokens
    private let limiter: any RateLimiter
    private let upstream: any UpstreamSender
    let audit: AuditLog
    let clock: any WallClock
    let metrics: TenantCounters
    private let groups: DeviceGroups?

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
        self.metrics = TenantCounters(.messages, metrics, startingWith: Target.Kind.allCases.map(\.rawValue))
        self.groups = groups
    }

    /// Sends a message and records its outcome: a place in the audit first, then the tenant's limit, and only then what
    /// costs work.
    ///
    /// With an idempotency key nothing leaves before its reservation allows it.
    package func send(_ command: SendCommand, reservation: SendReservation? = nil) async -> SendOutcome {
        let now = self.clock.now()
        let messageID = reservation?.messageID ?? UUIDv7.generate(at: now)
        guard let place = self.audit.reserve(for: command.profile.uid) else {
            let outcome = SendOutcome(messageID: messageID, refused: Refusal(.auditUnavailable), recording: .none)
            self.metrics.count(command, outcome.result)
            return outcome
        }
        if var refused = self.refusedAtOnce(command, messageID, now) {
            let isDone = self.record(command, &refused, targets: nil, at: now, in: place)
            if !isDone { await self.audit.finish() }
            return refused
        }
        let sending = Sending(command: command, messageID: messageID, reservation: reservation, now: now)
        let targets = SendTargets(command.target, profile: command.profile)
        var outcome: SendOutcome
        if let groups = self.groups?.known, groups.mayBeAddressed(by: command) {
            outcome = await self.deliver(sending, targets, chargedBy: groups)
        } else {
            outcome = await self.deliver(sending, targets)
        }
        let isDone = self.record(command, &outcome, targets: targets, at: now, in: place)
        if !isDone { await self.audit.finish() }
        return outcome
    }

    /// A send on its way through the steps.
    private struct Sending: Sendable {
        var command: SendCommand
        let messageID: String
        let reservation: SendReservation?
        let now: Timestamp

        func refused(_ refusal: Refusal, _ quotas: [QuotaStatus]) -> SendOutcome {
            SendOutcome(messageID: self.messageID, refused: refusal, quotas: quotas)
        }

        func outcome(_ result: SendResult, _ quotas: [QuotaStatus]) -> SendOutcome {
            SendOutcome(messageID: self.messageID, result, quotas: quotas)
        }

        /// The same send to other recipients.
        func addressing(_ target: Target) -> Sending {
            var sending = self
            sending.command = self.command.addressing(target)
            return sending
        }
    }

    /// Returns the refusal of a send that needs no look at its recipients: the key may not send it, or it is a list and
    /// the tenant's bucket has no room for one message.
    @inline(never)  // Keeps the frame small.
    private func refusedAtOnce(_ command: SendCommand, _ messageID: String, _ now: Timestamp) -> SendOutcome? {
        if let refusal = self.refusal(of: command) { return SendOutcome(messageID: messageID, refused: refusal) }
        let count = command.recipientCount
        // For one recipient a look would cost as much as the charge.
        guard count > 1, let refused = self.limiter.refusal(of: command.profile, count: count, now: now)
        else { return nil }
        return SendOutcome(messageID: messageID, refused: refused.refusal, quotas: refused.quotas)
    }

    /// Fills the place of a send's record, or counts the send in a summary of refused ones, whose id it then has; true
    /// if there is no record to wait for.
    @inline(never)  // Keeps the frame small.
    private func record(
        _ command: SendCommand,
        _ outcome: inout SendOutcome,
        targets: SendTargets?,
        at time: Timestamp,
        in place: consuming AuditLog.Reservation
    ) -> Bool {
        self.metrics.count(command, outcome.result)
        switch outcome.recording {
        case .none:
            return true
        case .own:
            place.fill(.send(command, outcome, targets: targets, at: time))
            return false
        case .refusal:
            // A list that the tenant's limit refuses is recorded by its length.
            let listed = outcome.result.refusal?.code == .tenantRateExceeded ? nil : targets
            guard let id = place.fill(refusal: .send(command, outcome, targets: listed, at: time)) else { return false }
            outcome.messageID = id
            return true
        }
    }

    @inline(never)  // Keeps the frame small.
    private func deliver(_ sending: Sending, _ targets: SendTargets) async -> SendOutcome {
        let command = sending.command
        let screening = self.screening(of: command, targets, sending.now)
        if case .refused(let isRefused) = screening {
            return await self.deliverRest(sending, targets, isRefused: isRefused)
        }
        let decision = await self.limiter.admit(LimitRequest(command, targets), now: sending.now)
        let quotas = decision.tenantQuotas
        if case .none(let denial) = decision.admission { return sending.refused(Refusal(denial), quotas) }
        guard await self.announce(sending, targets) else { return Self.unannounced(sending, quotas) }
        if case .some(let denials) = decision.admission {
            return await self.deliverSome(sending, targets, screening, denials: denials, quotas: quotas)
        }
        if command.groupName != nil { return await self.deliverToGroup(sending, quotas: quotas) }
        var result = await self.call(sending, command.target)
        if case .notificationKey = command.target { result = result.inCounts }
        if case .group = result.answer {
            result = await self.counted(result, of: command)
        } else {
            self.learn(result, command, targets, screening, sending.now)
        }
        return sending.outcome(result, quotas)
    }

    /// Makes the calls of a send; with an idempotency key, once it is durable that they are about to leave.
    @inline(__always)  // Into its callers, which spares an async frame.
    private func call(_ sending: Sending, _ target: Target) async -> SendResult {
        let call = UpstreamCall(sending.command, target: target, reservation: sending.reservation)
        let result =
            if let reservation = sending.reservation {
                await reservation.send(call, by: self.upstream)
            } else {
                await self.upstream.send(call)
            }
        guard case .refused(let refusal) = result.answer, refusal.code == .upstreamCredentials else { return result }
        let explained = refusal.namingCredential(of: sending.command.profile)
        return SendResult(.refused(explained), upstreamCode: result.upstreamCode, passThrough: result.passThrough)
    }

    /// Commits the intent to send in strict mode; false where that fails, so that nothing must be sent.
    ///
    /// Limits come before: a send that they refuse has one record, and no intent.
    @inline(__always)  // Costs a load in the other mode.
    private func announce(_ sending: Sending, _ targets: SendTargets) async -> Bool {
        guard self.audit.isStrict else { return true }
        return await self.audit.announce {
            .send(sending.command, Self.unannounced(sending, []), targets: targets, at: sending.now)
        }
    }

    @inline(never)  // Keeps the frame small.
    private static func unannounced(_ sending: Sending, _ quotas: [QuotaStatus]) -> SendOutcome {
        let refusal = Refusal(.auditUnavailable)
        return SendOutcome(messageID: sending.messageID, refused: refusal, quotas: quotas, recording: .none)
    }

    /// Delivers to recipients some of which may be device groups, once it is known what those are charged to.
    ///
    /// Without room in the tenant's quota the groups are not looked up.
    @inline(never)  // Keeps the frame small.
    private func deliver(
        _ sending: Sending,
        _ targets: SendTargets,
        chargedBy groups: KnownGroups
    ) async -> SendOutcome {
        let command = sending.command
        var quotas: [QuotaStatus] = []
        do throws(Refusal) {
            let keys = try await groups.limitKeys(of: command) { () async throws(Refusal) in
                if let refused = self.limiter.refusal(of: command.profile, now: sending.now) {
                    quotas = refused.quotas
                    throw refused.refusal
                }
                quotas = await self.limiter.status(of: .nothing(of: command), now: sending.now).tenant
                if let denial = LimitDecision.Denial(quotas) { throw Refusal(denial) }
            }
            return await self.deliver(sending, targets.charging(keys))
        } catch {
            return sending.refused(error, quotas)
        }
    }

    // MARK: Retired tokens

    @inline(never)  // Keeps the frame small.
    private func screening(of command: SendCommand, _ targets: SendTargets, _ now: Timestamp) -> RetiredTokens.Screening
    {
        let screening = self.retired.screen(command.target, targets.pseudonyms, of: command.profile, at: now)
        // A dry run asks what FCM says of the token now.
        if command.message.dryRun, case .refused = screening { return .listed }
        return screening
    }

    @inline(never)  // Keeps the frame small.
    private func learn(
        _ result: SendResult,
        _ command: SendCommand,
        _ targets: SendTargets,
        _ screening: RetiredTokens.Screening,
        _ now: Timestamp
    ) {
        let isListed = screening != .clear
        let pseudonyms = targets.pseudonyms
        self.retired.learn(result, to: command.target, pseudonyms, isListed: isListed, of: command.profile, at: now)
    }

    /// Returns the refusal of a send whose recipients are all retired.
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
    /// use no quota, neither of the tenant's nor of FCM's.
    @inline(never)  // Keeps the frame small.
    private func deliverRest(_ sending: Sending, _ targets: SendTargets, isRefused: [Bool]) async -> SendOutcome {
        let refusedCount = isRefused.count { $0 }
        self.retired.countRefused(refusedCount)
        let own = isRefused.map { isRefused -> RecipientOutcome? in isRefused ? .rejected(.unregistered) : nil }
        let isKept = isRefused.map { !$0 }
        var outcome: SendOutcome
        if refusedCount < isRefused.count, let target = sending.command.target.keeping(isKept) {
            outcome = await self.deliver(sending.addressing(target), targets.keeping(isKept))
            if case .none = outcome.recording { return outcome }
            outcome.result.answer = .recipients(own.filled(by: outcome.result.outcomes(count: target.recipientCount)))
        } else {
            let quotas = await self.limiter.status(of: .nothing(of: sending.command), now: sending.now).tenant
            outcome = sending.outcome(SendResult(.recipients(own.compactMap(\.self))), quotas)
            outcome.recording = .refusal
        }
        outcome.refusedAsRetired += refusedCount
        return outcome
    }

    // MARK: Steps

    @inline(never)  // Keeps the frame small.
    private func deliverToGroup(_ sending: Sending, quotas: [QuotaStatus]) async -> SendOutcome {
        let command = sending.command
        do throws(Refusal) {
            guard let groups = self.groups, let name = command.groupName,
                let group = try await groups.recipient(name, by: command.caller), let key = group.key
            else { throw .groupNotFound }
            var result = await self.call(sending, .notificationKey(key)).inCounts
            if result.isUnregistered { await groups.forget(key: key, of: name, by: command.caller) }
            if command.profile.tenant.upstream == .v1 { result = result.counting(group.memberCount) }
            return sending.outcome(result, quotas)
        } catch {
            let field = error.code == .notFound ? "device_group" : nil
            let refusal = Refusal(error.code, error.detail, retryAfter: error.retryAfter, field: field)
            return sending.outcome(SendResult(.refused(refusal)), quotas)
        }
    }

    /// A send to a group by FCM's own key, with the number of members that the gateway knows.
    @inline(never)  // Keeps the frame small.
    private func counted(_ result: SendResult, of command: SendCommand) async -> SendResult {
        guard command.profile.tenant.upstream == .v1, let groups = self.groups,
            let count = await groups.known.memberCount(of: command)
        else { return result }
        return result.counting(count)
    }

    @inline(never)  // Keeps the frame small.
    func refusal(of command: SendCommand) -> Refusal? {
        for topic in command.target.topics where !command.principal.key.mayAddress(topic: topic.text) {
            return Refusal(.forbidden, "The key may not address this topic")
        }
        return self.upstream.refusal(of: command.target, for: command.profile)
    }

    /// Sends to the recipients that were not denied and puts every result at its recipient's place.
    private func deliverSome(
        _ sending: Sending,
        _ targets: SendTargets,
        _ screening: RetiredTokens.Screening,
        denials: [LimitDecision.Denial?],
        quotas: [QuotaStatus]
    ) async -> SendOutcome {
        let isAdmitted = denials.map { $0 == nil }
        guard let target = sending.command.target.keeping(isAdmitted) else {
            // Only a list of recipients can be admitted in part.
            let denial = denials.lazy.compactMap { $0 }.first ?? LimitDecision.Denial(scope: .tenant, retryAfter: 1)
            return sending.outcome(SendResult(.refused(Refusal(denial))), quotas)
        }
        let own = denials.map { denial -> RecipientOutcome? in denial.map { .rejected($0.rejection) } }
        guard target.recipientCount > 0 else {
            return sending.outcome(SendResult(.recipients(own.compactMap(\.self))), quotas)
        }
        var result = await self.call(sending, target)
        self.learn(result, sending.command.addressing(target), targets.keeping(isAdmitted), screening, sending.now)
        result.answer = .recipients(own.filled(by: result.outcomes(count: target.recipientCount)))
        return sending.outcome(result, quotas)
    }

    // MARK: Previews

    /// Charges a tenant for a preview: one message of its quota, and nothing of any device's or topic's.
    package func charge(_ principal: Principal) async throws(Refusal) {
        try await self.limiter.charge(principal.profile, now: self.clock.now())
    }

    /// Returns how far a send would get, with at most so many of its requests; nothing is sent, spent or recorded.
    ///
    /// Throws `not_found` for a device group whose key the gateway does not know: FCM is not asked for it here.
    package func preview(_ command: SendCommand, maxRequests: Int) async throws(Refusal) -> Preview {
        let call = UpstreamCall(command, target: try await self.knownTarget(of: command))
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
        return Preview(
            refusal: refusal ?? self.retirement(of: command, targets, now),
            limits: await self.limiter.status(of: LimitRequest(command, targets), now: now),
            // The size of a message that is too big is all there is to say.
            requests: command.payloadBytes > call.target.maxPayloadBytes
                ? [] : self.upstream.requests(of: call, limit: maxRequests)
        )
    }

    /// Previews a send for an operator: that is recorded, and costs the tenant's quota one message.
    package func recordedPreview(_ command: SendCommand, maxRequests: Int) async throws(Refusal) -> Preview {
        let draft = AuditRecord(.messageExplain, by: command.principal, command.origin, .done, at: self.clock.now())
        return try await self.audit.recording(draft, orThrow: Refusal(.auditUnavailable)) { record throws(Refusal) in
            do throws(Refusal) {
                try await self.charge(command.principal)
                return try await self.preview(command, maxRequests: maxRequests)
            } catch {
                record.reject(error.code)
                throw error
            }
        }
    }

    /// Returns a command's target, with a device group's key in place of its name.
    private func knownTarget(of command: SendCommand) async throws(Refusal) -> Target {
        guard let name = command.groupName else { return command.target }
        guard let key = try await self.groups?.stored(name, of: command.profile)?.key else {
            throw Refusal(.notFound, "The gateway knows no key of such a device group; a send asks FCM for one")
        }
        return .notificationKey(key)
    }

    // MARK: Abandoned sends

    /// Records what is known of a send whose end was not stored, mostly because its process ended before.
    func recordAbandoned(_ command: SendCommand, _ outcome: SendOutcome, in place: consuming AuditLog.Reservation) {
        place.fill(
            .send(
                command,
                outcome,
                targets: SendTargets(command.target, profile: command.profile),
                object: "settled by a repeat",
                at: self.clock.now()
            )
        )
        self.metrics.count(command, outcome.result)
    }
}

extension [RecipientOutcome?] {
    /// One outcome for each recipient of a list: the gateway's own where there is one, else the next of those sent to.
    fileprivate func filled(by sent: [RecipientOutcome]) -> [RecipientOutcome] {
        var sent = sent.makeIterator()
        return self.map { $0 ?? sent.next() ?? .rejected(.upstreamProtocol) }
    }
}

// MARK: Records

extension AuditRecord {
    static func send(
        _ command: SendCommand,
        _ outcome: SendOutcome,
        targets: SendTargets?,
        object: String? = nil,
        at time: Timestamp
    ) -> AuditRecord {
        let tally = outcome.result.tally(recipients: command.recipientCount, isList: command.target.isList)
        let retired = outcome.refusedAsRetired
        return .send(
            time: time,
            tenant: command.principal.profile.id.text,
            principal: command.principal.auditName,
            action: command.message.dryRun ? .messageValidate : .messageSend,
            outcome: tally.outcome,
            requestID: command.origin.requestID,
            tenantUID: command.principal.profile.uid,
            method: command.origin.method,
            targetKind: command.target.kind.rawValue,
            targets: targets?.auditBytes ?? [],
            object: retired > 0 ? "retired: \(retired)" : object,
            results: tally.results,
            recipients: tally.recipients,
            accepted: tally.accepted,
            bytes: command.payloadBytes,
            code: tally.code,
            upstreamCode: outcome.result.upstreamCode,
            fcmMessageID: tally.fcmMessageID,
            messageID: outcome.messageID,
            traceID: command.origin.traceID
        )
    }
}

/// A result as the audit counts it.
private struct Tally {
    var recipients: Int
    var accepted = 0
    var code: String?
    var fcmMessageID: String?
    /// One for each recipient of a list.
    var results: [AuditRecord.TargetResult] = []

    var outcome: AuditRecord.Outcome {
        self.accepted == 0 ? .rejected : self.accepted == self.recipients ? .accepted : .partial
    }
}

extension SendResult {
    fileprivate func tally(recipients: Int, isList: Bool) -> Tally {
        var tally = Tally(recipients: recipients)
        switch self.answer {
        case .refused(let refusal):
            tally.code = refusal.code.rawValue
        case .group(let group):
            tally.recipients = group.success + group.failure
            tally.accepted = group.success
            tally.fcmMessageID = group.messageID
        case .recipients(let outcomes):
            if isList { tally.results = outcomes.map(AuditRecord.TargetResult.init) }
            for outcome in outcomes {
                switch outcome {
                case .accepted(let acceptance):
                    tally.accepted += 1
                    if outcomes.count == 1 { tally.fcmMessageID = acceptance.messageID }
                case .rejected(let rejection):
                    tally.code = tally.code ?? rejection.code.rawValue
                }
            }
        }
        return tally
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
