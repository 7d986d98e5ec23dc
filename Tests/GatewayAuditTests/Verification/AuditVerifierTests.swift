import GatewayAudit
import GatewayTestKit
import Synchronization
import Testing

@Suite("AuditVerifier")
struct AuditVerifierTests {
    private static func fixture() async throws -> AuditFixture {
        try await AuditFixture((5, .closed), (6, .recovered), (4, .closed))
    }

    @Test("An untouched audit is intact, live or not")
    func untouched() async throws {
        let fixture = try await Self.fixture()
        #expect(try await fixture.verify() == .intact(records: 15))
        #expect(try await fixture.verify(isLive: true) == .intact(records: 15))
        #expect(try await AuditFixture().verify() == .intact(records: 0))
    }

    @Test("A forged chain with correct hashes is found by its seal", arguments: [2, 4])
    func forgedChain(writer: Int) async throws {
        let fixture = try await Self.fixture()
        var chain = AuditChain(writer: writer)
        let records = (0..<6).map { _ in chain.append(.sample()) }
        let head = AuditSealer(auditKey: .sample("forger")).head(of: chain, state: .closed)
        fixture.store.tamper { contents in
            contents.records.removeAll { $0.writer == writer }
            contents.heads.removeAll { $0.writer == writer }
            contents.records += records
            contents.heads.append(head)
            contents.heads.sort { $0.writer < $1.writer }
        }
        let place = AuditChain.Position(writer: writer, sequence: 6)
        for isLive in [false, true] { #expect(try await fixture.verify(isLive: isLive).badPlace == place) }
    }

    @Test("Progress runs from zero to the total and never decreases", arguments: [true, false])
    func progress(isLive: Bool) async throws {
        let fixture = try await AuditFixture((4_200, .closed), (5, .recovered), (20, .open))
        let told = Mutex<[Int]>([])
        _ = try await fixture.verify(isLive: isLive) { done, total in
            #expect(total == 4_225)
            told.withLock { $0.append(done) }
        }
        let counts = told.withLock { $0 }
        #expect(counts.first == 0 && counts.last == 4_225)
        #expect(counts == counts.sorted() && counts.count >= 5)
    }

    @Test("A chain that a command adds beside the live one does not make the live one look abandoned")
    func commandBesideLive() async throws {
        let fixture = try await AuditFixture((5, .closed), (6, .open))
        let closed = AuditClosedChain(.sample("credential.rewrap"), writer: 3, sealer: fixture.sealer)
        try await fixture.store.append(closed.records, head: closed.head)
        #expect(try await fixture.verify(isLive: true) == .intact(records: 14))
        #expect(try await fixture.verify() == .unclean(writer: 2, records: 14))
        fixture.store.tamper { $0.change(3, 2) { $0.record.object = "nothing" } }
        #expect(try await fixture.verify(isLive: true).badPlace == AuditChain.Position(writer: 3, sequence: 2))
    }

    @Test("Chains of one page of the store, or longer, are verified to their end", arguments: [4_096, 4_100])
    func longChains(count: Int) async throws {
        let fixture = try await AuditFixture((count, .closed))
        #expect(try await fixture.verify() == .intact(records: count))
        let untouched = fixture.store.current
        for sequence in [4_095, 4_096, 4_097, count] where sequence <= count {
            let place = AuditChain.Position(writer: 1, sequence: sequence)
            fixture.store.tamper { $0.change(1, sequence) { $0.record.bytes += 1 } }
            #expect(try await fixture.verify().badPlace == place)
            fixture.store.tamper { $0.delete(1, sequence) }
            #expect(try await fixture.verify().badPlace == place)
            fixture.store.tamper { $0 = untouched }
        }
    }

    @Test("Without the audit key, chains are verified but seals are not")
    func withoutKey() async throws {
        let fixture = try await Self.fixture()
        let verifier = AuditVerifier(store: fixture.store, sealer: nil)
        fixture.store.tamper { $0.heads[1].state = .closed }
        #expect(try await verifier.verify(isLive: false) == .intact(records: 15))
        fixture.store.tamper { $0.change(2, 3) { $0.record.bytes += 1 } }
        #expect(try await verifier.verify(isLive: false).badPlace == AuditChain.Position(writer: 2, sequence: 3))
    }

    @Test("Only the last open chain may be a live writer's, and tampering outweighs an unclean end")
    func openChains() async throws {
        let fixture = try await AuditFixture((5, .closed), (6, .open))
        #expect(try await fixture.verify(isLive: true) == .intact(records: 11))
        #expect(try await fixture.verify(isLive: false) == .unclean(writer: 2, records: 11))
        let abandoned = try await AuditFixture((5, .open), (6, .open), (2, .open))
        #expect(try await abandoned.verify(isLive: true) == .unclean(writer: 1, records: 13))
        // A closed chain after it may be a command's.
        let commanded = try await AuditFixture((5, .open), (6, .open), (3, .closed))
        #expect(try await commanded.verify(isLive: true) == .unclean(writer: 1, records: 14))
        commanded.store.tamper { $0.change(3, 3) { $0.record.bytes += 1 } }
        #expect(try await commanded.verify().badPlace == AuditChain.Position(writer: 3, sequence: 3))
    }

    @Test("With several replicas, only the chains of live writers may be open")
    func openChainsOfReplicas() async throws {
        let fixture = try await AuditFixture((5, .open), (6, .closed), (2, .open), (1, .open))
        let verifier = AuditVerifier(store: fixture.store, sealer: fixture.sealer)
        let cases: [(live: Set<Int>, verdict: AuditVerifier.Verdict)] = [
            ([1, 3, 4, 9], .intact(records: 14)), ([1, 4], .unclean(writer: 3, records: 14)),
            ([], .unclean(writer: 1, records: 14)),
        ]
        for (live, verdict) in cases {
            let found = try await verifier.verify(
                isLive: false,
                liveWriters: { () async throws(GatewayError) -> Set<Int> in live }
            )
            #expect(found == verdict)
        }
    }

    @Test("Records that a live writer adds are accepted, a change in them is found", arguments: [1, 3, 4_090, 9_000])
    func growth(count: Int) async throws {
        for changed in [nil, 6 + count] as [Int?] {
            let fixture = try await AuditFixture((5, .closed), (6, .open))
            let chain = try #require(fixture.store.current.heads.last).chain
            let store = InterposedAuditStore(fixture.store) {
                var chain = chain
                try? await fixture.append(count, to: &chain, state: .open)
                if let changed { fixture.store.tamper { $0.change(2, changed) { $0.record.bytes += 1 } } }
            }
            let verdict = try await AuditVerifier(store: store, sealer: fixture.sealer).verify(isLive: true)
            #expect(fixture.store.current.records.count == 11 + count)
            #expect(verdict.isIntact == (changed == nil), "\(verdict)")
            #expect(verdict.badPlace == changed.map { AuditChain.Position(writer: 2, sequence: $0) })
        }
    }

    @Test("A record that another program adds to a live writer's chain is tampering", arguments: [true, false])
    func forgedGrowth(isHashRight: Bool) async throws {
        let fixture = try await AuditFixture((5, .closed), (6, .open))
        fixture.store.tamper { contents in
            guard var chain = contents.heads.last?.chain else { return }
            var forged = chain.append(.sample())
            if !isHashRight { forged.hash[0] ^= 1 }
            contents.records.append(forged)
        }
        #expect(try await fixture.verify(isLive: true).badPlace == AuditChain.Position(writer: 2, sequence: 7))
    }
}
