import Crypto

/// The stored state of a send with a key. It is written before the first call leaves.
package struct IdempotencyRecord: Sendable, Hashable {
    /// The send that a key names. Keys of different tenants or routes are unrelated.
    package struct Identity: Sendable, Hashable {
        package var tenant: TenantID
        /// Tells the tenant from earlier and later ones of the same name.
        package var tenantCreatedAt: Timestamp
        package var route: IdempotentRequest.Route
        package var keyDigest: [UInt8]
        /// The slice of a batch that the key belongs to. The key is reserved only while this replica holds the slice.
        package var slice: Batch.Claim?

        package init(
            tenant: TenantID,
            tenantCreatedAt: Timestamp,
            route: IdempotentRequest.Route,
            keyDigest: [UInt8],
            slice: Batch.Claim? = nil
        ) {
            (self.tenant, self.tenantCreatedAt) = (tenant, tenantCreatedAt)
            (self.route, self.keyDigest, self.slice) = (route, keyDigest, slice)
        }

        init(_ request: IdempotentRequest, of profile: TenantProfile) {
            self.init(
                tenant: profile.id,
                tenantCreatedAt: profile.tenant.createdAt,
                route: request.route,
                keyDigest: request.key.digest,
                slice: request.slice
            )
        }

        /// Hashes two words: a part of the digest tells keys apart, and the time of creation tenants.
        package func hash(into hasher: inout Hasher) {
            hasher.combine(self.keyDigest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
            hasher.combine(self.tenantCreatedAt.microseconds)
        }
    }

    /// A record and its number in the store. Numbers are never reused.
    package struct Stored: Sendable, Hashable {
        package var id: Int64
        package var record: IdempotencyRecord
        /// True if another replica may still work on it: it holds the lease, or held it within the time of one call to
        /// FCM.
        package var isHeldElsewhere: Bool

        package init(id: Int64, record: IdempotencyRecord, isHeldElsewhere: Bool = false) {
            (self.id, self.record, self.isHeldElsewhere) = (id, record, isHeldElsewhere)
        }
    }

    /// A key's record, `nil` if it has none, or the reason why it can't be read.
    package typealias Found = Result<Stored?, GatewayError>

    /// The send's progress.
    package enum State: Sendable, Hashable {
        /// Calls may have left. Holds the recipients that were started and their outcomes, sealed. Next: `finished`.
        case open(progress: [UInt8])
        /// It was answered. Holds the answer, sealed.
        case finished(answer: [UInt8])

        /// The bytes that count towards a store's bound: the sealed ones, and 300 for the rest of the row and its
        /// indexes.
        package var weight: Int {
            switch self {
            case .open(let bytes), .finished(let bytes): bytes.count + 300
            }
        }
    }

    /// Tells different requests with the same key apart.
    package var fingerprint: [UInt8]
    package var messageID: String
    /// The time at which the key was first used.
    package var createdAt: Timestamp
    /// The time from which the key is free again.
    package var expiresAt: Timestamp
    package var state: State

    package init(fingerprint: [UInt8], messageID: String, createdAt: Timestamp, expiresAt: Timestamp, state: State) {
        (self.fingerprint, self.messageID, self.state) = (fingerprint, messageID, state)
        (self.createdAt, self.expiresAt) = (createdAt, expiresAt)
    }
}

/// One change of the records.
///
/// If replicas share a store, a record belongs to the replica that reserved it or took it over. A change by any other
/// replica is `lost`. A process that does not share its store owns all records.
package enum IdempotencyChange: Sendable, Hashable {
    /// Takes a key that is free or expired.
    case reserve(IdempotencyRecord.Identity, IdempotencyRecord)
    /// Stores a state, and renews the lease or ends it. An open state is refused once the lease has ended.
    case update(id: Int64, IdempotencyRecord.State, endsLease: Bool = false)
    /// Renews the lease of an open record.
    case renew(id: Int64)
    /// Takes over an open record of this replica, or one whose lease ended at least one call's time ago.
    ///
    /// It is `lost` if the progress has changed since it was read, because the owner was only paused and marked more.
    case takeOver(id: Int64, progress: [UInt8])
    /// Frees a key.
    case release(id: Int64)

    /// The outcome of a change.
    package enum Outcome: Sendable, Hashable {
        /// The record of this number holds the key now.
        case reserved(id: Int64, evicted: Int)
        /// The change was made, or the record no longer exists.
        case done
        case taken
        /// Another replica holds the record, or the lease has ended.
        case lost
        case full
        case tenantGone
    }
}

/// A stored reading of ``IdempotencyTime``, written whenever expired keys are dropped.
package struct IdempotencyMark: Sendable, Hashable {
    package var time: Timestamp
    /// The wall clock's time at that moment.
    package var wall: Timestamp

    package init(time: Timestamp, wall: Timestamp) {
        (self.time, self.wall) = (time, wall)
    }
}

/// The time by which idempotency keys expire.
///
/// It advances with the process's uptime, so a wall clock that jumps ahead frees no key. A process continues from its
/// predecessor's last mark. Only the wall clock knows the time between the two, so at most an hour of it counts. After
/// a longer stop, keys live longer than they should, never shorter.
///
/// Example: the last mark is at 12:00, and the next process starts at 18:00. Its time of keys is 13:00, so a key that
/// was to expire at 14:00 expires at 19:00.
struct IdempotencyTime: Sendable, Hashable {
    /// The longest time between two processes that counts.
    static let maxGap = Duration.seconds(3_600)

    private let start: Timestamp
    private let uptime: Uptime

    /// Begins after an earlier process's mark. Wall clock and uptime are readings of the same moment.
    init(after mark: IdempotencyMark?, wall: Timestamp, uptime: Uptime) {
        self.uptime = uptime
        guard let mark else {
            self.start = wall
            return
        }
        let longest = mark.time.advanced(by: Self.maxGap)
        let gap = max(0, wall.microseconds.subtractingReportingOverflow(mark.wall.microseconds).partialValue)
        self.start = min(longest, mark.time.advanced(by: .microseconds(gap)))
    }

    func now(at uptime: Uptime) -> Timestamp {
        self.start.advanced(by: self.uptime.duration(to: uptime))
    }
}

/// The most records and bytes that a store holds. Bytes are the sum of the records' weights.
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

/// Stores the records of sends with a key.
///
/// Calls throw `storeUnavailable`. A write that throws has changed nothing.
package protocol IdempotencyStore: Sendable {
    /// Reads the record of each key, even an expired one, in one transaction. A record that can't be read does not affect the
    /// others.
    func records(of identities: [IdempotencyRecord.Identity]) async throws(GatewayError) -> [IdempotencyRecord.Found]

    /// Makes changes in their order in one transaction, and returns the outcome of each. They are durable when it
    /// returns. A reservation that exists already, as after a lost answer, is confirmed.
    ///
    /// If there is no room for a reservation, the oldest finished records are removed: those of the tenant, or those of
    /// the tenant with the most records.
    func apply(_ changes: [IdempotencyChange]) async throws(GatewayError) -> [IdempotencyChange.Outcome]

    /// Drops at most so many records that have expired by a mark, and stores the mark. Returns the number dropped.
    func purge(at mark: IdempotencyMark, limit: Int) async throws(GatewayError) -> Int

    /// Returns the latest mark, or `nil` before the first.
    func mark() async throws(GatewayError) -> IdempotencyMark?
}

extension IdempotencyStore {
    package func record(of identity: IdempotencyRecord.Identity) async throws(GatewayError) -> IdempotencyRecord.Stored?
    {
        try await self.records(of: [identity])[0].get()
    }
}

/// Seals the stored parts of one send, because answers name tokens.
///
/// Each record has its own key, derived from the tenant's, which is destroyed with the tenant's salt. Sealed bytes are
/// bound to their record and part, so rows can't be exchanged.
struct IdempotencySealer: Sendable {
    /// The part of a record that is sealed.
    enum Part: String {
        case progress
        case answer
    }

    private let key: SymmetricKey

    init(of identity: IdempotencyRecord.Identity, messageID: String, _ profile: TenantProfile) {
        let use = "record \(identity.route.rawValue) \(messageID)"
        self.key = SymmetricKey(data: Self.code(for: use, identity, profile))
    }

    func seal(_ bytes: [UInt8], as part: Part) throws(GatewayError) -> [UInt8] {
        try self.key.seal(bytes, for: part.rawValue)
    }

    /// Returns the plain bytes, or `nil` for bytes of another record or part, or changed ones.
    func open(_ sealed: [UInt8], as part: Part) -> [UInt8]? {
        self.key.open(sealed, for: part.rawValue)
    }

    /// Returns the fingerprint that tells a tenant's different requests with the same key apart.
    ///
    /// It is an HMAC, so a reader of the store alone can't test guesses of a body.
    static func fingerprint(
        of request: IdempotentRequest,
        _ identity: IdempotencyRecord.Identity,
        _ profile: TenantProfile
    ) -> [UInt8] {
        Array(Self.code(for: "fingerprint", identity, profile, request.digest))
    }

    /// Returns 32 bytes for one use and one key of a tenant's. No two uses hash the same bytes, because digests have one
    /// length and uses hold no zero byte.
    private static func code(
        for use: String,
        _ identity: IdempotencyRecord.Identity,
        _ profile: TenantProfile,
        _ digest: [UInt8] = []
    ) -> HMAC<SHA256>.MAC {
        var hash = profile.beginIdempotencyHash()
        hash.update(data: Array(use.utf8) + [0] + identity.keyDigest + digest)
        return hash.finalize()
    }
}
