package import FCMModel

/// The batches of all tenants.
///
/// Every change names what it expects, and does nothing if that no longer holds: a batch's state, or the round and owner
/// of a chunk. So any change can be repeated when its outcome is unknown. Calls throw `storeUnavailable`, besides what
/// they say.
package protocol BatchStore: Sendable {
    // MARK: For callers

    /// Makes changes in one transaction. Returns the outcome of each. If it throws, nothing was changed.
    func apply(_ changes: [BatchWrite]) async throws(GatewayError) -> [BatchWrite.Outcome]

    /// Adds a part to an open batch. Does nothing if the part is there with this digest.
    ///
    /// Throws `conflict` if it has another digest, `preconditionFailed` if the batch is not open or has recipients of
    /// another kind, `notFound`, `invalid` for a bound of the tenant, and `overloaded` for one of the store.
    func add(
        part number: Int,
        kind: Target.Kind,
        digest: [UInt8],
        chunks: [Batch.Chunk],
        to id: String,
        of tenant: TenantID
    ) async throws(GatewayError)

    /// Changes a batch's state if that is possible from its current one. Returns the batch as it is then, or `nil`.
    func apply(_ change: BatchChange, to id: String, of tenant: TenantID?) async throws(GatewayError) -> Batch?

    /// Returns a batch, of one tenant or of any.
    func batch(_ id: String, of tenant: TenantID?) async throws(GatewayError) -> Batch?

    /// Returns the time of a batch's next round, if all that is waiting is due later.
    func waitingUntil(_ id: String) async throws(GatewayError) -> Timestamp?

    /// Lists batches by their time of creation, newest first.
    func batches(_ filter: BatchFilter, limit: Int) async throws(GatewayError) -> [Batch]

    /// Returns some paused batches and messages of all tenants, the oldest first.
    func paused(for reasons: Set<Batch.Reason>, limit: Int) async throws(GatewayError) -> [Batch]

    /// Reads the results and pending recipients of some chunks, in their order.
    func results(of id: String, of tenant: TenantID, from chunk: Int, limit: Int)
        async throws(GatewayError) -> [(chunk: Int, pending: [UInt8], results: [UInt8])]

    /// Deletes a batch that is over. Returns false if there is none.
    func delete(_ id: String, of tenant: TenantID) async throws(GatewayError) -> Bool

    // MARK: For the runner

    /// Returns what is due. Nothing is while a live replica is of a release that does not know batches.
    func due() async throws(GatewayError) -> BatchesDue

    /// Takes due chunks of a tenant, those of higher priority first, with so many recipients in all; at least one chunk. A
    /// chunk whose slice is fixed keeps it; the others get slices of at most so many recipients.
    func claim(
        of tenant: TenantID,
        chunks limit: Int,
        slice: Int,
        recipients: Int
    ) async throws(GatewayError) -> [Batch.Slice]

    func renew(_ claims: [Batch.Claim]) async throws(GatewayError)

    /// Lets slices be claimed again whose owner's lease ended at least one call's time ago; at once if no other process
    /// uses the store. Returns their number. Retries that are due too late, because the clock was set back since, are due
    /// now.
    func returnAbandoned() async throws(GatewayError) -> Int

    /// Takes the tenant's turn to send to a topic or condition. Returns the time until the turn is free if it is not.
    func takeFanOut(of tenant: TenantID, gap: Duration) async throws(GatewayError) -> Duration?

    /// Stores a pause of a project, unless the known one ends later, and notifies all replicas.
    func add(_ pause: ProjectPause) async throws(GatewayError)

    func summary() async throws(GatewayError) -> BatchSummary

    /// Returns some batches whose time has passed.
    func overdue(limit: Int) async throws(GatewayError) -> [Batch]

    /// Deletes some of the batches whose retention is over. Returns their number.
    func purge(limit: Int) async throws(GatewayError) -> Int
}

/// A change of batches that shares a transaction with others.
package enum BatchWrite: Sendable {
    /// A batch with its message, sealed, and its first chunks, of part 0.
    package struct New: Sendable {
        package var batch: Batch
        package var message: [UInt8]
        package var chunks: [Batch.Chunk]

        package init(_ batch: Batch, message: [UInt8], chunks: [Batch.Chunk]) {
            (self.batch, self.message, self.chunks) = (batch, message, chunks)
            self.batch.counts.total = chunks.reduce(0) { $0 + $1.count }
        }
    }

    /// The result of one change.
    package enum Outcome: Sendable, Hashable {
        case done
        /// There is a batch with this id.
        case exists
        case tenantGone
        /// A bound of the tenant, or of the store, leaves no room.
        case tenantFull, storeFull
        /// Another process has recorded the round, or holds the slice.
        case lost
    }

    case create(New)
    /// Ends a round and deletes the idempotency key's record, if this process still holds the slice.
    case record(Batch.Recording, of: Batch.Claim)
    /// Returns a slice without a result. It is claimed again after a time, in the same round.
    case putBack(Batch.Claim, after: Duration)
}

/// The work of batches that is due, and the pauses that hold it back.
package struct BatchesDue: Sendable {
    /// The store's time.
    package var time: Timestamp
    /// The tenants that have something due, those that wait longest first.
    package var tenants: [TenantID] = []
    /// The time until the next of the other tenants has; `nil` if none has.
    package var wait: Duration?
    package var pauses: [ProjectPause] = []

    package init(at time: Timestamp) {
        self.time = time
    }
}

/// A pause of all sends by one project of FCM, whose quota is used up.
package struct ProjectPause: Sendable, Hashable {
    /// The project, or the tenant of a legacy upstream.
    package var project: String
    package var rest: Duration
    /// The part of each tenant's limit that counts at its end, in thousandths.
    package var permille: Int

    package init(project: String, rest: Duration, permille: Int) {
        (self.project, self.rest, self.permille) = (project, rest, permille)
    }
}

/// A change of a batch's state.
package enum BatchChange: Sendable, Hashable {
    /// Queues an open batch, to be sent by this API key, if it has so many parts and recipients.
    case start(parts: Int, recipients: Int, keyID: String)
    /// Lets slices that have begun finish, and claims no more. From `queued` and `running`.
    case pause(Batch.Reason, credential: String? = nil)
    /// Continues a paused batch, by this API key or by its own.
    case resume(keyID: String?)
    /// Ends a batch that is not over, in the state `cancelled`.
    case cancel(Batch.Reason?)
    /// Ends a batch whose time has passed, in the state `expired`; an open one, which was abandoned, in `cancelled`.
    case expire
}

/// The batches that a list shows.
package struct BatchFilter: Sendable, Hashable {
    /// A batch's place in a list.
    package struct Place: Sendable, Hashable {
        package var createdAt: Timestamp
        package var id: String

        package init(createdAt: Timestamp, id: String) {
            (self.createdAt, self.id) = (createdAt, id)
        }
    }

    /// `nil` for all tenants.
    package var tenant: TenantID?
    package var state: Batch.State?
    package var isMessage = false
    package var label: String?
    /// The last batch of the page before.
    package var after: Place?

    package init(tenant: TenantID? = nil) {
        self.tenant = tenant
    }
}

/// The batches of all tenants as metrics show them.
package struct BatchSummary: Sendable, Hashable {
    package var batches: [Batch.State: Int]
    /// The recipients of unfinished batches and messages that are not sent to yet.
    package var waiting: Int
    /// The time for which the oldest due chunk waits, at most.
    package var oldestDue: Duration

    package init(batches: [Batch.State: Int], waiting: Int, oldestDue: Duration) {
        (self.batches, self.waiting, self.oldestDue) = (batches, waiting, oldestDue)
    }
}

/// The bounds of the store's batches.
package struct BatchBounds: Sendable, Hashable {
    package var maxUnfinishedPerTenant = 100
    package var maxMessagesPerTenant = 100_000
    package var maxWaitingPerTenant = 2_000_000
    package var maxRecipients = 5_000_000
    package var maxBytes = 2 * 1024 * 1024 * 1024

    package init() {}

    package static let storeRefusal = "As many recipients of batches are kept as may be; repeat later"

    /// The reason why a tenant may not have more.
    package func refusal(isMessage: Bool) -> String {
        isMessage
            ? "A tenant may have \(self.maxMessagesPerTenant) messages waiting"
            : "A tenant may have \(self.maxUnfinishedPerTenant) unfinished batches, with \(self.maxWaitingPerTenant) "
                + "waiting recipients"
    }
}
