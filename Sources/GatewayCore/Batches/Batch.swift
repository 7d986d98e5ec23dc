package import FCMModel

/// One message to many recipients, which is sent later, at a pace, and whatever crashes.
///
/// - The recipients are cut into *chunks* of at most 500. A *part* is a caller's upload, of several chunks.
/// - A *slice* is the part of a chunk that is sent at once, by the idempotent send. Its key is batch, chunk and *round*.
///   The number of its recipients is fixed when it is first claimed.
/// - A *round* ends when the slice's results are recorded. Recipients without a final result stay *pending*.
///
///     open → queued → running ⇄ paused → finished | cancelled | expired
package struct Batch: Sendable, Hashable {
    /// The states of a batch, in the order of a batch's life.
    package enum State: String, Sendable, Hashable, CaseIterable {
        /// Parts may be added. Next: `queued`, `cancelled`.
        case open
        /// Nothing was claimed so far. Next: `running`, `paused`, `cancelled`, `expired`.
        case queued
        /// Next: all but `open` and `queued`.
        case running
        /// Next: `queued`, `running`, `cancelled`, `expired`.
        case paused
        case finished, cancelled, expired

        package var isOver: Bool { self == .finished || self == .cancelled || self == .expired }
    }

    /// The reason for a pause, or for an end before all recipients were sent to.
    package enum Reason: String, Sendable, Hashable, CaseIterable {
        case caller, canary, restored, failover, abandoned
        case byOperator = "operator"
        case upstreamCredentials = "upstream_credentials"
        case keyRevoked = "key_revoked"
        case tenantDisabled = "tenant_disabled"
    }

    /// The order of a tenant's batches, in the order of their claims.
    package enum Priority: String, Sendable, Hashable, CaseIterable, Codable {
        case high, normal, low
    }

    /// The first recipients are sent to alone. The others follow after a time if few of the first were rejected.
    package struct Canary: Sendable, Hashable, Codable {
        package var recipients: Int
        package var maxRejectedPercent: Int
        package var holdSeconds: Int

        package init(recipients: Int, maxRejectedPercent: Int, holdSeconds: Int) {
            self.recipients = recipients
            self.maxRejectedPercent = maxRejectedPercent
            self.holdSeconds = holdSeconds
        }
    }

    /// The choices of the caller that decide how a batch is sent. They are stored as JSON, so a later member must be
    /// optional.
    package struct Options: Sendable, Hashable, Codable {
        package var priority = Priority.normal
        /// The time over which the recipients are spread; `nil` for as fast as the pace allows.
        package var windowSeconds: Int?
        /// True if recipients whose outcome is unknown are sent to once more.
        package var resendsUnknown = false
        /// True if accepted recipients are kept in the results.
        package var keepsAccepted = false
        package var canary: Canary?
        /// True if FCM only checks the message.
        package var isDryRun = false
        /// The time after which what is left is given up, from the due time.
        package var lifetimeSeconds = 86_400
        /// True if the batch does not start near a quarter of an hour, when FCM is busiest.
        package var avoidsPeaks = false

        package init() {}
    }

    /// The recipients by their outcome. The others are waiting.
    package struct Counts: Sendable, Hashable {
        package var total = 0
        package var accepted = 0
        package var rejected = 0
        package var unknown = 0
        package var expired = 0
        package var cancelled = 0

        package init() {}

        package var waiting: Int {
            self.total - self.accepted - self.rejected - self.unknown - self.expired - self.cancelled
        }
    }

    /// The time for which an open batch waits for its parts.
    package static let openTime = Duration.seconds(86_400)

    package var id: String
    package var tenant: TenantID
    /// The kind of its recipients.
    package var kind: Target.Kind
    /// True for a message that was accepted by itself. Lists leave it out.
    package var isMessage = false
    /// A digest of the request that made it.
    package var digest: [UInt8] = []
    package var state: State
    package var reason: Reason?
    /// The fingerprint of the credential that FCM refused, while it is paused for that reason.
    package var credential: String?
    package var label: String?
    /// The id of the API key that each slice is sent by: the one that created, started or resumed it last.
    package var keyID: String
    /// The id of the API key that created it, and that may read its recipients.
    package var creatorID: String
    package var options: Options
    package var createdAt: Timestamp
    package var dueAt: Timestamp
    package var expiresAt: Timestamp
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?
    /// The time for which it is kept after its end, for its results and for repeats of its request.
    package var retention = Duration.seconds(7 * 86_400)
    package var counts = Counts()
    /// The time of the next round, if all that is waiting is due later. Known only of a batch that was read alone.
    package var waitingUntil: Timestamp?
    /// True once the canary's recipients were sent to, and the others may follow.
    package var isCanaryOver = false

    package init(
        id: String,
        tenant: TenantID,
        kind: Target.Kind = .tokens,
        state: State,
        label: String? = nil,
        keyID: String,
        options: Options = Options(),
        createdAt: Timestamp,
        dueAt: Timestamp,
        expiresAt: Timestamp
    ) {
        (self.id, self.tenant, self.kind, self.state) = (id, tenant, kind, state)
        (self.label, self.keyID, self.creatorID) = (label, keyID, keyID)
        (self.options, self.createdAt, self.dueAt, self.expiresAt) = (options, createdAt, dueAt, expiresAt)
    }
}

// MARK: Changes

extension Batch {
    /// The meaning of a canary's end for the other recipients.
    package enum CanaryVerdict: Sendable, Hashable {
        /// They follow after a time.
        case passed(hold: Duration)
        /// Too many were rejected, and the batch is paused.
        case failed
    }

    /// True while only the canary's recipients may be sent to.
    package var isInCanary: Bool { self.options.canary != nil && !self.isCanaryOver }

    /// Sets the due time, and the end of the lifetime from then on.
    package mutating func setDue(_ time: Timestamp) {
        self.dueAt = self.options.avoidsPeaks ? time.afterPeak : time
        self.expiresAt = self.dueAt.advanced(by: .seconds(self.options.lifetimeSeconds))
    }

    /// Makes a change, if the state allows it.
    package mutating func apply(_ change: BatchChange, at now: Timestamp) -> Bool {
        switch change {
        case .start(_, let recipients, let keyID):
            guard self.state == .open, self.counts.total == recipients else { return false }
            (self.state, self.keyID) = (.queued, keyID)
            self.setDue(max(self.dueAt, now))
        case .pause(let reason, let credential):
            guard self.state == .queued || self.state == .running else { return false }
            (self.state, self.reason, self.credential) = (.paused, reason, credential)
        case .resume(let keyID):
            guard self.state == .paused else { return false }
            (self.state, self.reason, self.credential) = (self.startedAt == nil ? .queued : .running, nil, nil)
            if let keyID { self.keyID = keyID }
        case .cancel(let reason):
            guard !self.state.isOver else { return false }
            (self.state, self.reason, self.finishedAt) = (.cancelled, reason, now)
        case .expire:
            guard !self.state.isOver, self.expiresAt <= now else { return false }
            (self.state, self.reason) = self.state == .open ? (.cancelled, .abandoned) : (.expired, nil)
            self.finishedAt = now
        }
        return true
    }

    /// Notes that something was sent. A claim leaves that out if the batch is locked.
    package mutating func begin(at now: Timestamp) {
        if self.state == .queued { self.state = .running }
        self.startedAt = self.startedAt ?? now
    }

    /// Adds the outcomes of a round. Recipients that are left in a batch that is over have the batch's own outcome.
    package mutating func add(_ recording: Recording) {
        self.counts.accepted += recording.added.accepted
        self.counts.rejected += recording.added.rejected
        self.counts.unknown += recording.added.unknown
        if self.state.isOver { self.giveUp(recording.pendingCount) }
    }

    /// Counts recipients of a batch that is over, and that are not sent to any more.
    package mutating func giveUp(_ count: Int) {
        if self.state == .expired { self.counts.expired += count } else { self.counts.cancelled += count }
    }

    /// Ends the batch if no recipient is waiting. Returns true if that was so only now.
    package mutating func finish(at now: Timestamp) -> Bool {
        guard self.finishedAt == nil, self.counts.waiting == 0 else { return false }
        (self.state, self.reason, self.finishedAt) = (.finished, nil, now)
        return true
    }

    /// Judges the canary once all of its recipients were sent to. Returns `nil` before, and once it was judged.
    package mutating func judgeCanary() -> CanaryVerdict? {
        guard let canary = self.options.canary, !self.isCanaryOver, !self.state.isOver else { return nil }
        let sent = self.counts.accepted + self.counts.rejected + self.counts.unknown
        guard sent >= canary.recipients else { return nil }
        self.isCanaryOver = true
        guard self.counts.rejected * 100 > canary.maxRejectedPercent * sent else {
            return .passed(hold: .seconds(canary.holdSeconds))
        }
        // A caller's own pause stays.
        if self.state != .paused { (self.state, self.reason) = (.paused, .canary) }
        return .failed
    }
}

extension Timestamp {
    /// The time itself, or the end of FCM's peak around a quarter of an hour: two minutes before and after it.
    package var afterPeak: Timestamp {
        let (quarter, half) = (Int64(900_000_000), Int64(120_000_000))
        let place = (self.microseconds + half) % quarter
        return place < 2 * half ? self.advanced(by: .microseconds(2 * half - place)) : self
    }
}

// MARK: Parts

extension Batch {
    /// Some recipients of a batch on their way into the store.
    package struct Chunk: Sendable, Hashable {
        package static let maxRecipients = 500
        /// The chunks of a part have numbers of their own, whatever other parts are there.
        package static let maxPerPart = 16

        package var count: Int
        /// The recipients, sealed.
        package var pending: [UInt8]

        package init(count: Int, pending: [UInt8]) {
            (self.count, self.pending) = (count, pending)
        }
    }

    /// A slice that this process holds under a lease.
    package struct Claim: Sendable, Hashable {
        package var batch: String
        package var chunk: Int
        package var round: Int
        /// The number of recipients, taken from the front of the chunk's pending ones.
        package var slice: Int
        /// The number of earlier rounds that ended with recipients to be sent to again.
        package var retries: Int
        package var dueAt: Timestamp

        package init(batch: String, chunk: Int, round: Int, slice: Int, retries: Int = 0, dueAt: Timestamp) {
            (self.batch, self.chunk, self.round) = (batch, chunk, round)
            (self.slice, self.retries, self.dueAt) = (slice, retries, dueAt)
        }
    }

    /// A claimed slice, with what it is made of.
    package struct Slice: Sendable, Hashable {
        package var claim: Claim
        package var batch: Batch
        /// The message as JSON, sealed.
        package var message: [UInt8]
        /// The chunk's recipients without a result, sealed. The slice is at their front.
        package var pending: [UInt8]
        package var pendingCount: Int
        /// The results of earlier rounds, sealed; empty before the first.
        package var results: [UInt8]
        /// The store's time at the claim.
        package var time: Timestamp

        package init(
            claim: Claim,
            batch: Batch,
            message: [UInt8],
            pending: [UInt8],
            pendingCount: Int,
            results: [UInt8],
            time: Timestamp
        ) {
            (self.claim, self.batch, self.message) = (claim, batch, message)
            (self.pending, self.pendingCount, self.results, self.time) = (pending, pendingCount, results, time)
        }
    }

    /// The end of a round: what is stored of it, all or nothing.
    package struct Recording: Sendable, Hashable {
        /// The recipients that are left, sealed, and their number.
        package var pending: [UInt8]
        package var pendingCount: Int
        package var results: [UInt8]
        /// The outcomes to be added to the batch's; ``Counts/total`` is not used.
        package var added: Counts
        /// The earliest time of the next round, if it does not wait from now.
        package var dueAt: Timestamp
        /// The time until the next round.
        package var wait: Duration?
        /// True if the round ended with recipients that must be sent to again.
        package var isRetry: Bool

        package init(
            pending: [UInt8],
            pendingCount: Int,
            results: [UInt8],
            added: Counts,
            dueAt: Timestamp,
            wait: Duration? = nil,
            isRetry: Bool = false
        ) {
            (self.pending, self.pendingCount, self.results) = (pending, pendingCount, results)
            (self.added, self.dueAt, self.wait, self.isRetry) = (added, dueAt, wait, isRetry)
        }
    }
}
