import GatewayTestKit
import Testing

@testable import GatewayAudit

@Suite("Gateway starts after tampering with checkpoints")
struct AuditStartTests {
    /// A way to tamper with the checkpoints so that they don't reveal a removed chain.
    struct Trick: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var apply: @Sendable (inout InMemoryAuditStore.Contents) -> Void

        /// A checkpoint without a genuine signature.
        private static func forged(_ number: Int, _ contents: InMemoryAuditStore.Contents) -> SignedCheckpoint {
            let zeros = [UInt8](repeating: 0, count: 32)
            let content = AuditCheckpoint(
                number: number,
                time: .sample,
                previous: contents.checkpoints.last?.digest ?? zeros,
                settledWriter: 0,
                settledDigest: zeros,
                removedWriter: 0,
                heads: [],
                truncations: []
            )
            return SignedCheckpoint(number: number, text: content.text, signature: Array(repeating: 0, count: 64))
        }

        static let all = [
            Trick(testDescription: "a forged one behind the latest") {
                $0.checkpoints.append(Self.forged(35, $0))
            },
            Trick(testDescription: "a forged one far ahead") {
                $0.checkpoints.append(Self.forged(1 << 40, $0))
            },
            Trick(testDescription: "a forged one in the place of all others") {
                ($0.checkpoints, $0.signatures.end) = ([Self.forged(719, $0)], nil)
            },
            Trick(testDescription: "all are gone, and the end too") {
                ($0.checkpoints, $0.signatures.end) = ([], nil)
            },
            Trick(testDescription: "all are gone, and the end stays") { $0.checkpoints = [] },
            Trick(testDescription: "the end is gone") { $0.signatures.end = nil },
            Trick(testDescription: "the end says that the oldest are removed") {
                $0.signatures.end?.removed = AuditCheckpoint.Link($0.checkpoints[9])
                $0.checkpoints.removeFirst(10)
            },
            Trick(testDescription: "the latest are gone, and the end too") {
                $0.checkpoints.removeLast(5)
                $0.signatures.end = nil
            },
            Trick(testDescription: "the latest has another number, and so has the end") {
                $0.checkpoints[$0.checkpoints.count - 1].number = 719
                $0.signatures.end?.latest.number = 719
            },
            Trick(testDescription: "the latest has the number after which there is none") {
                $0.checkpoints[$0.checkpoints.count - 1].number = .max
            },
            Trick(testDescription: "the oldest are gone") { $0.checkpoints.removeFirst(2) },
            Trick(testDescription: "one in the middle is gone") { $0.checkpoints.remove(at: 10) },
        ]
    }

    @Test(
        "Tampering before a start is still found after it and after later checkpoints",
        arguments: Trick.all,
        [false, true]
    )
    func covered(trick: Trick, isCut: Bool) async throws {
        let starts = try AuditStarts()
        for _ in 1...3 { try await starts.run(checkpoints: 10) }
        if isCut {
            // Removes the records that name the checkpoints after which the chains began.
            for writer in 1...3 { try starts.removeFirstRecord(of: writer) }
        }
        #expect(try await starts.isIntact())
        starts.store.tamper(trick.apply)
        starts.dropLastWriter()
        if isCut {
            starts.store.tamper { _ = $0.signatures.truncations.removeLast() }
        }
        #expect(try await starts.isIntact() == false, "before the start")
        try await starts.run(checkpoints: 2)
        #expect(try await starts.isIntact() == false, "after a start")
        try await starts.run(checkpoints: 50, removesOld: true)
        #expect(try await starts.isIntact() == false, "after old ones were to be removed")
    }

    @Test("Untouched checkpoints continue across starts, with old ones removed or not", arguments: [false, true])
    func untouched(removesOld: Bool) async throws {
        let starts = try AuditStarts()
        for count in [10, 30, 5] { try await starts.run(checkpoints: count, removesOld: removesOld) }
        #expect(try await starts.isIntact())
        let signatures = try await starts.store.signatures()
        let oldest = try #require(signatures.oldest?.number)
        // The checkpoint before the latest is one minute old, and stays until the next one.
        #expect(oldest == (removesOld ? 48 : 1) && signatures.latest?.number == 49)
        #expect(signatures.end?.removed.number == oldest - 1)
    }

    @Test("Restored older checkpoints are found by the chains that began after them")
    func olderRow() async throws {
        let starts = try AuditStarts()
        try await starts.run(checkpoints: 3)
        let older = starts.store.current
        for _ in 1...2 { try await starts.run(checkpoints: 3) }
        starts.store.tamper { ($0.checkpoints, $0.signatures) = (older.checkpoints, older.signatures) }
        #expect(try await starts.isIntact() == false)
        try await starts.run(checkpoints: 40)
        #expect(try await starts.isIntact() == false)
        let numbers = try await starts.store.allCheckpoints().map(\.number)
        // The last chain began after checkpoint 9, so number 10 is skipped.
        #expect(numbers.first { $0 > (older.signatures.end?.latest.number ?? 0) } == 11, "\(numbers)")
    }

    @Test("A chain that names an earlier checkpoint than the chain before it is found")
    func fallingNote() async throws {
        let starts = try AuditStarts()
        for _ in 1...2 { try await starts.run(checkpoints: 5) }
        let heads = starts.store.current.heads.count
        var chain = AuditChain(writer: heads + 1)
        var opened = AuditRecord.sample()
        opened.afterCheckpoint = 1
        let record = chain.append(opened)
        try await starts.store.append([record], head: starts.sealer.head(of: chain, state: .closed))
        #expect(try await starts.isIntact() == false)
    }

    @Test("Truncation markers without any checkpoint are found", arguments: [true, false])
    func cutsAlone(hasKey: Bool) async throws {
        let starts = try AuditStarts()
        try await starts.run(checkpoints: 3)
        try starts.removeFirstRecord(of: 1)
        #expect(try await starts.isIntact())
        starts.store.tamper { ($0.checkpoints, $0.signatures.end) = ([], nil) }
        let key = hasKey ? starts.signer.publicKey : nil
        let signatures = try await starts.store.signatures()
        let verdict = AuditVerification(signatures, [], sealer: nil, publicKey: key).finding
        guard case .checkpointTampered(number: 1, _) = verdict else {
            Issue.record("\(String(describing: verdict))")
            return
        }
        #expect(try await starts.isIntact() == false)
    }
}
