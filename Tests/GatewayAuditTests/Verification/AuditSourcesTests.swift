import GatewayAudit
import GatewayTestKit
import NIOCore
import Testing

@Suite("Tampering with a second sink is found at the first bad record")
struct AuditSourcesTests {
    /// Ways to tamper with a record: `swap` exchanges it with the next line, `insert` repeats it.
    enum Operation: CaseIterable {
        case flip, delete, swap, insert, truncate
    }

    /// The records to tamper with.
    private static let targets = [(1, 1), (1, 6), (2, 1), (2, 7), (2, 12), (2, 16)]
        .map { AuditChain.Position(writer: $0.0, sequence: $0.1) }

    @Test("Flipped, deleted, swapped, repeated and truncated records are found", arguments: Operation.allCases)
    func matrix(operation: Operation) async throws {
        for target in Self.targets { try await self.expectFound(operation, target, try await SignedAudit()) }
    }

    private func expectFound(_ operation: Operation, _ target: AuditChain.Position, _ audit: SignedAudit) async throws {
        var verifier = AuditSinkVerifier(publicKey: audit.publicKey)
        verifier.begin("audit.jsonl")
        do throws(AuditSinkVerifier.Failure) {
            for line in self.apply(operation, to: target, audit.delivered) { try verifier.take(line) }
        } catch {
            // For closed chains, a checkpoint reveals only that some head differs.
            #expect(error.place == target || error.place == nil && [6, 16].contains(target.sequence), "\(error)")
            return
        }
        let (sealer, key) = (SignedAudit.sealer, audit.publicKey)
        var evidence = verifier.evidence
        if operation == .insert, target == Self.targets.first {
            // A sink that restarts before its first checkpoint delivers its first record again.
            let store = AuditVerifier(store: audit.store, sealer: sealer, publicKey: key, evidence: evidence)
            #expect(verifier.finding == nil && evidence.latest == 5)
            #expect(try await store.verify(isLive: false).isIntact)
            return
        }
        // A sink alone may lag; the store knows how much was delivered.
        #expect(operation == .truncate)
        evidence.required = 5
        let store = AuditVerifier(store: audit.store, sealer: sealer, publicKey: key, evidence: evidence)
        guard case .checkpointTampered = try await store.verify(isLive: false) else {
            Issue.record("\(target) is not missed")
            return
        }
    }

    @Test("A malformed line inserted into a sink is found at its line number", arguments: ["{", "garbage"])
    func foreignLine(text: String) async throws {
        let audit = try await SignedAudit(removing: 3)
        let lines = audit.delivered
        let first = try #require(lines.firstIndex { if case .checkpoint = $0 { true } else { false } })
        for place in (first + 1)...lines.count {
            var texts = lines.map(\.text)
            texts.insert(ByteBuffer(string: text), at: place)
            var verifier = AuditSinkVerifier(publicKey: audit.publicKey)
            verifier.begin("audit.jsonl")
            do throws(AuditSinkVerifier.Failure) {
                for text in texts { try verifier.take(text) }
                #expect(verifier.finding?.line == place + 1)
            } catch {
                #expect(error.line == place + 1)
            }
        }
    }

    /// Returns the lines' text after tampering with a record's line.
    private func apply(_ operation: Operation, to target: AuditChain.Position, _ lines: [AuditLine]) -> [ByteBuffer] {
        var texts = lines.map(\.text)
        let place = lines.firstIndex { line in
            guard case .record(let record) = line else { return false }
            return (record.writer, record.sequence) == (target.writer, target.sequence)
        }
        guard let place else {
            Issue.record("\(target) is not there")
            return texts
        }
        switch operation {
        case .flip:
            let text = String(buffer: texts[place])
            texts[place] = ByteBuffer(string: text.replacing(#""bytes":42,"#, with: #""bytes":43,"#))
            #expect(texts[place] != lines[place].text)
        case .delete: texts.remove(at: place)
        case .swap: texts.swapAt(place, place + 1)
        case .insert: texts.insert(texts[place], at: place)
        case .truncate: texts.removeSubrange(place...)
        }
        return texts
    }
}

extension AuditVerifier.Verdict {
    /// True if nothing was found.
    var isIntact: Bool {
        if case .intact = self { true } else { false }
    }
}
