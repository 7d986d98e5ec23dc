import GatewayCore
import GatewayTestKit
import NIOCore
import Testing

@Suite("Tampering is found at the first bad record, wherever else than in a store the audit is read from")
struct AuditSourcesTests {
    /// What is verified.
    enum Source: CaseIterable {
        case export, tenantExport, sink
    }

    /// What somebody does to one record: exchange it with what follows, put it there a second time, or take it and all that
    /// follows.
    enum Operation: CaseIterable {
        case flip, delete, swap, insert, truncate
    }

    /// The records that something is done to.
    private static func targets(in source: Source) -> [AuditPosition] {
        let places = source == .tenantExport ? [(2, 9), (2, 12)] : [(1, 1), (1, 6), (2, 1), (2, 7), (2, 12), (2, 16)]
        return places.map { AuditPosition(writer: $0.0, sequence: $0.1) }
    }

    @Test("Flip, delete, swap, insert, truncate", arguments: Source.allCases, Operation.allCases)
    func matrix(source: Source, operation: Operation) async throws {
        for target in Self.targets(in: source) {
            let audit = try await SignedAudit()
            if source == .sink {
                try await self.expectFound(operation, target, audit)
                continue
            }
            let head = AuditExportHead(tenant: source == .export ? nil : "rare", isLive: false)
            let lines = self.apply(operation, to: target, try await audit.export(head))
            let (verdict, _) = try #require(SignedAudit.verdict(onExport: lines, publicKey: audit.publicKey))
            #expect(verdict.badPlace == target, "\(verdict)")
        }
    }

    private func expectFound(_ operation: Operation, _ target: AuditPosition, _ audit: SignedAudit) async throws {
        var verifier = AuditSinkVerifier(publicKey: audit.publicKey)
        verifier.begin("audit.jsonl")
        do throws(AuditSinkVerifier.Failure) {
            for line in self.apply(operation, to: target, audit.delivered) { try verifier.take(line) }
        } catch {
            // Of chains that have ended, a checkpoint tells only that some end is another.
            #expect(error.place == target || error.place == nil && [6, 16].contains(target.sequence), "\(error)")
            return
        }
        let (sealer, key) = (SignedAudit.sealer, audit.publicKey)
        var evidence = verifier.evidence
        if operation == .insert, target == Self.targets(in: .sink).first {
            // A sink that begins anew before its first checkpoint delivers its first record again.
            let store = AuditVerifier(store: audit.store, sealer: sealer, publicKey: key, evidence: evidence)
            #expect(verifier.finding == nil && evidence.latest == 5)
            #expect(try await store.verify(isLive: false).isIntact)
            return
        }
        // By itself a sink may lag; the store knows how far it had come.
        #expect(operation == .truncate)
        evidence.required = 5
        let store = AuditVerifier(store: audit.store, sealer: sealer, publicKey: key, evidence: evidence)
        guard case .checkpointTampered = try await store.verify(isLive: false) else {
            Issue.record("\(target) is not missed")
            return
        }
    }

    @Test("A line that is put into a sink is found, whatever it says", arguments: ["{", "garbage"])
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

    /// The text of lines after something was done to the one of a record.
    private func apply(_ operation: Operation, to target: AuditPosition, _ lines: [AuditLine]) -> [ByteBuffer] {
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

    @Test("Every line of every kind counts: changed at some byte, dropped, doubled or swapped with the next")
    func lines() async throws {
        let audit = try await SignedAudit(removing: 3)
        for head in [AuditExportHead(isLive: false), AuditExportHead(tenant: "rare", isLive: false)] {
            let texts = try await audit.export(head).map(\.text)
            let untouched = try #require(SignedAudit.verdict(onExport: texts, publicKey: audit.publicKey))
            #expect(untouched.0 == .intact(records: untouched.1.records))
            func expectFound(_ changed: [ByteBuffer], _ what: String) {
                let found = SignedAudit.verdict(onExport: changed, publicKey: audit.publicKey)
                #expect(found?.0.isIntact != true, "\(what)")
            }
            for index in texts.indices {
                var changed = texts
                changed.remove(at: index)
                expectFound(changed, "without line \(index)")
                expectFound(Array(texts[..<index]), "cut before line \(index)")
                changed = texts
                changed.insert(texts[index], at: index)
                expectFound(changed, "line \(index) twice")
                if index + 1 < texts.count {
                    changed = texts
                    changed.swapAt(index, index + 1)
                    expectFound(changed, "line \(index) and the next")
                }
                // The seals on the ends are checked with the master key alone.
                for place in stride(from: 0, to: texts[index].readableBytes, by: 41) {
                    changed = texts
                    var bytes = Array(texts[index].readableBytesView)
                    bytes[place] ^= 1
                    changed[index] = ByteBuffer(bytes: bytes)
                    let isSeal = String(decoding: bytes[..<place], as: UTF8.self).contains(#""seal":"#)
                    if !isSeal { expectFound(changed, "line \(index), byte \(place)") }
                }
            }
        }
    }
}

extension AuditVerifier.Verdict {
    /// Whether nothing was found.
    var isIntact: Bool {
        if case .intact = self { true } else { false }
    }
}
