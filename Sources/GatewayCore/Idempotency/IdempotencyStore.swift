import Crypto

/// Which send a key names: keys of different tenants and routes have nothing to do with each other.
package struct IdempotencyIdentity: Sendable, Hashable {
    package var tenant: TenantID
    /// Tells the tenant from others that had or will have its name.
    package var tenantCreatedAt: Timestamp
    package var route: IdempotentRequest.Route
    package var keyDigest: [UInt8]

    package init(tenant: TenantID, tenantCreatedAt: Timestamp, route: IdempotentRequest.Route, keyDigest: [UInt8]) {
        (self.tenant, self.tenantCreatedAt) = (tenant, tenantCreatedAt)
        (self.route, self.keyDigest) = (route, keyDigest)
    }

    init(_ request: IdempotentRequest, of profile: TenantProfile) {
        self.init(
            tenant: profile.id,
            tenantCreatedAt: profile.tenant.createdAt,
            route: request.route,
            keyDigest: request.key.digest
        )
    }
}

/// What is stored of a send that carries a key, from before anything of it leaves.
package struct IdempotencyRecord: Sendable, Hashable {
    /// How far the send has come.
    package enum State: Sendable, Hashable {
        /// Something of it may have left: which recipients, and what became of them, sealed. Next: `finished`.
        case open(progress: [UInt8])
        /// It was answered; the answer, sealed.
        case finished(answer: [UInt8])

        /// How many bytes of a store's bound a record takes: what is sealed, and 300 for the rest of the row and its
        /// indexes.
        package var weight: Int {
            switch self {
            case .open(let bytes), .finished(let bytes): bytes.count + 300
            }
        }
    }

    /// What tells requests apart that carry the same key.
    package var fingerprint: [UInt8]
    package var messageID: String
    /// When the key was first used.
    package var createdAt: Timestamp
    /// When the key is free again.
    package var expiresAt: Timestamp
    package var state: State

    package init(fingerprint: [UInt8], messageID: String, createdAt: Timestamp, expiresAt: Timestamp, state: State) {
        (self.fingerprint, self.messageID, self.state) = (fingerprint, messageID, state)
        (self.createdAt, self.expiresAt) = (createdAt, expiresAt)
    }
}

/// A record with the number that the store knows it by, which is never given to another one.
package struct StoredIdempotencyRecord: Sendable, Hashable {
    package var id: Int64
    package var record: IdempotencyRecord
    /// Whether another replica may be at it: it holds the lease, or did within the time of one call to FCM.
    package var isHeldElsewhere: Bool

    package init(id: Int64, record: IdempotencyRecord, isHeldElsewhere: Bool = false) {
        (self.id, self.record, self.isHeldElsewhere) = (id, record, isHeldElsewhere)
    }
}

/// One change of the records.
///
/// Where replicas share a store, a record belongs to the replica that reserved it, under a lease, and every change is refused
/// as `lost` to any other. Whoever has the store to itself owns all records.
package enum IdempotencyChange: Sendable, Hashable {
    /// Takes a key that is free or expired.
    case reserve(IdempotencyIdentity, IdempotencyRecord)
    /// Renews the lease as well; an open state is taken only while that still holds.
    case update(id: Int64, IdempotencyRecord.State)
    /// Renews the lease of an open record.
    case renew(id: Int64)
    /// Takes an open record whose lease and one call's time have passed, or that is one's own, as far as it still is what was
    /// read of it: its owner may have woken up meanwhile and marked more.
    case takeOver(id: Int64, progress: [UInt8])
    /// Frees a key.
    case release(id: Int64)

    /// What a change came to.
    package enum Outcome: Sendable, Hashable {
        /// The key is taken by the record of this number.
        case reserved(id: Int64, evicted: Int)
        /// Done, or there is no such record any more.
        case done
        case taken
        /// The record is another replica's now, or the lease has ended.
        case lost
        case full
        case tenantGone
    }
}

/// How far the time of keys (``IdempotencyTime``) had come, stored each time that expired ones are dropped.
package struct IdempotencyMark: Sendable, Hashable {
    package var time: Timestamp
    /// What the wall clock showed then.
    package var wall: Timestamp

    package init(time: Timestamp, wall: Timestamp) {
        (self.time, self.wall) = (time, wall)
    }
}

/// The time by which idempotency keys expire.
///
/// It passes as a process's uptime does, so that a wall clock that jumps ahead frees no key. A process begins where the
/// one before it stood by its last mark. What lies between the two is known from the wall clock alone, so it counts for
/// an hour at most: after a long rest keys are known for longer than they need be, never for less.
struct IdempotencyTime: Sendable, Hashable {
    /// The most that the time between two processes counts.
    static let maxGap = Duration.seconds(3_600)

    private let start: Timestamp
    private let uptime: ContinuousClock.Instant

    /// The time of a process, after an earlier one's mark; wall clock and uptime show the same moment.
    init(after mark: IdempotencyMark?, wall: Timestamp, uptime: ContinuousClock.Instant) {
        self.uptime = uptime
        guard let mark else {
            self.start = wall
            return
        }
        let longest = mark.time.advanced(by: Self.maxGap)
        let gap = max(0, wall.microseconds.subtractingReportingOverflow(mark.wall.microseconds).partialValue)
        self.start = min(longest, mark.time.advanced(by: .microseconds(gap)))
    }

    func now(at uptime: ContinuousClock.Instant) -> Timestamp {
        self.start.advanced(by: self.uptime.duration(to: uptime))
    }
}

/// How much a store holds of keys; bytes are the sum of the records' weights.
package struct IdempotencyBounds: Sendable, Hashable {
    package var maxRecords: Int
    package var maxRecordsPerTenant: Int
    package var maxBytes: Int
    package var maxBytesPerTenant: Int

    package init(
        maxRecords: Int = 4_000_000,
        maxRecordsPerTenant: Int = 2_000_000,
        maxBytes: Int = 4 << 30,
        maxBytesPerTenant: Int = 2 << 30
    ) {
        (self.maxRecords, self.maxRecordsPerTenant) = (maxRecords, maxRecordsPerTenant)
        (self.maxBytes, self.maxBytesPerTenant) = (maxBytes, maxBytesPerTenant)
    }
}

/// Stores what became of sends that carry a key.
///
/// Its calls throw `storeUnavailable`; one that writes has changed nothing then.
package protocol IdempotencyStore: Sendable {
    /// The record of a key, whether expired or not.
    func record(of identity: IdempotencyIdentity) async throws(GatewayError) -> StoredIdempotencyRecord?

    /// Makes changes in their order, in one transaction, and says what each came to; they are durable when it returns.
    /// A reservation that is there already, as after a lost answer, is the same one once more.
    ///
    /// Where a reservation finds no room, the finished records that are oldest give way: the tenant's own, or those of
    /// the tenant that has most.
    func apply(_ changes: [IdempotencyChange]) async throws(GatewayError) -> [IdempotencyChange.Outcome]

    /// Drops records that expired by a mark, so many at most, and stores the mark; how many were dropped.
    func purge(at mark: IdempotencyMark, limit: Int) async throws(GatewayError) -> Int

    /// The mark that was stored last; `nil` before the first.
    func mark() async throws(GatewayError) -> IdempotencyMark?
}

/// Seals what is stored of one send, since answers name tokens.
///
/// The keys are derived from the tenant's own, which is lost with its salt, and are used for one record alone. What is
/// sealed is bound to its record and its part in it, so that rows can't be exchanged.
struct IdempotencySealer: Sendable {
    /// What is sealed.
    enum Part: String {
        case progress
        case answer
    }

    private let key: SymmetricKey

    init(of identity: IdempotencyIdentity, messageID: String, _ profile: TenantProfile) {
        self.key = Self.key(for: "record \(identity.route.rawValue) \(messageID)", identity, profile)
    }

    func seal(_ bytes: [UInt8], as part: Part) throws(GatewayError) -> [UInt8] {
        try self.key.seal(bytes, for: part.rawValue)
    }

    /// What was sealed; `nil` for bytes of another record or part, or changed ones.
    func open(_ sealed: [UInt8], as part: Part) -> [UInt8]? {
        self.key.open(sealed, for: part.rawValue)
    }

    /// What tells a tenant's requests apart that carry the same key.
    ///
    /// An HMAC, so that a reader of the store alone can't try out what a body may have been.
    static func fingerprint(
        of request: IdempotentRequest,
        _ identity: IdempotencyIdentity,
        _ profile: TenantProfile
    ) -> [UInt8] {
        let key = Self.key(for: "fingerprint", identity, profile)
        return Array(HMAC<SHA256>.authenticationCode(for: request.digest, using: key))
    }

    private static func key(
        for use: String,
        _ identity: IdempotencyIdentity,
        _ profile: TenantProfile
    ) -> SymmetricKey {
        let key = profile.pseudonymizer.sealingKey
        return key.derived(for: "fcm-gateway idempotency 1 \(use)", salt: identity.keyDigest)
    }
}
