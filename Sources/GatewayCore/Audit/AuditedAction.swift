import FCMModel

/// The actor of an audited action, which decides if its steps wait for the disk.
///
/// Nothing is done that can't be recorded, so each action takes these steps:
///
/// 1. A place in the audit is reserved.
/// 2. The intent is committed: an operator's always, a tenant's in strict mode.
/// 3. The action is done.
/// 4. The place is filled with the one record of its outcome.
/// 5. If the intent was committed, the answer waits until that record is durable.
///
/// An action can't be undone, so its caller gets the answer even if the record can't be written yet.
///
/// ``AuditLog/recording(_:by:orThrow:_:)`` takes all of them. A send takes them itself, which spares the hot path an
/// async frame. Its second step comes after the limits: a refused send has no intent.
enum AuditActor: Sendable {
    /// A tenant's service, by its key.
    case tenant
    /// An operator, who changes something.
    ///
    /// The place does not count against the queue's bounds: the operator is probably about to stop what fills the
    /// queue.
    case admin
}

extension AuditLog {
    /// Does an action and records its outcome. Throws `unrecordable`, and does nothing, if it can't be recorded.
    ///
    /// The draft is the record of success. The body completes it, also before it throws.
    func recording<Answer: Sendable, Failure: Error>(
        _ draft: AuditRecord,
        by actor: AuditActor = .tenant,
        orThrow unrecordable: Failure,
        _ body: (inout AuditRecord) async throws(Failure) -> Answer
    ) async throws(Failure) -> Answer {
        guard let place = await self.begin(by: actor, draft) else { throw unrecordable }
        var record = draft
        let result: Result<Answer, Failure>
        do throws(Failure) {
            result = .success(try await body(&record))
        } catch {
            result = .failure(error)
        }
        if record.isRefusedByGateway {
            if place.fill(refusal: record) == nil { await self.finish(by: actor) }
        } else {
            place.fill(record)
            await self.finish(by: actor)
        }
        return try result.get()
    }

    /// Reserves a place and commits the intent. Returns `nil` if that fails, and then the action must not be done.
    private func begin(by actor: AuditActor, _ draft: AuditRecord) async -> AuditLog.Reservation? {
        guard let place = actor == .admin ? self.reserveForChange() : self.reserve(for: draft.tenantUID) else {
            return nil
        }
        if self.commitsIntents(of: actor) {
            guard await self.announce(draft, by: actor) else { return nil }
        }
        return place
    }

    /// Commits the intent of a tenant's action. Returns false if that fails, and then the action must not be done.
    @inline(never)  // Keeps the frame small.
    func announce(_ draft: () -> AuditRecord) async -> Bool {
        await self.announce(draft(), by: .tenant)
    }

    /// Waits in strict mode until the record of a tenant's action is durable.
    @inline(__always)  // Into the send, which spares an async frame.
    func finish() async {
        if self.isStrict { await self.settle() }
    }

    private func finish(by actor: AuditActor) async {
        if self.commitsIntents(of: actor) { await self.settle() }
    }

    /// Records a request that was refused before it was read. Nothing was done for it, so it is refused even if this
    /// fails.
    func record(refused record: AuditRecord) async {
        guard let place = self.reserve(for: record.tenantUID) else { return }
        if place.fill(refusal: record) == nil { await self.finish() }
    }

    /// Reads something for an operator and records the reading, unless the log has ended.
    func recording<Answer: Sendable, Failure: Error>(
        read draft: AuditRecord,
        _ body: (inout AuditRecord) async throws(Failure) -> Answer
    ) async throws(Failure) -> Answer {
        var record = draft
        let result: Result<Answer, Failure>
        do throws(Failure) {
            result = .success(try await body(&record))
        } catch {
            result = .failure(error)
        }
        if let place = self.reserveForChange() {
            place.fill(record)
            await self.finish()
        }
        return try result.get()
    }

    private func commitsIntents(of actor: AuditActor) -> Bool { actor == .admin || self.isStrict }

    private func announce(_ draft: AuditRecord, by actor: AuditActor) async -> Bool {
        var refused = draft
        refused.outcome = actor == .admin ? .failed : .rejected
        refused.accepted = 0
        refused.code = OutcomeCode.auditUnavailable.rawValue
        return (try? await self.announce(refused: refused)) != nil
    }
}

extension AuditRecord {
    /// The record of an action by a tenant's key, by default a success.
    init(
        _ action: AuditRecord.Action,
        by principal: Principal,
        _ origin: RequestOrigin,
        _ outcome: Outcome = .accepted,
        at time: Timestamp
    ) {
        let profile = principal.profile
        self.init(action, by: principal.auditName, of: profile.id, uid: profile.uid, origin, outcome, at: time)
    }

    /// The record of an operator's action, or of an attempt without the admin token.
    init(
        _ action: AuditRecord.Action,
        by principal: String? = nil,
        of tenant: TenantID?,
        uid: UInt64 = 0,
        _ origin: RequestOrigin,
        _ outcome: Outcome = .done,
        at time: Timestamp
    ) {
        self.init(
            time: time,
            tenant: tenant?.text,
            principal: principal ?? origin.operator?.auditName ?? "admin",
            action: action.rawValue,
            outcome: outcome,
            requestID: origin.requestID
        )
        (self.tenantUID, self.method, self.traceID) = (uid, origin.method, origin.traceID)
    }

    /// True if the gateway refused it for the caller's rights or limits, without a call to FCM.
    var isRefusedByGateway: Bool {
        guard self.outcome == .rejected, self.upstreamCode == nil, let code = self.code else { return false }
        return [OutcomeCode.tenantRateExceeded, .deviceRateExceeded, .topicRateExceeded, .forbidden]
            .contains { $0.rawValue == code }
    }

    /// Notes that nothing was done, and the reason.
    mutating func reject(_ code: OutcomeCode) {
        self.outcome = .rejected
        self.accepted = 0
        self.code = code.rawValue
    }

    /// Adds recipients by their pseudonyms.
    mutating func append(_ targets: [String], of profile: TenantProfile) {
        self.targets.reserveCapacity(self.targets.count + targets.count * Pseudonym.byteCount)
        for target in targets { profile.pseudonymizer.pseudonym(of: target).append(to: &self.targets) }
    }
}
