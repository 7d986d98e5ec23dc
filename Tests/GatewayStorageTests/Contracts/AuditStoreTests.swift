import Testing

@testable import GatewayCore
@testable import GatewayStorage

/// The contract of every audit store.
struct AuditStoreTests {
    private let fixtures = AuditFixtures()

    /// Places of a page as `writer.sequence`.
    private func places(_ page: AuditQuery.Page) -> [String] {
        page.records.map { "\($0.writer).\($0.sequence)" }
    }

    private typealias Case = (places: [String], change: (inout AuditQuery) -> Void)

    /// Expects each query to find these places on its first page.
    private func expect(_ cases: [Case], in store: any AuditPageReader) async throws {
        for (number, (places, change)) in cases.enumerated() {
            var query = AuditQuery(limit: 10)
            change(&query)
            let page = try await store.page(query)
            #expect(self.places(page) == places, "case \(number)")
        }
    }

    @Test("A new audit is empty", arguments: StoreKind.available)
    func empty(kind: StoreKind) async throws {
        try await kind.withAuditStore { store async throws in
            #expect(try await store.heads().isEmpty)
            #expect(try await store.writersWithRecords().isEmpty)
            #expect(try await store.records(of: 1, after: 0, limit: 10).isEmpty)
            #expect(try await store.page(AuditQuery(limit: 10)) == AuditQuery.Page(records: [], next: nil))
            #expect(try await store.signatures() == AuditSignatures())
            #expect(try await store.checkpoints(after: 0, limit: 9).isEmpty)
            #expect(try await store.truncations().isEmpty)
        }
    }

    @Test("Records and heads are read back as they were", arguments: StoreKind.available)
    func roundTrip(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            var chain = AuditChain(writer: 1)
            var odd = AuditRecord(
                time: Timestamp(microseconds: -1),
                tenant: nil,
                principal: "",
                action: "a\u{0}b",
                outcome: .intent,
                requestID: "zero \u{0} byte, \u{FFFD}, 💧"
            )
            // PostgreSQL's text type can't hold a zero byte.
            odd.tenant = kind == .sqlite ? "with\u{0}zero" : "with\u{FFFD}"
            odd.upstreamCode = "\u{0}"
            odd.recipients = .max
            odd.accepted = .min
            let records = [AuditFixtures.record(1), odd, AuditFixtures.record(2, tenant: nil)]
                .map { chain.append($0) }
            let head = self.fixtures.sealer.head(of: chain, state: .open)
            try await store.append(records, head: head)

            #expect(try await store.records(of: 1, after: 0, limit: 10) == records)
            #expect(try await store.records(of: 1, after: 1, limit: 1) == [records[1]])
            #expect(try await store.records(of: 1, after: 3, limit: 1).isEmpty)
            #expect(try await store.records(of: 2, after: 0, limit: 1).isEmpty)
            #expect(try await store.heads() == [head])
        }
    }

    @Test("A commit moves the head, even without records", arguments: StoreKind.available)
    func heads(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            var second = AuditChain(writer: 2)
            try await self.fixtures.write([AuditFixtures.record(1)], to: &second, in: store)
            var first = AuditChain(writer: 1)
            try await self.fixtures.write([AuditFixtures.record(2)], to: &first, in: store)
            try await self.fixtures.write([], to: &second, state: .closed, in: store)
            let expected = [
                self.fixtures.sealer.head(of: first, state: .open),
                self.fixtures.sealer.head(of: second, state: .closed),
            ]
            #expect(try await store.heads() == expected)
            #expect(try await store.writersWithRecords() == [1, 2])
        }
    }

    @Test("A repeated commit changes nothing, but may add further records", arguments: StoreKind.available)
    func repeatedCommit(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            var chain = AuditChain(writer: 1)
            let first = (0..<30).map { chain.append(AuditFixtures.record($0)) }
            let firstHead = self.fixtures.sealer.head(of: chain, state: .open)
            try await store.append(first, head: firstHead)
            try await store.append(first, head: firstHead)
            #expect(try await store.records(of: 1, after: 0, limit: 100) == first)

            let more = (30..<40).map { chain.append(AuditFixtures.record($0)) }
            let head = self.fixtures.sealer.head(of: chain, state: .open)
            try await store.append(first + more, head: head)
            try await store.append(first, head: firstHead)
            #expect(try await store.records(of: 1, after: 0, limit: 100) == first + more)
            #expect(try await store.heads() == [head])
        }
    }

    @Test("A commit with another record at a taken position is refused as a whole", arguments: StoreKind.available)
    func takenPlace(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            var chain = AuditChain(writer: 1)
            try await self.fixtures.write([AuditFixtures.record(1)], to: &chain, in: store)
            let heads = try await store.heads()

            var rival = AuditChain(writer: 1)
            let records = [AuditFixtures.record(7), AuditFixtures.record(8)].map { rival.append($0) }
            await expectError(.conflict) {
                try await store.append(records, head: self.fixtures.sealer.head(of: rival, state: .open))
            }
            #expect(try await store.heads() == heads)
            #expect(try await store.records(of: 1, after: 0, limit: 9).map(\.record.principal) == ["key:k1"])
        }
    }

    @Test("Pages go from the newest record to the oldest", arguments: StoreKind.available, [1, 2, 5, 7, 100])
    func paging(kind: StoreKind, limit: Int) async throws {
        try await kind.withAuditStore { store in
            try await self.fixtures.fill(store, writers: 3, recordsEach: 5)
            var query = AuditQuery(limit: limit)
            var places: [String] = []
            repeat {
                let page = try await store.page(query)
                #expect(page.records.count <= limit)
                places += self.places(page)
                query.before = page.next
            } while query.before != nil
            let expected = [3, 2, 1].flatMap { writer in [5, 4, 3, 2, 1].map { "\(writer).\($0)" } }
            #expect(places == expected)
        }
    }

    @Test("A full last page has no next cursor", arguments: StoreKind.available)
    func lastPage(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            try await self.fixtures.fill(store, writers: 1, recordsEach: 4)
            let page = try await store.page(AuditQuery(limit: 4))
            #expect(page.next == nil)
            let page2 = try await store.page(AuditQuery(limit: 3))
            #expect(page2.next == page2.records.last.map { AuditQuery.Cursor($0) })
            #expect(page2.next?.position == AuditChain.Position(writer: 1, sequence: 2))
        }
    }

    @Test("A tenant sees its own records only", arguments: StoreKind.available)
    func tenants(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            let tenants: [String?] = ["acme", "other", nil, "acme", "acm", "acme"]
            for writer in 1...2 {
                var chain = AuditChain(writer: writer)
                try await self.fixtures.write(
                    tenants[..<2].map { AuditFixtures.record(1, tenant: $0) },
                    to: &chain,
                    in: store
                )
                try await self.fixtures.write(
                    tenants[2...].map { AuditFixtures.record(2, tenant: $0) },
                    to: &chain,
                    in: store
                )
            }
            var query = AuditQuery(limit: 4)
            query.tenant = "acme"
            let first = try await store.page(query)
            #expect(self.places(first) == ["2.6", "2.4", "1.6", "1.4"])
            query.before = first.next
            let second = try await store.page(query)
            #expect(self.places(second) == ["2.1", "1.1"])
            #expect(second.next == nil)
            try await self.expect(
                [(["2.5", "1.5"], { $0.tenant = "acm" }), ([], { $0.tenant = "nobody" })],
                in: store
            )
        }
    }

    @Test("A time range includes its start and excludes its end", arguments: StoreKind.available)
    func times(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            try await self.fixtures.fill(store, writers: 2, recordsEach: 5)
            let times = (0...6).map { AuditFixtures.record($0).time }
            let cases: [Case] = [
                (["2.5", "2.4", "2.3", "2.2", "2.1", "1.5", "1.4"], { $0.from = times[3] }),
                (["2.1", "1.5", "1.4"], { ($0.from, $0.to) = (times[3], times[6]) }),
                (["2.1", "1.5", "1.4"], { ($0.tenant, $0.from, $0.to) = ("acme", times[3], times[6]) }),
                (["1.1"], { ($0.tenant, $0.to) = ("acme", times[1]) }),
                ([], { ($0.tenant, $0.to) = ("acme", times[0]) }),
            ]
            try await self.expect(cases, in: store)
        }
    }

    @Test("Records are found by time although the clock was set back", arguments: StoreKind.available)
    func clockSetBack(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            var chain = AuditChain(writer: 1)
            try await self.fixtures.write([90, 91, 3, 4].map { AuditFixtures.record($0) }, to: &chain, in: store)
            try await self.fixtures.write([5, 92].map { AuditFixtures.record($0) }, to: &chain, in: store)
            let time = AuditFixtures.record(50).time
            let cases: [Case] = [
                (["1.5", "1.4", "1.3"], { $0.to = time }), (["1.6", "1.2", "1.1"], { $0.from = time }),
                // Newest first, by time.
                (["1.6", "1.2", "1.1", "1.5", "1.4", "1.3"], { _ in }),
            ]
            try await self.expect(cases, in: store)
        }
    }

    @Test("Filters by action, outcome and message match exactly", arguments: StoreKind.available)
    func filters(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            var chain = AuditChain(writer: 1)
            var records = (0..<6).map { AuditFixtures.record($0) }
            // This record has the searched values in other fields.
            records[1].object = "message.validate accepted"
            records[1].requestID = records[4].messageID ?? ""
            try await self.fixtures.write(records, to: &chain, in: store)

            let sought = records[4]
            let cases: [Case] = [
                (["1.4", "1.1"], { $0.action = "message.validate" }), ([], { $0.action = "message" }),
                (["1.5", "1.3", "1.1"], { $0.outcome = .accepted }),
                (["1.1"], { ($0.outcome, $0.action) = (.accepted, "message.validate") }),
                (["1.5"], { $0.messageID = sought.messageID }),
                ([], { $0.messageID = UUIDv7.generate(at: sought.time) }),
                ([], { $0.messageID = "no identifier of the gateway" }),
            ]
            try await self.expect(cases, in: store)
        }
    }

    @Test("A message recorded 25 seconds after its id was made is found by that id", arguments: StoreKind.available)
    func lateMessage(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            var (late, foreign) = (AuditFixtures.record(1), AuditFixtures.record(2))
            let lateID = UUIDv7.generate(at: late.time.advanced(by: .seconds(-25)))
            (late.messageID, foreign.messageID) = (lateID, "not-a-uuid")
            var chain = AuditChain(writer: 1)
            try await self.fixtures.write([late, foreign], to: &chain, in: store)
            let cases: [Case] = [(["1.1"], { $0.messageID = lateID }), (["1.2"], { $0.messageID = "not-a-uuid" })]
            try await self.expect(cases, in: store)
        }
    }

    @Test("A recipient is found only by its whole, aligned pseudonym", arguments: StoreKind.available)
    func targets(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            let bytes = AuditFixtures.targets([77])
            var records = (0..<5).map { AuditFixtures.record($0) }
            records[1].targets = AuditFixtures.targets([5, 77, 6])
            // The same bytes across two pseudonyms are not a match.
            records[2].targets = Array(repeating: 0, count: 8) + bytes + Array(repeating: 0, count: 8)
            records[3].targets = AuditFixtures.targets([77])
            records[4].targets = Array(repeating: 0, count: 8) + bytes + Array(repeating: 0, count: 8) + bytes
            var chain = AuditChain(writer: 1)
            try await self.fixtures.write(records, to: &chain, in: store)
            let sought = AuditFixtures.pseudonym(77)
            try await self.expect([(["1.5", "1.4", "1.2"], { $0.target = sought })], in: store)
        }
    }

    // MARK: Replicas

    @Test("Only one replica can begin the chain of a number", arguments: StoreKind.available)
    func writers(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let store = SQLAuditStore(database: database)
            let (one, two) = (ReplicaID(text: "one"), ReplicaID(text: "two"))
            let records = (0...3).map { AuditFixtures.record($0) }
            func begin(_ writer: Int, by replica: ReplicaID, record number: Int) async throws {
                var chain = AuditChain(writer: writer)
                let record = chain.append(records[number])
                try await store.begin(record, head: self.fixtures.sealer.head(of: chain, state: .open), by: replica)
            }
            // A replica without a heartbeat would count as dead.
            await expectError(.storeUnavailable) { try await begin(1, by: one, record: 1) }
            #expect(try await store.heads().isEmpty)
            for id in [one, two] {
                _ = try await SQLReplicaStore(database: database, masterKey: "key").heartbeat(of: id)
            }
            try await begin(1, by: one, record: 1)
            // The same once more, as after a lost answer.
            try await begin(1, by: one, record: 1)
            await expectError(.conflict) { try await begin(1, by: two, record: 2) }
            try await begin(2, by: two, record: 2)
            try await begin(3, by: one, record: 3)
            // Two replicas that start at the same moment begin with the same record.
            await expectError(.conflict) { try await begin(3, by: two, record: 3) }
            #expect(try await store.heads().map(\.writer) == [1, 2, 3])
        }
    }

    @Test(
        "An open chain is abandoned if its replica is silent or gone, or if it has none",
        arguments: StoreKind.available
    )
    func abandoned(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let store = SQLAuditStore(database: database)
            let replicas = SQLReplicaStore(database: database, masterKey: "key")
            let (one, two) = (ReplicaID(text: "one"), ReplicaID(text: "two"))
            for id in [one, two] { _ = try await replicas.heartbeat(of: id) }
            for (writer, replica) in [(1, one), (2, two), (3, one)] {
                var chain = AuditChain(writer: writer)
                let record = chain.append(AuditFixtures.record(writer))
                try await store.begin(record, head: self.fixtures.sealer.head(of: chain, state: .open), by: replica)
            }
            #expect(try await store.abandonedChains(silentFor: .seconds(3_600)).isEmpty)
            #expect(try await store.abandonedChains(silentFor: .seconds(-10)) == [1, 2, 3])
            // Replicas with open chains are not removed.
            try await replicas.removeSilent(for: .seconds(-10))
            #expect(try await replicas.heartbeat(of: two).map(\.id) == [one, two])
            // Only a direct change removes a replica with open chains.
            try await database.write(scope: .gateway, isolation: .readCommitted) { db in
                _ = try db.execute("DELETE FROM replicas WHERE id = 'one'")
            }
            #expect(try await store.abandonedChains(silentFor: .seconds(3_600)) == [1, 3])
            // A chain without a replica, as in a copied store of a single gateway.
            var lone = AuditChain(writer: 4)
            try await self.fixtures.write([AuditFixtures.record(4)], to: &lone, in: store)
            #expect(try await store.abandonedChains(silentFor: .seconds(3_600)) == [1, 3, 4])
            for writer in [1, 4] {
                var chain = try #require(try await store.heads().first { $0.writer == writer }).chain
                try await self.fixtures.write([AuditFixtures.record(9)], to: &chain, state: .recovered, in: store)
            }
            #expect(try await store.abandonedChains(silentFor: .seconds(3_600)) == [3])
        }
    }

    @Test("A replica can't append to a chain that another replica has closed", arguments: StoreKind.available)
    func closing(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let store = SQLAuditStore(database: database)
            var chain = AuditChain(writer: 1)
            try await self.fixtures.write([AuditFixtures.record(1)], to: &chain, in: store)
            let (dead, returning) = (chain, chain)
            var closed = dead
            try await self.fixtures.write([AuditFixtures.record(2)], to: &closed, state: .recovered, in: store)
            await expectError(.conflict) {
                var chain = returning
                let late = [3, 4].map { chain.append(AuditFixtures.record($0)) }
                try await store.append(late, head: self.fixtures.sealer.head(of: chain, state: .open))
            }
            #expect(try await store.heads().map(\.state) == [.recovered])
            #expect(try await store.records(of: 1, after: 0, limit: 9).map(\.sequence) == [1, 2])
        }
    }

    // MARK: Signatures

    private static func checkpoint(_ number: Int) -> SignedCheckpoint {
        SignedCheckpoint(
            number: number,
            text: Array("checkpoint \(number)".utf8),
            signature: (0..<64).map { UInt8(truncatingIfNeeded: $0 &+ number) }
        )
    }

    private static func end(at number: Int, removed: Int = 0) -> CheckpointEnd {
        func link(_ number: Int) -> AuditCheckpoint.Link {
            AuditCheckpoint.Link(number: number, digest: [UInt8(truncatingIfNeeded: number)])
        }
        return CheckpointEnd(latest: link(number), removed: link(removed), signature: [7, 7])
    }

    @Test("Checkpoints are read back in order, and the end names the latest", arguments: StoreKind.available)
    func checkpoints(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            let numbers = [1, 2, 3, 5]
            for number in numbers {
                try await store.append(Self.checkpoint(number), end: Self.end(at: number))
            }
            let signatures = try await store.signatures()
            #expect(signatures.oldest == Self.checkpoint(1) && signatures.latest == Self.checkpoint(5))
            #expect(signatures.end == Self.end(at: 5))
            #expect(try await store.checkpoints(after: .min, limit: 9) == numbers.map(Self.checkpoint))
            #expect(try await store.checkpoints(after: 2, limit: 2) == [3, 5].map(Self.checkpoint))
            #expect(try await store.checkpoints(after: 5, limit: 2).isEmpty)
            // A former leader adds nothing, and its failed call leaves the end unchanged.
            for number in [5, 4, 1] {
                await expectError(.conflict) {
                    try await store.append(Self.checkpoint(number), end: Self.end(at: number))
                }
            }
            #expect(try await store.signatures() == signatures)
        }
    }

    @Test("Checkpoints after the previous marker and up to the new one are removed", arguments: StoreKind.available)
    func removedCheckpoints(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            func append(_ number: Int, removed: Int) async throws -> [Int] {
                try await store.append(Self.checkpoint(number), end: Self.end(at: number, removed: removed))
                return try await store.checkpoints(after: .min, limit: 99).map(\.number)
            }
            // The gateway never assigns these numbers, so they are kept as evidence.
            for number in [-5, 0] {
                try await store.append(Self.checkpoint(number), end: Self.end(at: number))
            }
            for number in 1...6 { _ = try await append(number, removed: 0) }
            #expect(try await append(7, removed: 4) == [-5, 0, 5, 6, 7])
            #expect(try await append(8, removed: 4) == [-5, 0, 5, 6, 7, 8])
            #expect(try await append(9, removed: 8) == [-5, 0, 9])
        }
    }

    @Test("The store keeps the latest checkpoint of each second sink", arguments: StoreKind.available)
    func sinks(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            #expect(try await store.sinks().isEmpty)
            for (name, number) in [("a", 1), ("b", 7), ("a", 3)] {
                try await store.note(delivered: number, to: name)
            }
            #expect(try await store.sinks() == ["a": 3, "b": 7])
        }
    }

    @Test("Removing a chain's first records leaves a truncation marker", arguments: StoreKind.available)
    func removal(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            try await self.fixtures.fill(store, writers: 2, recordsEach: 6)
            let records = try await store.records(of: 1, after: 0, limit: 10)
            func truncation(_ sequence: Int, hash: [UInt8]) -> AuditTruncation {
                AuditTruncation(
                    writer: 1,
                    sequence: sequence,
                    hash: hash,
                    time: AuditFixtures.record(1).time,
                    signature: [1, UInt8(sequence)]
                )
            }
            await expectError(.conflict) { try await store.remove(upTo: truncation(4, hash: records[4].hash)) }
            #expect(try await store.truncations().isEmpty)
            for sequence in [2, 4] {
                try await store.remove(upTo: truncation(sequence, hash: records[sequence - 1].hash))
                #expect(try await store.truncations() == [truncation(sequence, hash: records[sequence - 1].hash)])
            }
            await expectError(.conflict) { try await store.remove(upTo: truncation(3, hash: records[2].hash)) }
            let rest = try await store.rows(of: 1, from: Int.min, limit: 10)
            #expect(rest.rows.map(\.sequence) == [5, 6])
            #expect(rest.truncation?.sequence == 4)
            #expect(rest.head?.sequence == 6)
            let page = try await store.page(AuditQuery(limit: 10))
            #expect(self.places(page) == ["2.6", "2.5", "2.4", "2.3", "2.2", "2.1", "1.6", "1.5"])
            #expect(try await store.signatures().truncations.count == 1)
        }
    }

    @Test("Times are read of a chain's first and last record, and of each step", arguments: StoreKind.available)
    func moments(kind: StoreKind) async throws {
        try await kind.withAuditStore { store in
            try await self.fixtures.fill(store, writers: 2, recordsEach: 10)
            func places(_ range: ClosedRange<Int>, _ step: Int) async throws -> [Int] {
                let moments = try await store.times(of: 2, in: range, every: step)
                #expect(moments.allSatisfy { $0.time == AuditFixtures.record(9 + $0.sequence).time })
                return moments.map(\.sequence)
            }
            #expect(try await places(Int.min...Int.max, 4) == [1, 4, 8, 10])
            #expect(try await places(Int.min...Int.max, 100) == [1, 10])
            #expect(try await places(3...7, 2) == [3, 4, 6, 7])
            #expect(try await places(11...20, 2).isEmpty)
        }
    }

    @Test("A page reads at most four times the bytes it returns, plus 64 KiB", arguments: StoreKind.available)
    func readBytes(kind: StoreKind) async throws {
        try await kind.withDatabase { database in
            let store = SQLAuditStore(database: database)
            var chain = AuditChain(writer: 1)
            let records = (1...400)
                .map { number in
                    var record = AuditFixtures.record(number)
                    if number.isMultiple(of: 3) {
                        record.results = (0..<1_000).map { .init(fcmMessageID: "0:1500415314455276%31bd1c9631bd\($0)") }
                    }
                    return record
                }
            try await self.fixtures.write(records, to: &chain, in: store)
            for (limit, outcome) in [(1, nil), (10, nil), (100, nil), (500, nil), (1, .accepted), (100, .accepted)]
                as [(Int, AuditRecord.Outcome?)]
            {
                var query = AuditQuery(limit: limit)
                query.outcome = outcome
                var numbers: [Int] = []
                repeat {
                    let asked = query
                    let (page, read) = try await database.read(scope: .gateway) { db in
                        let counting = CountingConnection(db)
                        return (try AuditPager.page(asked, counting) { false }, counting.bytes)
                    }
                    let returned = page.records.reduce(0) { $0 + $1.entry.body.count }
                    #expect(read <= 4 * returned + 65_536, "limit \(limit): \(read) bytes for \(returned)")
                    #expect(returned <= 5 << 20)
                    numbers += page.records.map(\.sequence)
                    query.before = page.next
                } while query.before != nil && numbers.count < 400
                let all = (1...400).reversed().filter { outcome == nil || $0.isMultiple(of: 2) }
                #expect(numbers == all)
            }
        }
    }
}
