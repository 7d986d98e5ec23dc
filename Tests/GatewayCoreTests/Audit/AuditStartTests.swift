import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("What starts of the gateway make of a row of checkpoints that was tampered with")
struct AuditStartTests {
    /// One way to tamper with the checkpoints, so that a chain less does not show by them.
    struct Trick: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var apply: @Sendable (inout AuditSignatures) -> Void

        /// A checkpoint that nobody signed, which says that none before the one after it is kept.
        private static func forged(_ number: Int, _ signatures: AuditSignatures) -> SignedCheckpoint {
            let zeros = [UInt8](repeating: 0, count: 32)
            var content = AuditCheckpoint(
                number: number,
                time: .sample,
                previous: zeros,
                anchor: zeros,
                oldest: number + 1,
                denseFrom: number + 1,
                delivered: 0,
                settledWriter: 0,
                settledDigest: zeros,
                removedWriter: 0,
                heads: [],
                truncations: []
            )
            if let digest = signatures.checkpoints.last?.digest { content.previous = digest }
            return SignedCheckpoint(number: number, text: content.text, signature: Array(repeating: 0, count: 64))
        }

        static let all = [
            Trick(testDescription: "a forged one before one that is kept for good") {
                $0.checkpoints.append(Self.forged(359, $0))
            },
            Trick(testDescription: "a forged one far ahead") {
                $0.checkpoints.append(Self.forged(360 * 1_000_000 - 1, $0))
            },
            Trick(testDescription: "a forged one in the place of all others") {
                ($0.checkpoints, $0.end) = ([Self.forged(719, $0)], nil)
            },
            Trick(testDescription: "all are gone, and the end too") {
                $0 = AuditSignatures(truncations: $0.truncations)
            },
            Trick(testDescription: "all are gone, and the end stays") { $0.checkpoints = [] },
            Trick(testDescription: "the end is gone") { $0.end = nil },
            Trick(testDescription: "the latest are gone, and the end too") {
                $0.checkpoints.removeLast(5)
                $0.end = nil
            },
            Trick(testDescription: "the latest has another number, and so has the end") {
                let last = $0.checkpoints.count - 1
                $0.checkpoints[last].number = 719
                $0.end?.number = 719
            },
            Trick(testDescription: "the latest has the number after which there is none") {
                $0.checkpoints[$0.checkpoints.count - 1].number = .max
            },
            Trick(testDescription: "one in the middle is gone") { $0.checkpoints.remove(at: 10) },
        ]
    }

    @Test(
        "Nothing that was done before a start is covered up by it, nor by the checkpoints after it",
        arguments: Trick.all,
        [false, true]
    )
    func covered(trick: Trick, isCut: Bool) async throws {
        let starts = try AuditStarts()
        for _ in 1...3 { try await starts.run(checkpoints: 10) }
        if isCut {
            // Nothing tells any more after which checkpoints the chains began.
            for writer in 1...3 { try starts.removeFirstRecord(of: writer) }
        }
        #expect(try await starts.isIntact())
        starts.store.tamper { trick.apply(&$0.signatures) }
        starts.dropLastWriter()
        if isCut {
            starts.store.tamper { _ = $0.signatures.truncations.removeLast() }
        }
        #expect(try await starts.isIntact() == false, "before the start")
        try await starts.run(checkpoints: 2)
        #expect(try await starts.isIntact() == false, "after a start")
        try await starts.run(checkpoints: 2 * AuditCheckpoint.anchorInterval)
        #expect(try await starts.isIntact() == false, "long after a start")
    }

    @Test("A row that nobody touched is gone on with, and thinned out")
    func untouched() async throws {
        let starts = try AuditStarts()
        for count in [10, 3 * AuditCheckpoint.anchorInterval, 5] { try await starts.run(checkpoints: count) }
        #expect(try await starts.isIntact())
        let last = try #require(try await starts.store.signatures().checkpoints.last?.content)
        #expect(last.oldest == 720 && last.denseFrom == 720)
        #expect(try await starts.store.signatures().checkpoints.first?.number == 720)
    }

    @Test("An older row that was put back is told by the chains that began after its end")
    func olderRow() async throws {
        let starts = try AuditStarts()
        try await starts.run(checkpoints: 3)
        let older = try await starts.store.signatures()
        for _ in 1...2 { try await starts.run(checkpoints: 3) }
        starts.store.tamper { $0.signatures = older }
        #expect(try await starts.isIntact() == false)
        try await starts.run(checkpoints: 40)
        #expect(try await starts.isIntact() == false)
        let numbers = try await starts.store.signatures().checkpoints.map(\.number)
        // The last chain began after checkpoint 9, and 10 is left out.
        #expect(numbers.first { $0 > (older.end?.number ?? 0) } == 11, "\(numbers)")
    }

    @Test("A chain that says it began after an earlier checkpoint than the one before is noticed")
    func fallingNote() async throws {
        let starts = try AuditStarts()
        for _ in 1...2 { try await starts.run(checkpoints: 5) }
        let heads = starts.store.current.heads.count
        var chain = AuditChain(writer: heads + 1)
        var opened = AuditRecord.sample()
        opened.object = AuditCheckpoint.openingNote(after: 1)
        let record = chain.append(opened)
        try await starts.store.append([record], head: starts.sealer.head(of: chain, state: .closed))
        #expect(try await starts.isIntact() == false)
    }

    @Test("Truncations without any checkpoint are noticed", arguments: [true, false])
    func cutsAlone(hasKey: Bool) async throws {
        let starts = try AuditStarts()
        try await starts.run(checkpoints: 3)
        try starts.removeFirstRecord(of: 1)
        #expect(try await starts.isIntact())
        starts.store.tamper { $0.signatures = AuditSignatures(truncations: $0.signatures.truncations) }
        let key = hasKey ? starts.signer.publicKey : nil
        let signatures = try await starts.store.signatures()
        let verdict = AuditVerification(signatures, sealer: nil, publicKey: key, evidence: AuditEvidence()).finding
        guard case .checkpointTampered(number: 1, _) = verdict else {
            Issue.record("\(String(describing: verdict))")
            return
        }
        #expect(try await starts.isIntact() == false)
    }
}
