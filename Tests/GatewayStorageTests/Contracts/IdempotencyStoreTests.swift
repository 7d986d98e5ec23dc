import GRDB
import GatewayCore
import Synchronization
import Testing

@testable import GatewayStorage

/// The contract of every store of idempotency keys.
struct IdempotencyStoreTests {
    private static let start = DirectoryFixtures.start
    private static let day = Duration.seconds(86_400)

    private func add(_ tenant: String = "acme", to directory: any DirectoryStore) async throws {
        try await directory.apply(.putTenant(try DirectoryFixtures.tenant(tenant), salt: [1]))
    }

    private static func identity(
        _ key: UInt8 = 1,
        of tenant: String = "acme",
        route: IdempotentRequest.Route = .messages,
        tenantCreatedAt: Timestamp = Self.start
    ) throws -> IdempotencyRecord.Identity {
        IdempotencyRecord.Identity(
            tenant: try #require(TenantID(tenant)),
            tenantCreatedAt: tenantCreatedAt,
            route: route,
            keyDigest: Array(repeating: key, count: 32)
        )
    }

    private static func record(
        _ messageID: String = "message-1",
        after duration: Duration = .zero,
        state: IdempotencyRecord.State = .open(progress: [0, 255])
    ) -> IdempotencyRecord {
        let time = Self.start.advanced(by: duration)
        return IdempotencyRecord(
            fingerprint: [9, 0, 255],
            messageID: messageID,
            createdAt: time,
            expiresAt: time.advanced(by: Self.day),
            state: state
        )
    }

    /// Takes a key that must be free.
    private func take(
        _ identity: IdempotencyRecord.Identity,
        _ record: IdempotencyRecord = Self.record(),
        in store: any IdempotencyStore
    ) async throws -> Int64 {
        let outcomes = try await store.apply([.reserve(identity, record)])
        guard case .reserved(let id, evicted: _) = outcomes.first, outcomes.count == 1 else {
            Issue.record("\(outcomes)")
            return 0
        }
        return id
    }

    private func finish(_ id: Int64, _ answer: [UInt8] = [1], in store: any IdempotencyStore) async throws {
        #expect(try await store.apply([.update(id: id, .finished(answer: answer))]) == [.done])
    }

    @Test("An unused key has no record, and changes of unknown records do nothing", arguments: StoreKind.available)
    func empty(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore { store, _ async throws in
            #expect(try await store.record(of: Self.identity()) == nil)
            #expect(try await store.apply([]) == [])
            #expect(try await store.apply([.release(id: 7), .update(id: 7, .open(progress: []))]) == [.done, .done])
            #expect(
                try await store.purge(
                    at: IdempotencyMark(time: Timestamp(microseconds: .max), wall: Self.start),
                    limit: 10
                ) == 0
            )
        }
    }

    @Test("Records are read together, each at its key's place", arguments: StoreKind.available)
    func together(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore { store, _ in
            let identities = try (1...3).map { try Self.identity($0) }
            let first = try await self.take(identities[0], in: store)
            let last = try await self.take(identities[2], in: store)
            let found = try await store.records(of: [identities[2], identities[1], identities[0], identities[2]])
            #expect(try found.map { try $0.get()?.id } == [last, nil, first, last])
            #expect(try await store.records(of: []).isEmpty)
        }
    }

    @Test("A damaged record is reported at its place, and does not affect the others")
    func damaged() async throws {
        try await withSQLiteDatabase { database in
            let store = SQLIdempotencyStore(database: database)
            try await self.add(to: SQLDirectoryStore(database: database))
            let identities = try (1...2).map { try Self.identity($0) }
            let damaged = try await self.take(identities[0], in: store)
            let whole = try await self.take(identities[1], in: store)
            try await database.write {
                try $0.execute(
                    sql: "UPDATE idempotency_records SET message_id = CAST(x'ff' AS TEXT) WHERE id = \(damaged)"
                )
            }
            let found = try await store.records(of: identities)
            #expect(throws: GatewayError.self) { try found[0].get() }
            #expect(try found[1].get()?.id == whole)
        }
    }

    @Test("A change reads no other tenant's rows", arguments: StoreKind.available)
    func readRows(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let directory = SQLDirectoryStore(database: database)
            let counting = CountingDatabase(database)
            let store = SQLIdempotencyStore(database: counting)
            let tenants = (1...40).map { "tenant-\($0)" }
            for tenant in tenants { try await self.add(tenant, to: directory) }
            _ = try await store.apply(tenants.map { .reserve(try Self.identity(of: $0), Self.record()) })
            counting.rows.withLock { $0 = 0 }
            let id = try await self.take(try Self.identity(2, of: "tenant-7"), in: store)
            try await self.finish(id, in: store)
            _ = try await store.apply([.release(id: id)])
            // Three rows for the reservation, two for the update, and one for the release.
            #expect(counting.rows.withLock { $0 } <= 6)
        }
    }

    @Test("Open and finished records are read back unchanged", arguments: StoreKind.available)
    func roundTrip(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore { store, _ in
            let identity = try Self.identity()
            var record = Self.record()
            let id = try await self.take(identity, record, in: store)
            #expect(try await store.record(of: identity) == IdempotencyRecord.Stored(id: id, record: record))
            for state in [.open(progress: []), .finished(answer: [0, 1, 255])] as [IdempotencyRecord.State] {
                #expect(try await store.apply([.update(id: id, state)]) == [.done])
                record.state = state
                #expect(try await store.record(of: identity) == IdempotencyRecord.Stored(id: id, record: record))
            }
        }
    }

    @Test("Each change of a large batch has its own outcome at its index", arguments: StoreKind.available)
    func batch(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore { store, _ in
            let identities = try (1...200).map { try Self.identity($0) }
            let reserved = try await store.apply(identities.map { .reserve($0, Self.record("first")) })
            let ids = try reserved.map { outcome -> Int64 in
                guard case .reserved(let id, evicted: 0) = outcome else { throw UnexpectedOutcome(outcome: outcome) }
                return id
            }
            #expect(Set(ids).count == 200)
            #expect(try await store.record(of: identities[199])?.id == ids[199])

            let free = try Self.identity(201)
            let outcomes = try await store.apply([
                .reserve(identities[0], Self.record("second")), .update(id: ids[1], .finished(answer: [1])),
                .reserve(free, Self.record("second")), .release(id: ids[2]),
                .reserve(identities[3], Self.record("second", after: Self.day)),
                .update(id: ids[4], .open(progress: [4])), .reserve(try Self.identity(of: "gone"), Self.record()),
                .reserve(free, Self.record("third")), .update(id: ids[4], .finished(answer: [5])),
            ])
            try #require(outcomes.count == 9)
            let places = [0, 1, 3, 5, 6, 7, 8]
            #expect(places.map { outcomes[$0] } == [.taken, .done, .done, .done, .tenantGone, .taken, .done])
            let (second, renewed) = (try await store.record(of: free), try await store.record(of: identities[3]))
            #expect(
                outcomes[2] == second.map { .reserved(id: $0.id, evicted: 0) } && second?.record.messageID == "second"
            )
            #expect(outcomes[4] == renewed.map { .reserved(id: $0.id, evicted: 0) } && renewed?.id != ids[3])
            #expect(try await store.record(of: identities[1])?.record.state == .finished(answer: [1]))
            #expect(try await store.record(of: identities[2]) == nil)
            #expect(try await store.record(of: identities[4])?.record.state == .finished(answer: [5]))
        }
    }

    private struct UnexpectedOutcome: Error {
        let outcome: IdempotencyChange.Outcome
    }

    @Test("A key is taken once for its tenant and route", arguments: StoreKind.available)
    func exclusive(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore(of: ["acme", "other"]) { store, _ in
            let identity = try Self.identity()
            let outcomes = try await store.apply([
                .reserve(identity, Self.record("first")), .reserve(identity, Self.record("second")),
            ])
            #expect(outcomes.last == .taken)
            #expect(try await store.apply([.reserve(identity, Self.record("third"))]) == [.taken])
            #expect(try await store.record(of: identity)?.record.messageID == "first")
            let others = [
                try Self.identity(2), try Self.identity(of: "other"), try Self.identity(route: .legacy),
                try Self.identity(route: .v1),
            ]
            for other in others {
                #expect(try await store.record(of: other) == nil)
                _ = try await self.take(other, in: store)
            }
        }
    }

    @Test("A reservation repeated after a lost answer returns the same record", arguments: StoreKind.available)
    func repeated(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore { store, _ in
            let identity = try Self.identity()
            let id = try await self.take(identity, in: store)
            #expect(try await self.take(identity, in: store) == id)
            #expect(try await store.apply([.reserve(identity, Self.record("other"))]) == [.taken])
            #expect(try await store.apply([.update(id: id, .open(progress: [1]))]) == [.done])
            #expect(try await store.apply([.reserve(identity, Self.record())]) == [.taken])
        }
    }

    @Test("A released key can be taken again", arguments: StoreKind.available)
    func release(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore { store, _ in
            let identity = try Self.identity()
            let id = try await self.take(identity, in: store)
            #expect(try await store.apply([.release(id: id)]) == [.done])
            #expect(try await store.record(of: identity) == nil)
            #expect(try await self.take(identity, in: store) != id)
        }
    }

    @Test("An expired key can be taken again, and its old record's changes are lost", arguments: StoreKind.available)
    func expiry(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore { store, _ in
            let identity = try Self.identity()
            let old = try await self.take(identity, in: store)
            let almost = Self.day - .microseconds(1)
            #expect(try await store.apply([.reserve(identity, Self.record("new", after: almost))]) == [.taken])
            let new = try await self.take(identity, Self.record("new", after: Self.day), in: store)
            #expect(new != old)
            _ = try await store.apply([.update(id: old, .finished(answer: [1])), .release(id: old)])
            #expect(try await store.record(of: identity)?.record == Self.record("new", after: Self.day))
        }
    }

    @Test("A purge deletes only expired records, up to its limit", arguments: StoreKind.available)
    func purge(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore { store, _ in
            for key in 1...5 as ClosedRange<UInt8> {
                _ = try await self.take(
                    try Self.identity(key),
                    Self.record("\(key)", after: .seconds(Int(key))),
                    in: store
                )
            }
            #expect(try await store.mark() == nil)
            let moment = Self.start.advanced(by: Self.day + .seconds(3))
            let mark = IdempotencyMark(time: moment, wall: Self.start)
            #expect(try await store.purge(at: mark, limit: 2) == 2)
            #expect(try await store.purge(at: mark, limit: 2) == 1)
            #expect(try await store.purge(at: mark, limit: 2) == 0)
            #expect(try await store.record(of: Self.identity(3)) == nil)
            #expect(try await store.record(of: Self.identity(4)) != nil)
            #expect(try await store.mark() == mark)
            #expect(try await store.purge(at: IdempotencyMark(time: Self.start, wall: moment), limit: 2) == 0)
            #expect(try await store.mark() == IdempotencyMark(time: Self.start, wall: moment))
        }
    }

    @Test("A tenant's keys are deleted with it, and a new tenant has none of them", arguments: StoreKind.available)
    func tenants(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore(of: []) { store, directory in
            let identity = try Self.identity()
            #expect(try await store.apply([.reserve(identity, Self.record())]) == [.tenantGone])
            try await self.add(to: directory)
            let id = try await self.take(identity, in: store)
            try await directory.apply(.deleteTenant(identity.tenant))
            #expect(try await store.record(of: identity) == nil)
            #expect(try await store.apply([.update(id: id, .finished(answer: []))]) == [.done])
            #expect(try await store.apply([.reserve(identity, Self.record())]) == [.tenantGone])
            var anew = try DirectoryFixtures.tenant()
            anew.createdAt = Self.start.advanced(by: .seconds(1))
            try await directory.apply(.putTenant(anew, salt: [2]))
            #expect(try await store.apply([.reserve(identity, Self.record())]) == [.tenantGone])
            let later = try Self.identity(tenantCreatedAt: anew.createdAt)
            #expect(try await store.record(of: later) == nil)
            _ = try await self.take(later, in: store)
            #expect(try await store.record(of: identity) == nil)
        }
    }

    // MARK: Leases

    /// The stores of two replicas with leases of this duration; a negative lease has already ended.
    private static func replicas(
        over database: any SQLDatabase,
        lease: Duration,
        attemptTimeout: Duration = .zero
    ) -> (one: SQLIdempotencyStore, two: SQLIdempotencyStore) {
        let terms = LeaseTerms(duration: lease, attemptTimeout: { attemptTimeout })
        return (
            SQLIdempotencyStore(database: database, owner: ReplicaID(text: "one"), leases: terms),
            SQLIdempotencyStore(database: database, owner: ReplicaID(text: "two"), leases: terms)
        )
    }

    @Test("While a lease lasts, no other replica changes or takes over its record", arguments: StoreKind.available)
    func held(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            try await self.add(to: SQLDirectoryStore(database: database))
            let (one, two) = Self.replicas(over: database, lease: .seconds(3_600), attemptTimeout: .seconds(60))
            let identity = try Self.identity()
            let id = try await self.take(identity, in: one)
            #expect(try await one.record(of: identity)?.isHeldElsewhere == false)
            #expect(try await two.record(of: identity)?.isHeldElsewhere == true)
            let late: [IdempotencyChange] = [
                .reserve(identity, Self.record()), .takeOver(id: id, progress: [0, 255]), .renew(id: id),
                .update(id: id, .open(progress: [1])), .update(id: id, .finished(answer: [1])), .release(id: id),
            ]
            #expect(try await two.apply(late) == [.taken, .lost, .lost, .lost, .lost, .lost])
            #expect(try await one.record(of: identity)?.record == Self.record())
            let own: [IdempotencyChange] = [
                .renew(id: id), .takeOver(id: id, progress: [0, 255]), .update(id: id, .open(progress: [1])),
            ]
            #expect(try await one.apply(own) == [.done, .done, .done])
            // An owner that ends its lease lets any replica continue at once.
            #expect(try await one.apply([.update(id: id, .open(progress: [3]), endsLease: true)]) == [.done])
            #expect(try await two.record(of: identity)?.isHeldElsewhere == false)
            #expect(try await two.apply([.takeOver(id: id, progress: [3])]) == [.done])
            #expect(try await two.apply([.update(id: id, .finished(answer: [2]))]) == [.done])
            // Every replica may read a stored answer.
            let finished = try #require(try await one.record(of: identity))
            #expect(finished.record.state == .finished(answer: [2]))
            #expect(!finished.isHeldElsewhere)
            #expect(try await two.apply([.renew(id: id), .takeOver(id: id, progress: [3])]) == [.lost, .lost])
        }
    }

    @Test("After its lease an owner can't update, and one replica takes over", arguments: StoreKind.available)
    func ended(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            try await self.add(to: SQLDirectoryStore(database: database))
            let (one, _) = Self.replicas(over: database, lease: .seconds(-10))
            let (_, two) = Self.replicas(over: database, lease: .seconds(3_600))
            let identity = try Self.identity()
            let id = try await self.take(identity, in: one)
            #expect(try await one.apply([.update(id: id, .open(progress: [1]))]) == [.lost])
            #expect(try await two.record(of: identity)?.isHeldElsewhere == false)
            #expect(try await two.apply([.takeOver(id: id, progress: [0, 255])]) == [.done])
            #expect(try await one.record(of: identity)?.isHeldElsewhere == true)
            let late: [IdempotencyChange] = [
                .renew(id: id), .takeOver(id: id, progress: [0, 255]),
                .update(id: id, .finished(answer: [1])), .release(id: id),
            ]
            #expect(try await one.apply(late) == [.lost, .lost, .lost, .lost])
            #expect(try await two.apply([.release(id: id)]) == [.done])
            // A paused owner must not send a request that another replica has released and may have sent since.
            #expect(try await one.apply([.update(id: id, .open(progress: [1]))]) == [.lost])
        }
    }

    @Test("A takeover waits for the lease and one attempt's timeout", arguments: StoreKind.available)
    func grace(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            try await self.add(to: SQLDirectoryStore(database: database))
            let (one, two) = Self.replicas(over: database, lease: .seconds(-10), attemptTimeout: .seconds(3_600))
            let identity = try Self.identity()
            let id = try await self.take(identity, in: one)
            #expect(try await two.record(of: identity)?.isHeldElsewhere == true)
            #expect(try await two.apply([.takeOver(id: id, progress: [0, 255])]) == [.lost])
            // No replica took it over, so its answer can still be stored.
            #expect(try await one.apply([.update(id: id, .finished(answer: [1]))]) == [.done])
        }
    }

    @Test("A record that its owner has updated since the read is not taken over", arguments: StoreKind.available)
    func markedSince(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            try await self.add(to: SQLDirectoryStore(database: database))
            let (one, _) = Self.replicas(over: database, lease: .seconds(3_600))
            let (ended, two) = Self.replicas(over: database, lease: .seconds(-10))
            let identity = try Self.identity()
            let id = try await self.take(identity, in: ended)
            let read = try #require(try await two.record(of: identity))
            #expect(read.record.state == .open(progress: [0, 255]) && !read.isHeldElsewhere)
            // The owner resumes, updates its progress, and is paused again.
            #expect(try await one.apply([.renew(id: id), .update(id: id, .open(progress: [1]))]) == [.done, .done])
            #expect(try await ended.apply([.renew(id: id)]) == [.done])
            #expect(try await two.apply([.takeOver(id: id, progress: [0, 255])]) == [.lost])
            #expect(try await two.apply([.takeOver(id: id, progress: [1])]) == [.done])
        }
    }

    // MARK: Bounds

    @Test("A full tenant evicts its oldest finished record, never an open one", arguments: StoreKind.available)
    func tenantBound(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore(of: ["acme", "other"], bounds: IdempotencyBounds(maxRecordsPerTenant: 3)) {
            store,
            _ in
            var ids: [Int64] = []
            for key in 1...3 as ClosedRange<UInt8> {
                ids.append(try await self.take(try Self.identity(key), in: store))
            }
            let fourth = try Self.identity(4)
            #expect(try await store.apply([.reserve(fourth, Self.record())]) == [.full])
            // Another tenant has its own limit.
            _ = try await self.take(try Self.identity(of: "other"), in: store)
            try await self.finish(ids[1], in: store)
            let outcomes = try await store.apply([.reserve(fourth, Self.record())])
            guard case .reserved(_, evicted: 1) = outcomes.first else {
                Issue.record("\(outcomes)")
                return
            }
            #expect(try await store.record(of: Self.identity(1)) != nil)
            #expect(try await store.record(of: Self.identity(2)) == nil)
            #expect(try await store.apply([.reserve(try Self.identity(5), Self.record())]) == [.full])
            #expect(try await store.apply([.release(id: ids[0])]) == [.done])
            _ = try await self.take(try Self.identity(5), in: store)
        }
    }

    @Test("A tenant's records are limited in bytes, too", arguments: StoreKind.available)
    func byteBound(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore(bounds: IdempotencyBounds(maxBytesPerTenant: 10_000)) { store, _ in
            let first = try await self.take(try Self.identity(1), in: store)
            try await self.finish(first, Array(repeating: 1, count: 5_000), in: store)
            let second = try await self.take(try Self.identity(2), in: store)
            try await self.finish(second, Array(repeating: 1, count: 5_000), in: store)
            _ = try await self.take(try Self.identity(3), in: store)
            #expect(try await store.record(of: Self.identity(1)) == nil)
            let big = Array(repeating: UInt8(1), count: 11_000)
            _ = try await self.take(try Self.identity(4), Self.record(state: .open(progress: big)), in: store)
            #expect(try await store.apply([.reserve(try Self.identity(5), Self.record())]) == [.full])
        }
    }

    @Test("A full store evicts a record of the tenant with the most", arguments: StoreKind.available)
    func totalBound(kind: StoreKind) async throws {
        try await kind.withIdempotencyStore(of: ["acme", "other", "third"], bounds: IdempotencyBounds(maxRecords: 4)) {
            store,
            directory in
            for key in 1...3 as ClosedRange<UInt8> {
                try await self.finish(try await self.take(try Self.identity(key), in: store), in: store)
            }
            try await self.finish(try await self.take(try Self.identity(of: "other"), in: store), in: store)
            _ = try await self.take(try Self.identity(of: "third"), in: store)
            #expect(try await store.record(of: Self.identity(of: "other")) != nil)
            #expect(try await store.record(of: Self.identity(1)) == nil)
            try await directory.apply(.deleteTenant(try #require(TenantID("third"))))
            // The deleted tenant's records no longer count.
            for key in 5...7 as ClosedRange<UInt8> { _ = try await self.take(try Self.identity(key), in: store) }
            #expect(try await store.record(of: Self.identity(of: "other")) != nil)
            _ = try await self.take(try Self.identity(8), in: store)
            #expect(try await store.record(of: Self.identity(of: "other")) == nil)
            #expect(try await store.apply([.reserve(try Self.identity(9), Self.record())]) == [.full])
        }
    }
}
