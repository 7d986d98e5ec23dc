import FCMModel
import GatewayCore
import Testing

@testable import GatewayStorage

@Suite("SQLBatchStore")
struct BatchStoreTests {
    private static let start = DirectoryFixtures.start

    private static func batch(
        _ id: String = "b1",
        tenant: String = "acme",
        state: Batch.State = .queued,
        priority: Batch.Priority = .normal,
        due: Int = 0,
        label: String? = nil
    ) throws -> Batch {
        var options = Batch.Options()
        options.priority = priority
        return Batch(
            id: id,
            tenant: try #require(TenantID(tenant)),
            state: state,
            label: label,
            keyID: "key",
            options: options,
            createdAt: Self.start,
            dueAt: Self.start.advanced(by: .seconds(due)),
            expiresAt: Self.start.advanced(by: .seconds(86_400))
        )
    }

    private static func chunks(_ counts: Int...) -> [Batch.Chunk] {
        counts.enumerated().map { Batch.Chunk(count: $0.element, pending: [UInt8($0.offset)]) }
    }

    private static func recording(
        left: Int = 0,
        accepted: Int = 0,
        rejected: Int = 0,
        due: Int = 0,
        isRetry: Bool = false
    ) -> Batch.Recording {
        var added = Batch.Counts()
        (added.accepted, added.rejected) = (accepted, rejected)
        return Batch.Recording(
            pending: [9],
            pendingCount: left,
            results: [8],
            added: added,
            dueAt: Self.start.advanced(by: .seconds(due)),
            isRetry: isRetry
        )
    }

    private static func store(
        _ owner: String = "one",
        lease: Duration = .seconds(3_600),
        over database: any SQLDatabase,
        within bounds: BatchBounds = BatchBounds()
    ) -> SQLBatchStore {
        let terms = LeaseTerms(duration: lease, attemptTimeout: { .seconds(1) })
        return SQLBatchStore(database: database, bounds: bounds, owner: ReplicaID(text: owner), leases: terms)
    }

    /// Runs with a store that knows the tenants `acme` and `other`.
    private static func with(
        _ kind: StoreKind,
        _ body: (_ store: SQLBatchStore, _ database: any SQLDatabase) async throws -> Void
    ) async throws {
        try await kind.withDatabase { database in
            // As a gateway does at its start.
            try await StoreEpoch.confirm(in: database)
            for tenant in ["acme", "other"] {
                let change = Directory.Change.putTenant(try DirectoryFixtures.tenant(tenant), salt: [1])
                try await SQLDirectoryStore(database: database).apply(change)
            }
            try await body(Self.store(over: database), database)
        }
    }

    private static func create(
        _ batch: Batch,
        _ chunks: [Batch.Chunk],
        in store: SQLBatchStore,
        expecting outcome: BatchWrite.Outcome = .done
    ) async throws {
        let new = BatchWrite.New(batch, message: [1, 2], chunks: chunks)
        #expect(try await store.apply([.create(new)]) == [outcome])
    }

    @Test("A batch is read as it was written, and belongs to its tenant alone", arguments: StoreKind.available)
    func roundTrip(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            var batch = try Self.batch(label: "goal")
            batch.options.windowSeconds = 300
            batch.options.resendsUnknown = true
            batch.options.keepsAccepted = true
            batch.options.canary = Batch.Canary(recipients: 10, maxRejectedPercent: 5, holdSeconds: 60)
            try await Self.create(batch, Self.chunks(3, 4), in: store)
            // A repeat, as after a lost COMMIT, changes nothing.
            try await Self.create(batch, Self.chunks(3, 4), in: store, expecting: .exists)
            batch.counts.total = 7
            #expect(try await store.batch("b1", of: batch.tenant) == batch)
            let other = try #require(TenantID("other"))
            #expect(try await store.batch("b1", of: other) == nil)
            #expect(try await store.apply(.pause(.caller), to: "b1", of: other) == nil)
            #expect(try await store.results(of: "b1", of: other, from: 0, limit: 9).isEmpty)
            #expect(try await store.results(of: "b1", of: batch.tenant, from: 1, limit: 9).map(\.chunk) == [1])
            #expect(try await store.delete("b1", of: batch.tenant) == false)
        }
    }

    @Test("Parts are added once each to an open batch, which starts with all of them", arguments: StoreKind.available)
    func parts(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            let batch = try Self.batch(state: .open)
            try await Self.create(batch, [], in: store)
            func add(_ part: Int, _ digest: UInt8, _ counts: Int...) async throws {
                let chunks = counts.map { Batch.Chunk(count: $0, pending: [7]) }
                try await store.add(
                    part: part,
                    kind: .tokens,
                    digest: [digest],
                    chunks: chunks,
                    to: "b1",
                    of: batch.tenant
                )
            }
            try await add(2, 2, 500, 10)
            try await add(1, 1, 3)
            try await add(1, 1, 3)
            await #expect(throws: GatewayError.self) { try await add(1, 9, 3) }
            func start(_ parts: Int, _ recipients: Int) async throws -> Batch.State? {
                let change = BatchChange.start(parts: parts, recipients: recipients, keyID: "starter")
                return try await store.apply(change, to: "b1", of: batch.tenant)?.state
            }
            #expect(try await store.claims(of: batch.tenant, chunks: 9, slice: 500).isEmpty)
            #expect(try await start(2, 512) == .open)
            #expect(try await start(1, 513) == .open)
            #expect(try await start(2, 513) == .queued)
            #expect(try await start(2, 513) == .queued)
            await #expect(throws: GatewayError.self) { try await add(3, 3, 1) }
            // A repeated upload is no error after the start either.
            try await add(1, 1, 3)
            #expect(
                try await store.claims(of: batch.tenant, chunks: 9, slice: 400).map(\.slice).sorted() == [3, 10, 400]
            )
        }
    }

    @Test(
        "Due chunks are claimed once, by priority and due time, with the slice that was fixed first",
        arguments: StoreKind.available
    )
    func claims(kind: StoreKind) async throws {
        try await Self.with(kind) { store, database in
            let acme = try #require(TenantID("acme"))
            try await Self.create(try Self.batch("late", due: 2), Self.chunks(1), in: store)
            try await Self.create(try Self.batch("low", priority: .low), Self.chunks(1), in: store)
            try await Self.create(try Self.batch("early", due: 1), Self.chunks(40, 60), in: store)
            try await Self.create(try Self.batch("high", priority: .high, due: 3), Self.chunks(1), in: store)
            try await Self.create(try Self.batch("future", due: 2_000_000_000), Self.chunks(1), in: store)
            try await Self.create(try Self.batch("others", tenant: "other"), Self.chunks(1), in: store)
            let first = try await store.claims(of: acme, chunks: 3, slice: 50)
            #expect(
                Set(first.map { "\($0.batch) \($0.chunk) \($0.slice)" }) == ["high 0 1", "early 0 40", "early 1 50"]
            )
            let two = Self.store("two", over: database)
            #expect(try await two.claims(of: acme, chunks: 9, slice: 50).map(\.batch) == ["late", "low"])
            #expect(try await store.claims(of: acme, chunks: 9, slice: 50).isEmpty)
            // A slice without a result comes back in the same round and size, whatever is asked for.
            let claim = try #require(first.first { $0.chunk == 1 })
            try await two.putBack(claim)
            try await store.putBack(claim)
            let slice = try #require(try await two.claim(of: acme, chunks: 9, slice: 10, recipients: 5_000).first)
            var again = claim
            again.dueAt = slice.claim.dueAt
            #expect(slice.claim == again && slice.batch.id == "early" && slice.batch.state == .running)
            #expect(slice.message == [1, 2] && slice.pending == [1] && slice.pendingCount == 60 && slice.results == [])
        }
    }

    @Test("A round is recorded once, by its owner, and the last one finishes the batch", arguments: StoreKind.available)
    func recorded(kind: StoreKind) async throws {
        try await Self.with(kind) { store, database in
            let acme = try #require(TenantID("acme"))
            try await Self.create(try Self.batch(), Self.chunks(10), in: store)
            let first = try #require(try await store.claims(of: acme, chunks: 1, slice: 6).first)
            #expect(try await Self.store("two", over: database).record(Self.recording(), of: first) == nil)
            let after = try await store.record(
                Self.recording(left: 5, accepted: 4, rejected: 1, isRetry: true),
                of: first
            )
            #expect(after?.state == .running && after?.counts.waiting == 5)
            // As after a lost COMMIT.
            #expect(try await store.record(Self.recording(left: 5, accepted: 4), of: first) == nil)
            try await store.putBack(first)
            let second = try #require(try await store.claims(of: acme, chunks: 1, slice: 6).first)
            #expect(second == Batch.Claim(batch: "b1", chunk: 0, round: 1, slice: 5, retries: 1, dueAt: Self.start))
            let last = try #require(try await store.record(Self.recording(accepted: 5), of: second))
            #expect(last.state == .finished && last.finishedAt != nil)
            #expect((last.counts.accepted, last.counts.rejected, last.counts.waiting) == (9, 1, 0))
            let results = try await store.results(of: "b1", of: acme, from: 0, limit: 1)
            #expect(results.map(\.results) == [[8]])
            #expect(try await store.delete("b1", of: acme))
            #expect(try await store.batch("b1", of: acme) == nil)
        }
    }

    @Test(
        "A pause holds what is waiting, and what comes back; a resumption releases it",
        arguments: StoreKind.available
    )
    func paused(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            let acme = try #require(TenantID("acme"))
            try await Self.create(try Self.batch(), Self.chunks(10, 10, 10), in: store)
            let claims = try await store.claims(of: acme, chunks: 2, slice: 5)
            let paused = try await store.apply(.pause(.canary), to: "b1", of: nil)
            #expect(paused?.state == .paused && paused?.reason == .canary)
            #expect(try await store.apply(.pause(.caller), to: "b1", of: acme)?.reason == .canary)
            _ = try await store.record(Self.recording(left: 5, accepted: 5), of: claims[0])
            try await store.putBack(claims[1])
            #expect(try await store.claims(of: acme, chunks: 9, slice: 5).isEmpty)
            let resumed = try await store.apply(.resume(keyID: "other key"), to: "b1", of: acme)
            #expect(resumed?.state == .running && resumed?.reason == nil && resumed?.keyID == "other key")
            #expect(try await store.claims(of: acme, chunks: 9, slice: 5).count == 3)
        }
    }

    @Test(
        "A batch that ends counts what was waiting, and later what a slice leaves",
        arguments: StoreKind.available,
        [BatchChange.cancel(.byOperator), .expire]
    )
    func ended(kind: StoreKind, change: BatchChange) async throws {
        try await Self.with(kind) { store, _ in
            let acme = try #require(TenantID("acme"))
            try await Self.create(try Self.batch(), Self.chunks(10, 10), in: store)
            let claim = try #require(try await store.claims(of: acme, chunks: 1, slice: 5).first)
            func outcome(_ batch: Batch?) -> Int? {
                change == .expire ? batch?.counts.expired : batch?.counts.cancelled
            }
            let ended = try await store.apply(change, to: "b1", of: acme)
            #expect(ended?.state == (change == .expire ? .expired : .cancelled))
            #expect(outcome(ended) == 10 && ended?.counts.waiting == 10 && ended?.finishedAt != nil)
            #expect(
                try await store.apply(.resume(keyID: "k"), to: "b1", of: acme)?.state == ended?.state
            )
            let last = try await store.record(Self.recording(left: 6, accepted: 4), of: claim)
            #expect(outcome(last) == 16 && last?.counts.accepted == 4 && last?.counts.waiting == 0)
            #expect(last?.state == ended?.state)
            #expect(try await store.claims(of: acme, chunks: 9, slice: 5).isEmpty)
        }
    }

    @Test("A lease that has ended returns its slice once, in the same round", arguments: StoreKind.available)
    func abandoned(kind: StoreKind) async throws {
        try await Self.with(kind) { store, database in
            let acme = try #require(TenantID("acme"))
            try await Self.create(try Self.batch(), Self.chunks(10, 10), in: store)
            let dead = Self.store("dead", lease: .seconds(-10), over: database)
            let lost = try #require(try await dead.claims(of: acme, chunks: 1, slice: 5).first)
            let kept = try #require(try await store.claims(of: acme, chunks: 1, slice: 5).first)
            #expect(try await store.returnAbandoned() == 1)
            #expect(try await store.returnAbandoned() == 0)
            #expect(try await dead.record(Self.recording(accepted: 5), of: lost) == nil)
            #expect(try await store.claims(of: acme, chunks: 9, slice: 1) == [lost])
            // A renewal comes in time.
            let late = Self.store("late", lease: .seconds(-10), over: database)
            try await store.putBack(kept)
            let again = try await late.claims(of: acme, chunks: 9, slice: 1)
            #expect(again.map(\.chunk) == [kept.chunk])
            try await Self.store("late", over: database).renew(again)
            // A process that has its store to itself takes no other owner for alive.
            #expect(try await store.returnAbandoned() == (database.isShared ? 0 : 1))
        }
    }

    @Test("The tenants with due chunks are known, and the time until the next", arguments: StoreKind.available)
    func due(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            let acme = try #require(TenantID("acme"))
            #expect(try await store.due().tenants.isEmpty)
            #expect(try await store.due().wait == nil)
            try await Self.create(try Self.batch("now"), Self.chunks(5), in: store)
            try await Self.create(
                try Self.batch("later", tenant: "other", due: 2_000_000_000),
                Self.chunks(5),
                in: store
            )
            var due = try await store.due()
            #expect(due.tenants == [acme] && due.wait.map { $0 > .seconds(86_400) } == true)
            let claim = try #require(try await store.claims(of: acme, chunks: 9, slice: 5).first)
            due = try await store.due()
            #expect(due.tenants.isEmpty && due.wait != nil)
            try await store.putBack(claim)
            #expect(try await store.due().tenants == [acme])
        }
    }

    @Test("A window spreads chunks over its time, and bounds their slices", arguments: StoreKind.available)
    func window(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            var batch = try Self.batch()
            batch.options.windowSeconds = 100
            try await Self.create(batch, Self.chunks(500, 500, 250), in: store)
            let claims = try await store.claims(of: batch.tenant, chunks: 9, slice: 500)
            #expect(claims.map(\.slice).sorted() == [26, 26, 26])
            let offsets = claims.sorted { $0.chunk < $1.chunk }.map { $0.dueAt.seconds - Self.start.seconds }
            #expect(offsets == [0, 40, 80])
        }
    }

    @Test(
        "The first recipients of a canary are sent to alone; the others follow, or the batch pauses",
        arguments: StoreKind.available,
        [true, false]
    )
    func canary(kind: StoreKind, isHealthy: Bool) async throws {
        try await Self.with(kind) { store, _ in
            let acme = try #require(TenantID("acme"))
            var batch = try Self.batch()
            batch.options.canary = Batch.Canary(recipients: 15, maxRejectedPercent: 10, holdSeconds: 0)
            try await Self.create(batch, Self.chunks(10, 10, 10), in: store)
            let claims = try await store.claims(of: acme, chunks: 9, slice: 10).sorted { $0.chunk < $1.chunk }
            #expect(claims.map(\.slice) == [10, 5])
            // Two of the first ten are sent to again, and belong to the canary still.
            _ = try await store.record(Self.recording(left: 2, accepted: 8, isRetry: true), of: claims[0])
            _ = try await store.record(
                Self.recording(left: 5, accepted: isHealthy ? 5 : 3, rejected: isHealthy ? 0 : 2),
                of: claims[1]
            )
            let again = try await store.claims(of: acme, chunks: 9, slice: 10)
            #expect(again.map { "\($0.chunk) \($0.slice)" } == ["0 2"])
            let after = try await store.record(Self.recording(accepted: 2), of: again[0])
            #expect(after?.state == (isHealthy ? .running : .paused) && after?.reason == (isHealthy ? nil : .canary))
            if !isHealthy {
                #expect(try await store.claims(of: acme, chunks: 9, slice: 10).isEmpty)
                _ = try await store.apply(.resume(keyID: "key"), to: "b1", of: acme)
            }
            #expect(try await store.claims(of: acme, chunks: 9, slice: 10).map(\.slice).sorted() == [5, 10])
        }
    }

    @Test("Topics of a tenant take turns, those of different tenants do not", arguments: StoreKind.available)
    func fanOut(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            let (acme, other) = (try #require(TenantID("acme")), try #require(TenantID("other")))
            #expect(try await store.takeFanOut(of: acme, gap: .seconds(3_600)) == nil)
            let wait = try #require(try await store.takeFanOut(of: acme, gap: .seconds(3_600)))
            #expect(wait > .seconds(60) && wait <= .seconds(3_600))
            #expect(try await store.takeFanOut(of: other, gap: .zero) == nil)
            #expect(try await store.takeFanOut(of: other, gap: .zero) == nil)
        }
    }

    @Test(
        "A batch for now is claimed at once, though its replica's clock is years ahead",
        arguments: StoreKind.available
    )
    func skewed(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            var batch = try Self.batch("ahead")
            batch.createdAt = batch.createdAt.advanced(by: .seconds(1_000_000_000))
            batch.dueAt = batch.createdAt
            var later = batch
            (later.id, later.dueAt) = ("later", batch.dueAt.advanced(by: .seconds(1)))
            try await Self.create(batch, Self.chunks(1), in: store)
            try await Self.create(later, Self.chunks(1), in: store)
            #expect(try await store.claims(of: batch.tenant, chunks: 9, slice: 500).map(\.batch) == ["ahead"])
        }
    }

    @Test("What has expired or ended is found, and old batches are deleted", arguments: StoreKind.available)
    func upkeep(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            let acme = try #require(TenantID("acme"))
            var old = try Self.batch("old")
            old.options.lifetimeSeconds = 1
            old.retention = .zero
            old.setDue(old.dueAt)
            try await Self.create(old, Self.chunks(2), in: store)
            try await Self.create(try Self.batch("open", state: .open), [], in: store)
            var future = try Self.batch("future", due: 2_000_000_000)
            future.isMessage = true
            future.setDue(future.dueAt)
            try await Self.create(future, Self.chunks(1), in: store)
            #expect(try await Set(store.overdue(limit: 9).map(\.id)) == ["old", "open"])
            #expect(try await store.apply(.expire, to: "old", of: nil)?.counts.expired == 2)
            #expect(try await store.apply(.expire, to: "open", of: nil)?.reason == .abandoned)
            #expect(try await store.overdue(limit: 9).isEmpty)
            let summary = try await store.summary()
            // Messages are counted among the waiting alone.
            #expect(summary.batches == [.expired: 1, .cancelled: 1] && summary.waiting == 1)
            #expect(try await store.purge(limit: 9) == 1)
            #expect(try await store.purge(limit: 9) == 0)
            #expect(try await store.batch("open", of: acme)?.state == .cancelled)
            #expect(try await store.batch("future", of: acme)?.isMessage == true)
            var filter = BatchFilter(tenant: acme)
            #expect(try await store.batches(filter, limit: 9).map(\.id) == ["open"])
            filter.isMessage = true
            #expect(try await store.batches(filter, limit: 9).map(\.id) == ["future"])
        }
    }

    @Test("A store with a new epoch pauses its batches", arguments: StoreKind.available)
    func renewed(kind: StoreKind) async throws {
        try await Self.with(kind) { store, database in
            let acme = try #require(TenantID("acme"))
            try await Self.create(try Self.batch(), Self.chunks(2), in: store)
            try await database.write(scope: .gateway, isolation: .serializable) { try StoreEpoch.renew($0) }
            let batch = try await store.batch("b1", of: acme)
            #expect(batch?.state == .paused && [.restored, .failover].contains(batch?.reason))
            #expect(try await store.claims(of: acme, chunks: 9, slice: 5).isEmpty)
            _ = try await store.apply(.resume(keyID: "key"), to: "b1", of: acme)
            #expect(try await store.claims(of: acme, chunks: 9, slice: 5).count == 1)
        }
    }

    @Test("Batches are listed from the newest, by tenant, state and label", arguments: StoreKind.available)
    func lists(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            for index in 0..<5 {
                var batch = try Self.batch(
                    "b\(index)",
                    tenant: index == 4 ? "other" : "acme",
                    label: index < 2 ? "x" : nil
                )
                batch.createdAt = Self.start.advanced(by: .seconds(index / 2))
                try await Self.create(batch, Self.chunks(1), in: store)
            }
            _ = try await store.apply(.pause(.caller), to: "b1", of: nil)
            func ids(_ filter: BatchFilter, _ limit: Int = 9) async throws -> [String] {
                try await store.batches(filter, limit: limit).map(\.id)
            }
            var filter = BatchFilter()
            #expect(try await ids(filter) == ["b4", "b3", "b2", "b1", "b0"])
            filter.tenant = TenantID("acme")
            #expect(try await ids(filter, 2) == ["b3", "b2"])
            filter.after = BatchFilter.Place(createdAt: Self.start.advanced(by: .seconds(1)), id: "b2")
            #expect(try await ids(filter) == ["b1", "b0"])
            filter.label = "x"
            filter.state = .paused
            #expect(try await ids(filter) == ["b1"])
        }
    }

    @Test("Bounds of a tenant and of the store are kept", arguments: StoreKind.available)
    func bounds(kind: StoreKind) async throws {
        try await Self.with(kind) { store, database in
            func create(
                _ id: String,
                _ outcome: BatchWrite.Outcome,
                isMessage: Bool = false,
                _ change: (inout BatchBounds) -> Void = { _ in }
            ) async throws {
                var bounds = BatchBounds()
                change(&bounds)
                var batch = try Self.batch(id)
                batch.isMessage = isMessage
                let bounded = Self.store(over: database, within: bounds)
                try await Self.create(batch, Self.chunks(isMessage ? 1 : 10), in: bounded, expecting: outcome)
            }
            try await create("a", .done) { $0.maxWaitingPerTenant = 10 }
            try await create("b", .tenantFull) { $0.maxWaitingPerTenant = 19 }
            try await create("b", .tenantFull) { $0.maxUnfinishedPerTenant = 1 }
            try await create("b", .storeFull) { $0.maxRecipients = 19 }
            try await create("b", .storeFull) { $0.maxBytes = 200 }
            try await create("m", .done, isMessage: true) { $0.maxMessagesPerTenant = 1 }
            try await create("n", .tenantFull, isMessage: true) { $0.maxMessagesPerTenant = 1 }
            // A message that has ended counts no more, and neither does what is deleted.
            _ = try await store.apply(.cancel(.caller), to: "m", of: nil)
            try await create("n", .done, isMessage: true) { $0.maxMessagesPerTenant = 1 }
            _ = try await store.apply(.cancel(.caller), to: "a", of: nil)
            // The batch and the message that have ended make room.
            try await create("b", .done) { $0.maxRecipients = 11 }
            #expect(try await store.batch("a", of: nil) == nil)
            #expect(try await store.batch("m", of: nil) == nil)
        }
    }

    @Test("Changes of many batches share a transaction, and each has its own outcome", arguments: StoreKind.available)
    func grouped(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            let acme = try #require(TenantID("acme"))
            func new(_ id: String, tenant: String = "acme") throws -> BatchWrite {
                var batch = try Self.batch(id, tenant: tenant)
                batch.isMessage = true
                return .create(BatchWrite.New(batch, message: [1], chunks: Self.chunks(1)))
            }
            #expect(
                try await store.apply([new("a"), new("b"), new("a"), new("c", tenant: "gone")])
                    == [.done, .done, .exists, .tenantGone]
            )
            let claims = try await store.claims(of: acme, chunks: 9, slice: 9).sorted { $0.batch < $1.batch }
            #expect(claims.map(\.batch) == ["a", "b"])
            let stale = Batch.Claim(batch: "a", chunk: 0, round: 7, slice: 1, dueAt: Self.start)
            #expect(
                try await store.apply([
                    .record(Self.recording(accepted: 1), of: claims[0]), .putBack(claims[1], after: .seconds(60)),
                    .record(Self.recording(accepted: 1), of: stale), new("d"),
                ]) == [.done, .done, .lost, .done]
            )
            #expect(try await store.batch("a", of: acme)?.state == .finished)
            #expect(try await store.claims(of: acme, chunks: 9, slice: 9).map(\.batch) == ["d"])
            let until = try #require(try await store.waitingUntil("b"))
            #expect(until > Self.start)
            #expect(try await store.waitingUntil("d") == nil)
        }
    }

    @Test("A claim takes no more recipients than asked for, and at least one chunk", arguments: StoreKind.available)
    func budget(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            let acme = try #require(TenantID("acme"))
            try await Self.create(try Self.batch(), Self.chunks(300, 300, 300, 300), in: store)
            func claim(_ recipients: Int) async throws -> Int {
                try await store.claim(of: acme, chunks: 9, slice: 300, recipients: recipients).count
            }
            #expect(try await claim(700) == 2)
            #expect(try await claim(10) == 1)
            #expect(try await claim(300) == 1)
            #expect(try await claim(300) == 0)
        }
    }

    @Test("Outcomes of a slice that had begun are looked for after its batch has ended", arguments: StoreKind.available)
    func endedAfterCrash(kind: StoreKind) async throws {
        try await Self.with(kind) { store, database in
            let acme = try #require(TenantID("acme"))
            try await Self.create(try Self.batch(), Self.chunks(10, 10), in: store)
            let dead = Self.store("dead", lease: .seconds(-10), over: database)
            let begun = try #require(try await dead.claims(of: acme, chunks: 1, slice: 5).first)
            _ = try await store.apply(.pause(.caller), to: "b1", of: acme)
            #expect(try await store.returnAbandoned() == 1)
            let ended = try #require(try await store.apply(.cancel(.caller), to: "b1", of: acme))
            #expect(ended.counts.cancelled == 10 && ended.counts.waiting == 10)
            let again = try #require(try await store.claims(of: acme, chunks: 9, slice: 500).first)
            #expect(again.chunk == begun.chunk && again.slice == 5 && again.round == 0)
            let last = try await store.record(Self.recording(left: 6, accepted: 4), of: again)
            #expect(last?.counts.accepted == 4 && last?.counts.cancelled == 16 && last?.counts.waiting == 0)
        }
    }

    @Test("A retry that is due too late after the clock was set back is due now", arguments: StoreKind.available)
    func clockSetBack(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            let acme = try #require(TenantID("acme"))
            try await Self.create(try Self.batch(), Self.chunks(1, 1), in: store)
            try await Self.create(try Self.batch("future", due: 2_000_000_000), Self.chunks(1), in: store)
            let claims = try await store.claims(of: acme, chunks: 9, slice: 5)
            let waits: [Duration] = [.seconds(7_200), .seconds(4_000)]
            _ = try await store.apply(zip(claims, waits).map { .putBack($0, after: $1) })
            #expect(try await store.returnAbandoned() == 0)
            #expect(try await store.claims(of: acme, chunks: 9, slice: 5).map(\.chunk) == [claims[0].chunk])
        }
    }

    @Test(
        "A pause of a project is kept until its end, and a shorter one changes nothing",
        arguments: StoreKind.available
    )
    func pauses(kind: StoreKind) async throws {
        try await Self.with(kind) { store, _ in
            try await store.add(ProjectPause(project: "v1/a", rest: .seconds(600), permille: 500))
            try await store.add(ProjectPause(project: "v1/a", rest: .seconds(60), permille: 250))
            try await store.add(ProjectPause(project: "v1/over", rest: .seconds(-1), permille: 250))
            let pauses = try await store.due().pauses
            #expect(pauses.map(\.project) == ["v1/a"] && pauses.map(\.permille) == [500])
            #expect(pauses.allSatisfy { $0.rest > .seconds(500) && $0.rest <= .seconds(600) })
        }
    }

    @Test("Nothing is due while a replica lives that does not know batches", arguments: [StoreKind.postgresql])
    func earlierReplicas(kind: StoreKind) async throws {
        try await Self.with(kind) { store, database in
            try await Self.create(try Self.batch(), Self.chunks(1), in: store)
            #expect(try await store.due().tenants.count == 1)
            try await database.write(scope: .gateway, isolation: .readCommitted) { db in
                _ = try db.execute(
                    """
                    INSERT INTO replicas (id, started_at, seen_at, master_key)
                    VALUES ('old', gateway_time(), gateway_time(), '')
                    """
                )
            }
            #expect(try await store.due().tenants.isEmpty)
            try await database.write(scope: .gateway, isolation: .readCommitted) { db in
                _ = try db.execute("UPDATE replicas SET seen_at = 0 WHERE id = 'old'")
            }
            #expect(try await store.due().tenants.count == 1)
        }
    }
}

extension SQLBatchStore {
    fileprivate func claims(of tenant: TenantID, chunks: Int, slice: Int) async throws -> [Batch.Claim] {
        try await self.claim(of: tenant, chunks: chunks, slice: slice, recipients: 5_000).map(\.claim)
    }

    /// Returns the batch afterwards, or `nil` if the round was not recorded.
    fileprivate func record(_ recording: Batch.Recording, of claim: Batch.Claim) async throws -> Batch? {
        guard try await self.apply([.record(recording, of: claim)]) == [.done] else { return nil }
        return try await self.batch(claim.batch, of: nil)
    }

    fileprivate func putBack(_ claim: Batch.Claim) async throws {
        _ = try await self.apply([.putBack(claim, after: .zero)])
    }
}
