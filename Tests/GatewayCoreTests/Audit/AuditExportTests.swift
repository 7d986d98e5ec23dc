import GatewayTestKit
import NIOCore
import Testing

@testable import GatewayCore

@Suite("An export of the audit")
struct AuditExportTests {
    private func verdict(
        _ lines: [AuditLine],
        sealer: AuditSealer? = SignedAudit.sealer,
        publicKey: AuditPublicKey?
    ) throws -> AuditVerifier.Verdict {
        try #require(SignedAudit.verdict(onExport: lines.map(\.text), sealer: sealer, publicKey: publicKey)).0
    }

    private func records(_ lines: [AuditLine]) -> [ChainedAuditRecord] {
        lines.compactMap { if case .record(let record) = $0 { record } else { nil } }
    }

    private func summary(_ lines: [AuditLine]) throws -> AuditExportSummary {
        guard case .end(let summary)? = lines.last else { throw SampleError(what: "no end") }
        return summary
    }

    private func stretches(_ lines: [AuditLine]) -> [AuditStretch] {
        lines.compactMap { if case .stretch(let stretch) = $0 { stretch } else { nil } }
    }

    @Test("A tenant's holds the stretches between two checkpoints that have records of it, and shows nothing of others")
    func tenant() async throws {
        let audit = try await SignedAudit()
        let lines = try await audit.export(AuditExportHead(tenant: "rare", isLive: false))
        #expect(self.records(lines).map(\.sequence) == [9, 12])
        #expect(self.stretches(lines).map { [$0.start.writer, $0.start.sequence, $0.through] } == [[2, 8, 12]])
        #expect(try self.summary(lines) == AuditExportSummary(records: 2, hidden: 2, checkpoints: 3))
        for line in lines { #expect(!String(buffer: line.text).contains("acme")) }
        let ways: [(AuditSealer?, AuditPublicKey?)] = [
            (SignedAudit.sealer, audit.publicKey), (nil, audit.publicKey), (nil, nil),
        ]
        for (sealer, key) in ways {
            #expect(try self.verdict(lines, sealer: sealer, publicKey: key) == .intact(records: 2))
        }
        let nobody = try await audit.export(AuditExportHead(tenant: "nobody", isLive: false))
        #expect(try self.summary(nobody) == AuditExportSummary(checkpoints: 1))
        #expect(try self.verdict(nobody, publicKey: audit.publicKey) == .intact(records: 0))
        // Neighbouring stretches are one.
        let others = try await audit.export(AuditExportHead(tenant: "acme", isLive: false))
        #expect(self.stretches(others).map(\.through) == [6, 16])
        #expect(try self.summary(others) == AuditExportSummary(records: 20, hidden: 2, checkpoints: 1))
    }

    @Test("Everybody's hides nothing, and begins where the signed word says that records were removed")
    func everybody() async throws {
        let audit = try await SignedAudit(removing: 4)
        let lines = try await audit.export(AuditExportHead(isLive: false))
        #expect(try self.summary(lines) == AuditExportSummary(records: 18, removed: 4, checkpoints: 1))
        #expect(self.stretches(lines).map(\.start.sequence) == [4, 0])
        for key in [audit.publicKey, nil] {
            #expect(try self.verdict(lines, publicKey: key) == .intact(records: 18))
        }
        let other = try AuditSigner(signingKey: .sample("other")).publicKey
        let reason = "its signature is not genuine"
        #expect(try self.verdict(lines, publicKey: other) == .checkpointTampered(number: 5, reason: reason))
    }

    @Test("A window of time has the stretches around it, and hides what is outside")
    func window() async throws {
        let audit = try await SignedAudit()
        let time = RecordChange.original.time
        let head = AuditExportHead(
            from: time.advanced(by: SignedAudit.round * 2),
            to: time.advanced(by: SignedAudit.round * 3),
            isLive: false
        )
        let lines = try await audit.export(head)
        #expect(self.records(lines).map(\.sequence) == [5, 6, 7, 8])
        #expect(self.stretches(lines).map(\.start.sequence) == [4])
        #expect(try self.verdict(lines, publicKey: audit.publicKey) == .intact(records: 4))
        // A part passes for no whole.
        var whole = lines
        whole[0] = .export(AuditExportHead(isLive: false))
        #expect(try self.verdict(whole, publicKey: audit.publicKey).isIntact == false)
    }

    @Test("Records are found by pages, and long runs of others are cut into lines")
    func long() async throws {
        let fixture = try await AuditFixture()
        var chain = AuditChain(writer: 1)
        var records: [ChainedAuditRecord] = []
        for number in 1...2_500 {
            var record = RecordChange.original
            record.tenant = number.isMultiple(of: 500) ? "rare" : "acme"
            records.append(chain.append(record))
        }
        try await fixture.store.append(records, head: fixture.sealer.head(of: chain, state: .closed))
        for (tenant, count) in [("rare", 5), ("acme", 2_495)] {
            var lines: [AuditLine] = []
            let summary = try await AuditExporter(store: fixture.store)
                .export(AuditExportHead(tenant: tenant, isLive: false)) { lines.append($0) }
            #expect(summary == AuditExportSummary(records: count, hidden: 2_500 - count))
            #expect(try self.verdict(lines, publicKey: nil) == .intact(records: count))
            guard tenant == "rare" else { continue }
            #expect(lines.count < 70)
            // One that was changed is found to within its line.
            let index = try #require(lines.firstIndex { if case .hidden = $0 { true } else { false } }) + 1
            guard case .hidden(var hidden) = lines[index] else { throw SampleError(what: "no second line of digests") }
            hidden.digests[7][3] ^= 1
            lines[index] = .hidden(hidden)
            let place = AuditPosition(writer: 1, sequence: hidden.sequence)
            #expect(try self.verdict(lines, publicKey: nil).badPlace == place)
        }
    }

    @Test("A chain that somebody wrote anew is found by the checkpoint, without the key of the seals", arguments: 1...2)
    func rewritten(writer: Int) async throws {
        let audit = try await SignedAudit()
        var lines = try await audit.export(AuditExportHead(isLive: false))
        var chain = AuditChain(writer: writer)
        for (index, line) in lines.enumerated() {
            guard case .record(let record) = line, record.writer == writer else { continue }
            lines[index] = .record(chain.append(.sample("another")))
        }
        for (index, line) in lines.enumerated() {
            guard case .head(var head) = line, head.writer == writer else { continue }
            head.hash = chain.hash
            lines[index] = .head(head)
        }
        // Of chains that have ended, the checkpoint knows no more than the digest of all ends.
        #expect(try self.verdict(lines, sealer: nil, publicKey: audit.publicKey).badPlace?.writer == 2)
        #expect(try self.verdict(lines, publicKey: nil).badPlace?.writer == writer)
    }

    @Test("The first record after a removal can't be dropped, whatever the beginning says then")
    func droppedFirst() async throws {
        let audit = try await SignedAudit(removing: 3)
        let lines = try await audit.export(AuditExportHead(isLive: false))
        let start = try #require(lines.firstIndex { if case .stretch = $0 { true } else { false } })
        let mark = try #require(lines.firstIndex { if case .truncation = $0 { true } else { false } })
        guard case .record(let first) = lines[start + 1], case .truncation(let genuine, _) = lines[mark] else {
            throw SampleError(what: "no record follows")
        }
        let chain = AuditChain(writer: 1, sequence: 4, hash: first.hash)
        let forged = try AuditSigner(signingKey: .sample("other")).truncation(of: chain, at: genuine.time)
        for truncation in [genuine, forged] {
            var changed = lines
            changed[mark] = .truncation(truncation, ended: nil)
            changed[start] = .stretch(AuditStretch(start: chain, through: 6))
            changed.remove(at: start + 1)
            let place = try self.verdict(changed, publicKey: audit.publicKey).badPlace
            #expect(place == AuditPosition(writer: 1, sequence: 4))
        }
    }

    @Test("A store that was changed is not exported, nor one whose signatures are another's")
    func damaged() async throws {
        let head = AuditExportHead(isLive: false)
        func place(_ change: (inout InMemoryAuditStore.Contents) -> Void) async throws -> AuditPosition? {
            let audit = try await SignedAudit(removing: 3)
            audit.store.tamper(change)
            let error = await #expect(throws: AuditVerifier.Verdict.self) { try await audit.export(head) }
            return error?.badPlace
        }
        #expect(try await place { $0.change(1, 5) { $0.record.bytes += 1 } } == AuditPosition(writer: 1, sequence: 5))
        #expect(try await place { $0.delete(2, 6) } == AuditPosition(writer: 2, sequence: 6))
        #expect(try await place { $0.delete(2, 16) } == AuditPosition(writer: 2, sequence: 16))
        #expect(try await place { $0.signatures.truncations = [] } == AuditPosition(writer: 1, sequence: 1))
        #expect(try await place { ($0.records, $0.heads) = ([], []) } == AuditPosition(writer: 1, sequence: 1))
        let audit = try await SignedAudit()
        let other = try AuditSigner(signingKey: .sample("other"))
        await #expect(throws: AuditVerifier.Verdict.self) { try await audit.export(head, publicKey: other.publicKey) }
        // What is hidden is looked at as well.
        audit.store.tamper { $0.change(2, 10) { $0.record.bytes += 1 } }
        let rare = AuditExportHead(tenant: "rare", isLive: false)
        let error = await #expect(throws: AuditVerifier.Verdict.self) { try await audit.export(rare) }
        #expect(error?.badPlace == AuditPosition(writer: 2, sequence: 10))
    }

    @Test("What retention removes meanwhile is no tampering")
    func meanwhile() async throws {
        let audit = try await SignedAudit(removing: 3)
        let last = try #require(audit.store.current.records.first { ($0.writer, $0.sequence) == (1, 5) })
        let chain = AuditChain(writer: 1, sequence: 5, hash: last.hash)
        let later = try audit.signer.truncation(of: chain, at: .sample)
        let exporter = AuditExporter(store: audit.store, publicKey: audit.publicKey)
        let error = await #expect(throws: GatewayError.self) {
            try await exporter.export(AuditExportHead(isLive: false)) { line in
                guard case .stretch = line else { return }
                audit.store.tamper { contents in
                    contents.records.removeAll { $0.writer == 1 && $0.sequence <= 5 }
                    contents.signatures.truncations = [later]
                }
            }
        }
        #expect(error?.code == .storeUnavailable)
    }

    @Test("A chain that was left open is unclean, unless a process was at it or nothing of it is there")
    func open() async throws {
        let audit = try await SignedAudit(.open)
        let cases: [(tenant: String?, isLive: Bool, isUnclean: Bool)] = [
            (nil, false, true), (nil, true, false), ("rare", false, true),
        ]
        for (tenant, isLive, isUnclean) in cases {
            let lines = try await audit.export(AuditExportHead(tenant: tenant, isLive: isLive))
            let verdict = try self.verdict(lines, publicKey: audit.publicKey)
            let count = self.records(lines).count
            #expect(verdict == (isUnclean ? .unclean(writer: 2, records: count) : .intact(records: count)))
        }
        let none = try await audit.export(AuditExportHead(tenant: "nobody", isLive: false))
        #expect(try self.verdict(none, publicKey: audit.publicKey) == .intact(records: 0))
    }

    @Test("A chain that a replica was at is named in the export's first line, and is not unclean")
    func openByReplica() async throws {
        let audit = try await SignedAudit(.open)
        for (writers, isUnclean) in [([2], false), ([1, 3], true)] {
            var head = AuditExportHead(isLive: false)
            head.liveWriters = writers
            #expect(AuditLine(AuditLine.export(head).text) == .export(head))
            let lines = try await audit.export(head)
            let verdict = try self.verdict(lines, publicKey: audit.publicKey)
            let count = self.records(lines).count
            #expect(verdict == (isUnclean ? .unclean(writer: 2, records: count) : .intact(records: count)))
        }
    }

    @Test("A record's line has all that its hash covers, and reads back as it was", arguments: RecordChange.all)
    func line(change: RecordChange) throws {
        var record = RecordChange.original
        change.apply(&record)
        var chain = AuditChain(writer: 3)
        let chained = chain.append(record)
        let line = AuditLine.record(chained)
        #expect(AuditLine(line.text) == line)
        let text = String(buffer: line.text)
        #expect(AuditLine(ByteBuffer(string: text.replacing(",", with: ", ", maxReplacements: 1))) == nil)
    }

    @Test("Intents are matched with their outcomes, whatever stands between")
    func intents() throws {
        var chain = AuditChain(writer: 1)
        func record(_ outcome: AuditRecord.Outcome, _ message: String?, _ request: String) -> ChainedAuditRecord {
            var record = AuditRecord.sample("message.send")
            (record.outcome, record.messageID, record.requestID) = (outcome, message, request)
            return chain.append(record)
        }
        var intents = AuditIntents()
        let records = [
            record(.intent, "1", "same"), record(.intent, "2", "same"), record(.accepted, "1", "same"),
            record(.intent, nil, "twice"), record(.intent, nil, "twice"), record(.done, nil, "twice"),
            record(.accepted, "none", "same"),
        ]
        for record in records { intents.take(record) }
        #expect(intents.withoutOutcome.map(\.sequence) == [2, 5])
    }
}
