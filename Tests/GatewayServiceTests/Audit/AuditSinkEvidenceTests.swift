import GatewayCore
import GatewayStorage
import GatewayTestKit
import Testing

@testable import GatewayService

struct AuditSinkEvidenceTests {
    @Test("However long the sink is, no more is remembered of it than a store keeps")
    func bounded() async throws {
        try await TemporaryDirectory.with { directory in
            let fixture = try await AuditTrailFixture(directory)
            var checkpoint = try #require(try await fixture.store.signatures().checkpoints.last?.content)
            var evidence = AuditEvidence()
            let digest = [UInt8](repeating: 7, count: 32)
            let step = AuditCheckpoint.anchorInterval
            let idle = fixture.sealer.head(of: AuditChain(writer: 1, sequence: 9, hash: digest), state: .open)
            for number in 1...(20 * step + 5) {
                checkpoint.number = number
                if number.isMultiple(of: step) {
                    checkpoint.denseFrom = max(1, number - 2 * step)
                    checkpoint.oldest = max(1, number - 10 * step)
                }
                let chain = AuditChain(writer: 2, sequence: number, hash: digest)
                let busy = fixture.sealer.head(of: chain, state: .open)
                checkpoint.heads = [idle.unsealed, busy.unsealed]
                evidence.add(checkpoint, digest: digest)
            }
            #expect(evidence.latest == 20 * step + 5)
            // Two intervals and what follows them, the eight anchors before, for both kinds; and the idle chain's end.
            #expect(evidence.count == 2 * (2 * step + 1 + 5 + 8) + 1)
            #expect(evidence.digests[10 * step] == digest && evidence.digests[9 * step] == nil)
            #expect(evidence.digests[18 * step - 1] == nil && evidence.digests[18 * step] != nil)
            #expect(evidence.known[1]?.map(\.sequence) == [9])
            #expect(evidence.known[2]?.last?.sequence == 20 * step + 5)
            try fixture.database.close()
        }
    }
}
