import GatewayAudit
import GatewayTestKit
import Testing

@Suite("AuditVerifier beside a gateway that starts, ends, or removes records")
struct AuditVerifierRaceTests {
    private let signer: AuditSigner

    init() throws {
        self.signer = try AuditSigner(signingKey: .sample("signing"))
    }

    // MARK: Removing

    /// Removes the first writer's records up to a sequence, as retention does, with a marker signed by `signer`.
    private func truncation(at sequence: Int, _ fixture: AuditFixture, by signer: AuditSigner) {
        guard let last = fixture.store.current.records.first(where: { ($0.writer, $0.sequence) == (1, sequence) }),
            let truncation = try? signer.truncation(
                of: AuditChain(writer: 1, sequence: sequence, hash: last.hash),
                at: .sample
            )
        else {
            Issue.record("record \(sequence) is gone already")
            return
        }
        fixture.store.tamper { contents in
            contents.records.removeAll { $0.writer == 1 && $0.sequence <= sequence }
            contents.signatures.truncations = [truncation]
        }
    }

    /// Verifies while records are removed up to the next of `places` before each of the verifier's reads.
    private func verify(
        cutting places: [Int],
        by signer: AuditSigner? = nil,
        _ fixture: AuditFixture
    ) async throws -> AuditVerifier.Verdict {
        try await fixture.store.sign(self.signer)
        self.truncation(at: 10, fixture, by: self.signer)
        let store = InterposedAuditStore(
            fixture.store,
            beforeRows: { number in
                guard number <= places.count, places[number - 1] > 0 else { return }
                self.truncation(at: places[number - 1], fixture, by: signer ?? self.signer)
            }
        )
        let verifier = AuditVerifier(store: store, sealer: fixture.sealer, publicKey: self.signer.publicKey)
        return try await verifier.verify(isLive: true)
    }

    @Test(
        "Records that retention removes during verification are not reported as missing",
        arguments: [
            [100, 200, 300, 400], [0, 3_000, 5_000], [4_096, 4_097, 8_193], [0, 4_096, 8_192], [9_998, 9_999],
            [0, 0, 9_999],
        ]
    )
    func movingCut(places: [Int]) async throws {
        for state in [AuditHead.State.open, .closed] {
            let verdict = try await self.verify(cutting: places, try await AuditFixture((10_000, state)))
            #expect(verdict.isIntact, "\(verdict)")
        }
    }

    @Test("A whole chain removed during verification is not reported, but one with a changed last hash is")
    func wholeChain() async throws {
        let fixture = try await AuditFixture((50, .closed), (5, .open))
        #expect(try await self.verify(cutting: [50], fixture) == .intact(records: 5))
        let other = try await AuditFixture((50, .closed), (5, .open))
        other.store.tamper { contents in
            contents.change(1, 50) { $0.hash[0] ^= 1 }
        }
        #expect(try await self.verify(cutting: [50], other).badPlace == AuditChain.Position(writer: 1, sequence: 50))
    }

    @Test(
        "A truncation marker that appears during verification must be genuine",
        arguments: [[100], [0, 5_000], [100, 200, 300]]
    )
    func forgedTruncation(places: [Int]) async throws {
        let fixture = try await AuditFixture((10_000, .open))
        let forger = try AuditSigner(signingKey: .sample("forger"))
        let verdict = try await self.verify(cutting: places, by: forger, fixture)
        let place = AuditChain.Position(writer: 1, sequence: places.first { $0 > 0 } ?? 0)
        #expect(verdict == .tampered(place, reason: "the word that older records were removed is not genuine"))
    }

    @Test("A changed record after a moving truncation is found at its position")
    func changeBehind() async throws {
        let fixture = try await AuditFixture((10_000, .open))
        fixture.store.tamper { $0.change(1, 7_000) { $0.record.bytes += 1 } }
        let verdict = try await self.verify(cutting: [100, 5_000], fixture)
        #expect(verdict.badPlace == AuditChain.Position(writer: 1, sequence: 7_000))
    }

    @Test("A truncation at the highest sequence number does not crash the verifier")
    func overflow() async throws {
        let fixture = try await AuditFixture((10, .open))
        let hash = [UInt8](repeating: 1, count: 32)
        let truncation = AuditTruncation(writer: 1, sequence: .max, hash: hash, time: .sample, signature: [])
        let store = InterposedAuditStore(
            fixture.store,
            beforeRows: { _ in fixture.store.tamper { $0.signatures.truncations = [truncation] } }
        )
        let verdict = try await AuditVerifier(store: store, sealer: fixture.sealer).verify(isLive: true)
        #expect(verdict.badPlace?.writer == 1)
    }

    // MARK: Starting and ending

    /// Closes the chain that an earlier process left open, as a start does.
    private func recover(_ fixture: AuditFixture) async throws {
        let head = try #require(fixture.store.current.heads.last { $0.state == .open })
        var chain = head.chain
        try await fixture.append(1, to: &chain, state: .recovered)
    }

    /// Verifies, with an event after the first read of the heads; a process is live from then on if `isLiveAfter`.
    private func verify(
        _ fixture: AuditFixture,
        isLiveAfter: Bool,
        _ event: @escaping @Sendable () async throws -> Void
    ) async throws -> AuditVerifier.Verdict {
        let isLive = Observed(!isLiveAfter)
        let store = InterposedAuditStore(fixture.store) {
            try? await event()
            isLive.change { $0 = isLiveAfter }
        }
        return try await AuditVerifier(store: store, sealer: fixture.sealer)
            .verify(isLive: isLive.current)
    }

    @Test("A gateway that starts during verification, after an unclean end, leaves the audit intact", arguments: 0...2)
    func startMeanwhile(steps: Int) async throws {
        let fixture = try await AuditFixture((5, .closed), (6, .open))
        let verdict = try await self.verify(fixture, isLiveAfter: true) {
            // It first opens the store, then closes the old chain, then begins its own.
            if steps >= 1 { try await self.recover(fixture) }
            if steps >= 2 {
                var chain = AuditChain(writer: 3)
                try await fixture.append(3, to: &chain, state: .open)
            }
        }
        #expect(verdict == .intact(records: 11))
    }

    @Test("A gateway that starts as verification begins is live; one killed after that has ended uncleanly")
    func lifeItself() async throws {
        let started = try await AuditFixture((5, .closed), (6, .recovered), (2, .open))
        #expect(try await self.verify(started, isLiveAfter: true) {} == .intact(records: 13))
        let killed = try await AuditFixture((5, .closed), (6, .open))
        #expect(try await self.verify(killed, isLiveAfter: false) {} == .unclean(writer: 2, records: 11))
    }

    @Test("A gateway that shuts down during verification is not reported as unclean", arguments: [false, true])
    func endMeanwhile(isFollowed: Bool) async throws {
        let fixture = try await AuditFixture((5, .closed), (6, .open))
        let verdict = try await self.verify(fixture, isLiveAfter: isFollowed) {
            var chain = try #require(fixture.store.current.heads.last).chain
            try await fixture.append(1, to: &chain, state: .closed)
            var next = AuditChain(writer: 3)
            if isFollowed { try await fixture.append(1, to: &next, state: .open) }
        }
        #expect(verdict == .intact(records: 11))
    }

    @Test("A closing record with a forged seal that appears during verification is tampering")
    func forgedMeanwhile() async throws {
        let fixture = try await AuditFixture((5, .closed), (6, .open))
        let forger = AuditSealer(auditKey: .sample("forger"))
        let verdict = try await self.verify(fixture, isLiveAfter: true) {
            var chain = try #require(fixture.store.current.heads.last).chain
            let record = chain.append(.sample())
            try await fixture.store.append([record], head: forger.head(of: chain, state: .recovered))
        }
        #expect(verdict.badPlace == AuditChain.Position(writer: 2, sequence: 7))
    }
}
