import Crypto
package import FCMModel

/// Creates, shows and changes batches for their callers, and records it in the audit.
///
/// A batch belongs to a tenant. Every change is idempotent, so that a caller can repeat it when an answer was lost.
package struct Batches: Sendable {
    /// A request for a new batch, read and checked.
    package struct Draft: Sendable {
        package var kind = Target.Kind.tokens
        /// Empty for a batch that is filled by parts.
        package var recipients: [String] = []
        package var isMessage = false
        package var label: String?
        package var options = Batch.Options()
        package var dueAt: Timestamp?
        /// The message as JSON.
        package var message: [UInt8] = []
        /// The whole request, which a repeat with the same key must match.
        package var request: [UInt8] = []

        package init() {}
    }

    /// The most recipients of a part.
    package static let maxPartRecipients = 5_000
    package static let maxParts = 1_000
    /// The retention of a message, and of one with an `Idempotency-Key`, which is known for so long elsewhere.
    private static let (messageRetention, keyedRetention) = (Duration.seconds(3_600), Duration.seconds(86_400))

    private let store: any BatchStore
    private let runner: BatchRunner
    private let pipeline: SendPipeline
    private let bounds: BatchBounds
    private let retention: Duration
    private let decode: BatchRunner.Decoder

    package init(
        store: any BatchStore,
        runner: BatchRunner,
        pipeline: SendPipeline,
        bounds: BatchBounds = BatchBounds(),
        retention: Duration = .seconds(7 * 86_400),
        decode: @escaping BatchRunner.Decoder
    ) {
        (self.store, self.runner, self.pipeline) = (store, runner, pipeline)
        (self.bounds, self.retention, self.decode) = (bounds, retention, decode)
    }

    // MARK: Creation

    /// Stores a batch, which is durable then. A repeat with the same key returns the batch that the key has made.
    package func create(
        _ draft: Draft,
        key: IdempotencyKey?,
        by caller: Caller
    ) async throws(Refusal) -> (batch: Batch, isNew: Bool) {
        let (profile, now) = (caller.profile, self.pipeline.clock.now())
        let id =
            key.map { profile.pseudonymizer.pseudonym(of: "batch \(Hex.text($0.digest))").description }
            ?? UUIDv7.generate(at: now)
        var batch = Batch(
            id: id,
            tenant: profile.id,
            kind: draft.kind,
            state: draft.recipients.isEmpty ? .open : .queued,
            label: draft.label,
            keyID: caller.principal.key.id,
            options: draft.options,
            createdAt: now,
            dueAt: max(draft.dueAt ?? now, now),
            expiresAt: now.advanced(by: Batch.openTime)
        )
        if batch.state == .queued { batch.setDue(batch.dueAt) }
        batch.isMessage = draft.isMessage
        batch.retention =
            !draft.isMessage ? self.retention : key == nil ? Self.messageRetention : Self.keyedRetention
        let sealer = BatchSealer(id, of: profile)
        batch.digest = sealer.digest(of: draft.request)
        try self.check(draft, batch, by: caller, at: now)
        let new = batch
        let stored = try await self.recorded(.batchCreate, id, draft.kind, draft.recipients.count, by: caller) {
            () throws(GatewayError) in
            let write = BatchWrite.New(
                new,
                message: try sealer.seal(message: draft.message),
                chunks: try sealer.chunks(of: draft.recipients, part: 0)
            )
            switch try await self.runner.create(write) {
            case .done: return (batch: write.batch, isNew: true)
            case .exists: return (batch: try await self.found(id, of: profile.id), isNew: false)
            case .tenantGone: throw GatewayError(.notFound, "There is no such tenant any more")
            case .tenantFull: throw GatewayError(.invalid, self.bounds.refusal(isMessage: new.isMessage))
            case .storeFull, .lost: throw GatewayError(.overloaded, BatchBounds.storeRefusal)
            }
        }
        guard stored.batch.digest == batch.digest else { throw Refusal(.idempotencyConflict) }
        self.runner.wake()
        return stored
    }

    /// Refuses a batch none of whose sends would be accepted.
    private func check(_ draft: Draft, _ batch: Batch, by caller: Caller, at now: Timestamp) throws(Refusal) {
        guard let target = Target(draft.kind, draft.recipients.isEmpty ? ["-"] : draft.recipients) else {
            throw Refusal(.invalidTarget)
        }
        let command = try self.decode(draft.message, batch, target, caller, now)
        if let refusal = self.pipeline.refusal(of: command) { throw refusal }
        guard command.payloadBytes <= target.maxPayloadBytes else { throw Refusal(.messageTooBig) }
    }

    /// Adds a part to an open batch. Returns the batch after it.
    package func add(
        part number: Int,
        _ kind: Target.Kind,
        _ recipients: [String],
        request: [UInt8],
        to id: String,
        by caller: Caller
    ) async throws(Refusal) -> Batch {
        let profile = caller.profile
        let sealer = BatchSealer(id, of: profile)
        if let target = Target(kind, recipients),
            let refusal = self.pipeline.refusal(
                of: SendCommand(by: caller, to: target, message: Message(), payloadBytes: 0)
            )
        {
            throw refusal
        }
        return try await self.recorded(.batchPart, "\(id)/\(number)", kind, recipients.count, by: caller) {
            () throws(GatewayError) in
            try await self.store.add(
                part: number,
                kind: kind,
                digest: sealer.digest(of: request),
                chunks: try sealer.chunks(of: recipients, part: number),
                to: id,
                of: profile.id
            )
            return try await self.found(id, of: profile.id)
        }
    }

    // MARK: Changes

    /// Changes a tenant's batch, or ends with `batch_state` or `batch_incomplete` if that can't be done.
    package func apply(
        _ change: BatchChange,
        _ action: AuditRecord.Action,
        to id: String,
        by caller: Caller
    ) async throws(Refusal) -> Batch {
        let batch = try await self.recorded(action, id, by: caller) { () throws(GatewayError) in
            try await self.applied(change, to: id, of: caller.profile.id)
        }
        return try self.checked(batch, after: change)
    }

    /// The same by an operator, for a batch of any tenant.
    package func apply(
        _ change: BatchChange,
        _ action: AuditRecord.Action,
        to id: String,
        by origin: RequestOrigin
    ) async throws(Refusal) -> Batch {
        var draft = AuditRecord(action, of: nil, origin, at: self.pipeline.clock.now())
        draft.object = id
        let batch = try await self.pipeline.audit.recording(draft, by: .admin, orThrow: Refusal(.auditUnavailable)) {
            record throws(Refusal) in
            do throws(GatewayError) {
                let batch = try await self.applied(change, to: id, of: nil)
                record.tenant = batch.tenant.text
                return batch
            } catch {
                let refusal = Refusal(error)
                (record.outcome, record.code) = (.failed, refusal.code.rawValue)
                throw refusal
            }
        }
        return try self.checked(batch, after: change)
    }

    private func applied(_ change: BatchChange, to id: String, of tenant: TenantID?) async throws(GatewayError) -> Batch
    {
        guard let batch = try await self.store.apply(change, to: id, of: tenant) else { throw Self.noBatch }
        return batch
    }

    private func checked(_ batch: Batch, after change: BatchChange) throws(Refusal) -> Batch {
        let isDone =
            switch change {
            case .start(_, let recipients, _):
                // A repeat of the start finds a later state.
                batch.counts.total == recipients && ![.open, .cancelled, .expired].contains(batch.state)
            case .pause: batch.state == .paused
            case .resume: batch.state == .queued || batch.state == .running
            case .cancel: batch.state == .cancelled
            case .expire: batch.state == .expired
            }
        guard isDone else {
            if case .start = change, batch.state == .open {
                let detail = "The batch has \(batch.counts.total) recipients, or other parts than named"
                throw Refusal(.batchIncomplete, detail)
            }
            throw Refusal(
                .batchState,
                "The batch is \(batch.state.rawValue), with \(batch.counts.total) recipients"
            )
        }
        self.runner.wake()
        return batch
    }

    /// Deletes a batch that is over, with its results.
    package func delete(_ id: String, by caller: Caller) async throws(Refusal) {
        let isDeleted = try await self.recorded(.batchDelete, id, by: caller) { () throws(GatewayError) in
            _ = try await self.found(id, of: caller.profile.id)
            return try await self.store.delete(id, of: caller.profile.id)
        }
        guard isDeleted else { throw Refusal(.batchState, "The batch is not over; cancel it first") }
    }

    // MARK: Reading

    package func batch(_ id: String, of tenant: TenantID) async throws(Refusal) -> Batch {
        do throws(GatewayError) {
            var batch = try await self.found(id, of: tenant)
            if batch.state == .queued || batch.state == .running {
                batch.waitingUntil = try await self.store.waitingUntil(id)
            }
            return batch
        } catch {
            throw Refusal(error)
        }
    }

    package func list(_ filter: BatchFilter, limit: Int) async throws(Refusal) -> [Batch] {
        do throws(GatewayError) {
            return try await self.store.batches(filter, limit: limit)
        } catch {
            throw Refusal(error)
        }
    }

    /// The outcome by which results are asked for.
    package enum Outcome: String, Sendable, CaseIterable {
        case accepted, rejected, unknown, expired, cancelled, waiting
    }

    /// A recipient in the results. `result` is `nil` if nothing was sent to it.
    package struct Line: Sendable {
        package let chunk: Int
        package let place: Int
        package let text: String
        package let outcome: Outcome
        package let result: RecipientOutcome?
    }

    /// The results of one request, and the chunk and place after which the next one continues, if there may be more.
    package struct ResultPage: Sendable {
        package var lines: [Line]
        package var next: (chunk: Int, place: Int)?
    }

    /// The most chunks that one request reads, so that a rare outcome does not read millions of recipients at once.
    private static let maxChunksPerPage = 64

    /// Returns some results in their order, after the chunk and place of an earlier page. A page may be empty. Without an
    /// outcome, all but the waiting recipients are returned.
    package func results(
        of batch: Batch,
        _ outcome: Outcome?,
        after: (chunk: Int, place: Int)?,
        limit: Int,
        by caller: Caller
    ) async throws(Refusal) -> ResultPage {
        guard batch.creatorID == caller.principal.key.id || caller.principal.has(.readTokens) else {
            throw Refusal(
                .forbidden,
                "The results name devices: they need the key of the batch, or the scope tokens:read"
            )
        }
        let sealer = BatchSealer(batch.id, of: caller.profile)
        let left: Outcome = batch.state == .expired ? .expired : batch.state == .cancelled ? .cancelled : .waiting
        return try await self.recorded(.batchResults, batch.id, by: caller) { () throws(GatewayError) in
            var lines: [Line] = []
            var (next, count) = (after?.chunk ?? 0, 0)
            while lines.count <= limit, count < Self.maxChunksPerPage {
                let chunks = try await self.store.results(of: batch.id, of: batch.tenant, from: next, limit: 8)
                guard let last = chunks.last else { return ResultPage(lines: lines) }
                count += chunks.count
                for (chunk, pending, results) in chunks {
                    var all = try sealer.results(in: results, of: chunk)
                        .map { result in
                            Line(
                                chunk: chunk,
                                place: result.place,
                                text: result.text,
                                outcome: result.outcome.code == nil
                                    ? .accepted : result.outcome.code == .outcomeUnknown ? .unknown : .rejected,
                                result: result.outcome
                            )
                        }
                    all += try sealer.recipients(in: pending, of: chunk)
                        .map { recipient in
                            Line(chunk: chunk, place: recipient.place, text: recipient.text, outcome: left, result: nil)
                        }
                    all.removeAll { line in
                        if let after, chunk == after.chunk, line.place <= after.place { return true }
                        return outcome.map { $0 != line.outcome } ?? (line.outcome == .waiting)
                    }
                    lines += all.sorted { $0.place < $1.place }
                }
                next = last.chunk + 1
            }
            guard lines.count > limit else {
                return ResultPage(lines: lines, next: (chunk: next - 1, place: Batch.Chunk.maxRecipients))
            }
            let last = lines[limit - 1]
            return ResultPage(lines: Array(lines.prefix(limit)), next: (chunk: last.chunk, place: last.place))
        }
    }

    // MARK: Steps

    private func found(_ id: String, of tenant: TenantID) async throws(GatewayError) -> Batch {
        guard let batch = try await self.store.batch(id, of: tenant) else { throw Self.noBatch }
        return batch
    }

    private static let noBatch = GatewayError(.notFound, "The tenant has no such batch")

    private func recorded<Answer: Sendable>(
        _ action: AuditRecord.Action,
        _ object: String,
        _ kind: Target.Kind? = nil,
        _ recipients: Int = 0,
        by caller: Caller,
        _ body: () async throws(GatewayError) -> Answer
    ) async throws(Refusal) -> Answer {
        var draft = AuditRecord(action, by: caller.principal, caller.origin, at: self.pipeline.clock.now())
        (draft.object, draft.recipients, draft.accepted) = (object, recipients, recipients)
        draft.targetKind = kind?.rawValue ?? ""
        return try await self.pipeline.audit.recording(draft, orThrow: Refusal(.auditUnavailable)) {
            record throws(Refusal) in
            do throws(GatewayError) {
                return try await body()
            } catch {
                let refusal = Refusal(ofBatch: error)
                record.reject(refusal.code)
                throw refusal
            }
        }
    }
}

extension Refusal {
    /// The refusal in the words of a batch's callers.
    fileprivate init(ofBatch error: GatewayError) {
        switch error.code {
        case .conflict: self.init(.partConflict, error.message)
        case .preconditionFailed: self.init(.batchState, error.message)
        case .invalid: self.init(.batchQuotaExceeded, error.message, retryAfter: 60, limitedBy: .gateway)
        case .notFound, .storeUnavailable, .overloaded, .cancelled, .auditUnavailable, .outcomeUnknown: self.init(error)
        }
    }
}

extension BatchSealer {
    /// Cuts the recipients of a part into chunks.
    fileprivate func chunks(of recipients: [String], part: Int) throws(GatewayError) -> [Batch.Chunk] {
        let size = Batch.Chunk.maxRecipients
        var chunks: [Batch.Chunk] = []
        for start in stride(from: 0, to: recipients.count, by: size) {
            let texts = recipients[start..<min(start + size, recipients.count)]
            let number = part * Batch.Chunk.maxPerPart + chunks.count
            let pending = texts.enumerated().map { Batch.Recipient(place: $0.offset, $0.element) }
            chunks.append(Batch.Chunk(count: texts.count, pending: try self.seal(pending, of: number)))
        }
        return chunks
    }
}
