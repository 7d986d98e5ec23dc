import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("An export of the audit")
struct AuditExportTests {
    private static let summary = AuditExporter.Summary(records: 8, hidden: 7)

    /// Two closed chains of seven and eight records; those with an even number are another tenant's.
    private func fixture() async throws -> AuditFixture {
        let fixture = try await AuditFixture()
        for writer in 1...2 {
            var chain = AuditChain(writer: writer)
            let records = (1..<(7 + writer))
                .map { number in
                    var record = RecordChange.original
                    record.tenant = number.isMultiple(of: 2) ? "other" : "acme"
                    record.requestID = "request \(number) of \(writer)"
                    return chain.append(record)
                }
            try await fixture.store.append(records, head: fixture.sealer.head(of: chain, state: .closed))
        }
        return fixture
    }

    private func export(
        _ fixture: AuditFixture,
        tenant: String? = "acme",
        places: [Int: ClosedRange<Int>]? = nil
    ) async throws -> ([AuditExportItem], AuditExporter.Summary) {
        var items: [AuditExportItem] = []
        let summary = try await AuditExporter(store: fixture.store, tenant: tenant)
            .export(places: places) { items.append($0) }
        return (items, summary)
    }

    private func verify(
        _ items: [AuditExportItem],
        _ stated: AuditExporter.Summary?,
        isWhole: Bool = true,
        isLive: Bool = false,
        sealer: AuditSealer? = AuditSealer(auditKey: .sample("audit"))
    ) -> AuditExportVerifier.Verdict {
        var verifier = AuditExportVerifier(isWhole: isWhole, isLive: isLive, sealer: sealer)
        for item in items {
            guard verifier.take(item) else { break }
        }
        return verifier.finish(stated: stated)
    }

    @Test("A tenant's export shows its own records and no other's, and can be verified")
    func tenant() async throws {
        let fixture = try await self.fixture()
        let (items, summary) = try await self.export(fixture)
        #expect(summary == Self.summary)
        var text = ""
        dump(items, to: &text)
        for item in items {
            guard case .record(let record) = item else { continue }
            #expect(record.record.tenant == "acme")
        }
        #expect(!text.contains("other"))
        #expect(self.verify(items, summary) == .intact(summary))
        #expect(self.verify(items, summary, sealer: nil) == .intact(summary))
    }

    @Test("Everybody's export hides nothing")
    func everybody() async throws {
        let (items, summary) = try await self.export(try await self.fixture(), tenant: nil)
        #expect(summary == AuditExporter.Summary(records: 15, hidden: 0))
        #expect(self.verify(items, summary) == .intact(summary))
    }

    @Test("Whatever is changed, dropped, swapped or inserted is found, shown or hidden")
    func tampering() async throws {
        let (items, summary) = try await self.export(try await self.fixture())
        for index in items.indices {
            var dropped = items
            dropped.remove(at: index)
            #expect(!self.verify(dropped, summary).isIntact, "dropped \(index)")
            var doubled = items
            doubled.insert(items[index], at: index)
            #expect(!self.verify(doubled, summary).isIntact, "doubled \(index)")
            #expect(!self.verify(Array(items.prefix(index)), nil).isIntact, "cut at \(index)")
            if index > 0 {
                var swapped = items
                swapped.swapAt(index, index - 1)
                #expect(!self.verify(swapped, summary).isIntact, "swapped \(index)")
            }
            var changed = items
            switch items[index] {
            case .checkpoint: break
            case .chain(var chain):
                chain.head.sequence += 1
                changed[index] = .chain(chain)
            case .record(var record):
                record.record.accepted += 1
                changed[index] = .record(record)
            case .hidden(var record):
                record.digest[0] ^= 1
                changed[index] = .hidden(record)
            }
            #expect(!self.verify(changed, summary).isIntact, "changed \(index)")
        }
        #expect(!self.verify(items, AuditExporter.Summary(records: 8, hidden: 8)).isIntact)
        #expect(!self.verify(items, nil).isIntact)
    }

    @Test("The first bad place is named")
    func badPlace() async throws {
        let (exported, summary) = try await self.export(try await self.fixture())
        var items = exported
        // The third record of the second writer: behind two chains' beginnings and seven records.
        guard case .record(var record) = items[11] else {
            Issue.record("not the record to be changed")
            return
        }
        record.record.code = nil
        items[11] = .record(record)
        guard case .tampered(let place, let reason) = self.verify(items, summary) else {
            Issue.record("the change was not found")
            return
        }
        #expect(place == AuditPosition(writer: 2, sequence: 3))
        #expect(reason == "the record was changed")
    }

    @Test("A chain that was made anew has no genuine seal")
    func forged() async throws {
        let fixture = try await self.fixture()
        let forged = try await AuditFixture((7, .closed), (8, .closed))
        let (exported, summary) = try await self.export(forged, tenant: nil)
        var items = exported
        #expect(self.verify(items, summary).isIntact)
        for (index, item) in items.enumerated() {
            guard case .chain(var chain) = item else { continue }
            chain.head.seal = fixture.store.current.heads.first?.seal ?? []
            items[index] = .chain(chain)
        }
        #expect(!self.verify(items, summary).isIntact)
        #expect(self.verify(items, summary, sealer: nil).isIntact)
    }

    @Test("A part of the chains is verified from where it begins, but passes for no whole")
    func part() async throws {
        let (items, summary) = try await self.export(try await self.fixture(), places: [1: 3...5, 2: 2...8])
        #expect(summary == AuditExporter.Summary(records: 5, hidden: 5))
        #expect(self.verify(items, summary, isWhole: false) == .intact(summary))
        #expect(!self.verify(items, summary).isIntact)
        let (second, secondSummary) = try await self.export(try await self.fixture(), places: [2: 1...4])
        #expect(self.verify(second, secondSummary, isWhole: false).isIntact)
    }

    @Test("A store that was changed is not exported")
    func damaged() async throws {
        let fixture = try await self.fixture()
        fixture.store.tamper { $0.records[4].record.bytes += 1 }
        let error = await #expect(throws: AuditExporter.Damage.self) { try await self.export(fixture) }
        #expect(error?.verdict.badPlace == AuditPosition(writer: 1, sequence: 5))
        let missing = try await self.fixture()
        missing.store.tamper { $0.records.removeAll { $0.sequence == 6 } }
        let gap = await #expect(throws: AuditExporter.Damage.self) { try await self.export(missing) }
        #expect(gap?.verdict.badPlace == AuditPosition(writer: 1, sequence: 6))
        let shorter = try await self.fixture()
        shorter.store.tamper { $0.records.removeAll { $0.writer == 2 && $0.sequence >= 7 } }
        let end = await #expect(throws: AuditExporter.Damage.self) { try await self.export(shorter) }
        #expect(end?.verdict.badPlace == AuditPosition(writer: 2, sequence: 7))
    }

    @Test("A chain that was left open is unclean, unless a process was at it")
    func open() async throws {
        let fixture = try await AuditFixture((3, .recovered), (4, .open))
        let (items, summary) = try await self.export(fixture, tenant: nil)
        #expect(self.verify(items, summary) == .unclean(writer: 2, summary))
        #expect(self.verify(items, summary, isLive: true) == .intact(summary))
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

extension AuditExportVerifier.Verdict {
    var isIntact: Bool {
        if case .intact = self { true } else { false }
    }

    /// The first bad place, if one was found.
    var badPlace: AuditPosition? {
        if case .tampered(let place, _) = self { place } else { nil }
    }
}
