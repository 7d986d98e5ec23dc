import GatewayTestKit
import Logging
import Testing

@testable import GatewayCore

struct AuditVerificationTests {
    private static let dense = 2 * AuditCheckpoint.anchorInterval

    private let store = InMemoryAuditStore()
    private let sealer = AuditSealer(auditKey: .sample("audit"))

    /// What a store has of so many checkpoints of one chain that grows by a record each time.
    private func signatures(of count: Int, signer: AuditSigner, keptCount: Int = 0) async throws -> AuditSignatures {
        let checkpointer = AuditCheckpointer(
            store: self.store,
            signer: signer,
            sealer: self.sealer,
            clock: ManualClock(),
            denseCount: Self.dense,
            keptCount: keptCount,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        _ = try await checkpointer.prepare()
        var chain = AuditChain(writer: 1)
        for _ in 1..<count {
            _ = chain.append(.sample())
            self.store.use([self.sealer.head(of: chain, state: .open)])
            #expect(await checkpointer.checkpoint(delivered: 0))
        }
        return try await self.store.signatures()
    }

    private func verdict(_ signatures: AuditSignatures, _ signer: AuditSigner) -> AuditVerifier.Verdict? {
        AuditVerification(signatures, sealer: nil, publicKey: signer.publicKey, evidence: AuditEvidence()).finding
    }

    @Test("Old checkpoints are thinned out, what is left holds, and any other thinning is noticed")
    func thinning() async throws {
        let signer = try AuditSigner(signingKey: .sample("signing"))
        let count = Self.dense + 3 * AuditCheckpoint.anchorInterval + 5
        let signatures = try await self.signatures(of: count, signer: signer)
        let last = try #require(signatures.checkpoints.last?.content)
        #expect(last.number == count)
        #expect(last.oldest == 1_080 && last.denseFrom == 1_080)
        #expect(signatures.checkpoints.map(\.number) == (1...count).filter { last.keeps($0) })
        #expect(self.verdict(signatures, signer) == nil)
        for index in [0, 1, signatures.checkpoints.count / 2, signatures.checkpoints.count - 1] {
            var thinner = signatures
            let number = thinner.checkpoints.remove(at: index).number
            guard case .checkpointTampered(number, _)? = self.verdict(thinner, signer) else {
                Issue.record("\(number) is not missed")
                continue
            }
        }
    }

    @Test("A checkpoint that is kept for good is linked to the one before it")
    func anchors() async throws {
        let signer = try AuditSigner(signingKey: .sample("signing"))
        let count = Self.dense + 3 * AuditCheckpoint.anchorInterval
        let signatures = try await self.signatures(of: count, signer: signer, keptCount: 100 * Self.dense)
        #expect(signatures.checkpoints.prefix(3).map(\.number) == [360, 720, 1_080])
        #expect(self.verdict(signatures, signer) == nil)
        // The same number, signed by the same key, but of another history.
        var other = try #require(signatures.checkpoints[0].content)
        other.time = other.time.advanced(by: .seconds(1))
        var changed = signatures
        changed.checkpoints[0] = try signer.sign(other)
        #expect(self.verdict(changed, signer) != nil)
    }

    @Test("Every single checkpoint, its links and the end of the row are needed")
    func row() async throws {
        let signer = try AuditSigner(signingKey: .sample("signing"))
        let other = try AuditSigner(signingKey: .sample("other"))
        let signatures = try await self.signatures(of: 5, signer: signer)
        #expect(self.verdict(signatures, signer) == nil)
        #expect(self.verdict(signatures, other) != nil)
        for index in 0..<5 {
            var changed = signatures
            changed.checkpoints[index].signature[3] ^= 1
            #expect(self.verdict(changed, signer) != nil)
            changed = signatures
            changed.checkpoints[index].text[40] ^= 1
            #expect(self.verdict(changed, signer) != nil)
            changed = signatures
            let content = try #require(signatures.checkpoints[index].content)
            changed.checkpoints[index] = try other.sign(content)
            #expect(self.verdict(changed, signer) != nil)
        }
        var changed = signatures
        changed.end = nil
        #expect(self.verdict(changed, signer) != nil)
        changed = signatures
        changed.checkpoints.removeLast()
        #expect(self.verdict(changed, signer) == .checkpointTampered(number: 5, reason: "it is missing"))
        changed.end = try other.end(at: signatures.checkpoints[3])
        #expect(self.verdict(changed, signer) != nil)
        changed = signatures
        changed.checkpoints = []
        #expect(self.verdict(changed, signer) == .checkpointTampered(number: 5, reason: "it is missing"))
    }
}
