import GatewayTestKit
import Testing

@testable import GatewayAudit

struct AuditVerificationTests {
    private let store = InMemoryAuditStore()
    private let sealer = AuditSealer(auditKey: .sample("audit"))
    private let clock = ManualClock()

    /// Signs `count` checkpoints, a minute and a record apart; the last one removes those older than `age`.
    private func row(
        of count: Int,
        signer: AuditSigner,
        keeping age: Duration? = nil
    ) async throws -> InMemoryAuditStore.Contents {
        let checkpointer = AuditCheckpointer.sample(self.store, signer, clock: self.clock)
        _ = try await checkpointer.prepare()
        var chain = AuditChain(writer: 1)
        for number in 2...count {
            self.clock.advance(by: .seconds(60))
            if number == count, let age { checkpointer.remove(before: self.clock.now().advanced(by: .zero - age)) }
            _ = chain.append(.sample())
            let head = self.sealer.head(of: chain, state: .open)
            self.store.tamper { $0.heads = [head] }
            #expect(await checkpointer.checkpoint())
        }
        return self.store.current
    }

    private func verdict(_ row: InMemoryAuditStore.Contents, _ signer: AuditSigner) async throws -> AuditVerifier
        .Verdict?
    {
        let store = InMemoryAuditStore()
        store.tamper { $0 = row }
        var verification = AuditVerification(
            try await store.signatures(),
            row.heads,
            sealer: nil,
            publicKey: signer.publicKey
        )
        for checkpoint in row.checkpoints { verification.take(checkpoint) }
        verification.finishCheckpoints(at: row.checkpoints.last?.number ?? 0)
        return verification.finding
    }

    @Test("Old checkpoints are removed up to a signed marker, and any other missing checkpoint is found")
    func removal() async throws {
        let signer = try AuditSigner(signingKey: .sample("signing"))
        let row = try await self.row(of: 30, signer: signer, keeping: .seconds(600))
        #expect(row.checkpoints.map(\.number) == Array(20...30))
        #expect(row.signatures.end?.removed.number == 19)
        #expect(try await self.verdict(row, signer) == nil)
        for index in row.checkpoints.indices {
            var fewer = row
            let number = fewer.checkpoints.remove(at: index).number
            let verdict = try await self.verdict(fewer, signer)
            #expect(verdict == .checkpointTampered(number: number, reason: "it is missing"))
        }
    }

    @Test("The first remaining checkpoint is linked to the marker")
    func marker() async throws {
        let signer = try AuditSigner(signingKey: .sample("signing"))
        let row = try await self.row(of: 30, signer: signer, keeping: .seconds(600))
        let end = try #require(row.signatures.end)
        var other = end.removed
        other.digest[0] ^= 1
        var changed = row
        changed.signatures.end = try signer.end(at: end.latest, removed: other)
        let reason = "it is not the one that checkpoint 20 follows"
        #expect(try await self.verdict(changed, signer) == .checkpointTampered(number: 19, reason: reason))
        // A marker for one checkpoint too many, and no marker, each signed with the same key.
        changed.signatures.end = try signer.end(at: end.latest, removed: AuditCheckpoint.Link(row.checkpoints[0]))
        guard case .checkpointTampered(20, _)? = try await self.verdict(changed, signer) else {
            Issue.record("a checkpoint before the marker is overlooked")
            return
        }
        changed.signatures.end = try signer.end(at: end.latest)
        #expect(try await self.verdict(changed, signer) == .checkpointTampered(number: 1, reason: "it is missing"))
    }

    @Test("No old checkpoint is removed if one of them was tampered with", arguments: [3, 10, 18])
    func evidence(index: Int) async throws {
        let signer = try AuditSigner(signingKey: .sample("signing"))
        _ = try await self.row(of: 20, signer: signer)
        self.store.tamper { $0.checkpoints[index].signature[0] ^= 1 }
        let row = try await self.row(of: 5, signer: signer, keeping: .seconds(60))
        #expect(row.checkpoints.first?.number == 1)
        #expect(try await self.verdict(row, signer) != nil)
    }

    @Test("A changed, forged or missing checkpoint or end is found")
    func row() async throws {
        let signer = try AuditSigner(signingKey: .sample("signing"))
        let other = try AuditSigner(signingKey: .sample("other"))
        let row = try await self.row(of: 5, signer: signer)
        #expect(try await self.verdict(row, signer) == nil)
        #expect(try await self.verdict(row, other) != nil)
        for index in 0..<5 {
            var changed = row
            changed.checkpoints[index].signature[3] ^= 1
            #expect(try await self.verdict(changed, signer) != nil)
            changed = row
            changed.checkpoints[index].text[40] ^= 1
            #expect(try await self.verdict(changed, signer) != nil)
            changed = row
            var content = try #require(row.checkpoints[index].content)
            changed.checkpoints[index] = try other.sign(content)
            #expect(try await self.verdict(changed, signer) != nil)
            // The same number, signed with the same key, but of another history.
            content.time = content.time.advanced(by: .seconds(1))
            changed.checkpoints[index] = try signer.sign(content)
            #expect(try await self.verdict(changed, signer) != nil)
        }
        var changed = row
        changed.signatures.end = nil
        #expect(try await self.verdict(changed, signer) != nil)
        changed = row
        changed.checkpoints.removeLast()
        #expect(try await self.verdict(changed, signer) == .checkpointTampered(number: 5, reason: "it is missing"))
        changed.signatures.end = try other.end(at: AuditCheckpoint.Link(row.checkpoints[3]))
        #expect(try await self.verdict(changed, signer) != nil)
        changed = row
        changed.checkpoints = []
        #expect(try await self.verdict(changed, signer) == .checkpointTampered(number: 5, reason: "it is missing"))
    }
}
