import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("An export of an audit that is signed, and of which old records were removed")
struct SignedAuditExportTests {
    private let signer: AuditSigner
    private let fixture: AuditFixture

    private static let sealer = AuditSealer(auditKey: .sample("audit"))

    /// Three chains: all of the first is removed, three of the second's six records, and the third is open.
    ///
    /// A checkpoint has all of them; two records follow it.
    init() async throws {
        self.signer = try AuditSigner(signingKey: .sample("signing"))
        self.fixture = try await AuditFixture((5, .closed), (6, .closed), (7, .open))
        let cuts = try [(1, 5), (2, 3)]
            .map { writer, sequence in
                let record = try #require(
                    self.fixture.store.current.records.first { $0.writer == writer && $0.sequence == sequence }
                )
                let chain = AuditChain(writer: writer, sequence: sequence, hash: record.hash)
                return try self.signer.cut(of: chain, at: Timestamp(microseconds: 1_000_000))
            }
        self.fixture.store.tamper { $0.records.removeAll { $0.writer == 1 || ($0.writer == 2 && $0.sequence <= 3) } }
        self.fixture.store.use(cuts)
        try await self.fixture.store.sign(self.signer, Self.sealer)
        var chain = try #require(self.fixture.store.current.heads.last?.chain)
        try await self.fixture.append(2, to: &chain, state: .open)
    }

    private func export(
        places: [Int: ClosedRange<Int>]? = nil,
        publicKey: AuditPublicKey? = nil
    ) async throws -> ([AuditExportItem], AuditExporter.Summary) {
        var items: [AuditExportItem] = []
        let exporter = AuditExporter(
            store: self.fixture.store,
            tenant: nil,
            sealer: Self.sealer,
            publicKey: publicKey ?? self.signer.publicKey
        )
        let summary = try await exporter.export(places: places) { items.append($0) }
        return (items, summary)
    }

    private func verify(
        _ items: [AuditExportItem],
        _ stated: AuditExporter.Summary,
        isWhole: Bool = true,
        publicKey: AuditPublicKey? = nil,
        sealer: AuditSealer? = nil
    ) -> AuditExportVerifier.Verdict {
        let key = publicKey ?? self.signer.publicKey
        var verifier = AuditExportVerifier(isWhole: isWhole, isLive: true, sealer: sealer, publicKey: key)
        for item in items {
            guard verifier.take(item) else { break }
        }
        return verifier.finish(stated: stated)
    }

    /// The places of a chain's beginning among the parts.
    private func beginning(of writer: Int, _ items: [AuditExportItem]) throws -> (index: Int, chain: AuditExportChain) {
        for (index, item) in items.enumerated() {
            if case .chain(let chain) = item, chain.start.writer == writer { return (index, chain) }
        }
        throw GatewayError(.notFound, "No such chain")
    }

    @Test("It begins where the signed words say, and says how much was removed; without the key it still fits together")
    func intact() async throws {
        let (items, summary) = try await self.export()
        #expect(summary == AuditExporter.Summary(records: 12, removed: 8))
        #expect(self.verify(items, summary) == .intact(summary))
        #expect(self.verify(items, summary, sealer: Self.sealer) == .intact(summary))
        var keyless = AuditExportVerifier(isWhole: true, isLive: true, sealer: nil)
        for item in items { _ = keyless.take(item) }
        let verdict = keyless.finish(stated: summary)
        #expect(verdict == .intact(summary))
        #expect(keyless.checkpoint == 1)
    }

    @Test("An export without a checkpoint or anything else is not intact to who has the key")
    func emptied() {
        let nothing = AuditExporter.Summary(records: 0, removed: 0)
        #expect(self.verify([], nothing) != .intact(nothing))
        var keyless = AuditExportVerifier(isWhole: true, isLive: true, sealer: nil)
        let verdict = keyless.finish(stated: nothing)
        #expect(verdict == .intact(nothing))
    }

    @Test("The first record after a removal can't be dropped, whatever the beginning says then")
    func droppedFirst() async throws {
        let (items, summary) = try await self.export()
        let (index, chain) = try self.beginning(of: 2, items)
        guard case .record(let first) = items[index + 1] else {
            Issue.record("no record follows")
            return
        }
        var dropped = items
        dropped.remove(at: index + 1)
        let stated = AuditExporter.Summary(records: summary.records - 1, removed: summary.removed)
        #expect(self.verify(dropped, stated).badPlace == AuditPosition(writer: 2, sequence: 4))

        // As if one more had been removed by age: with the old word, with a forged one, and without any.
        let start = AuditChain(writer: 2, sequence: 4, hash: first.hash)
        let other = try AuditSigner(signingKey: .sample("other"))
        let genuine = try #require(chain.cut)
        for cut in [genuine, try other.cut(of: start, at: genuine.time), nil] {
            dropped[index] = .chain(AuditExportChain(start: start, cut: cut, through: chain.through, head: chain.head))
            let claimed = AuditExporter.Summary(records: stated.records, removed: 5 + (cut?.sequence ?? 0))
            let place = self.verify(dropped, claimed).badPlace
            #expect(place == AuditPosition(writer: 2, sequence: cut == nil ? 1 : 4))
        }
        // Without a key, nobody can tell a forged word.
        dropped[index] = .chain(
            AuditExportChain(
                start: start,
                cut: try other.cut(of: start, at: genuine.time),
                through: 6,
                head: chain.head
            )
        )
        var keyless = AuditExportVerifier(isWhole: true, isLive: true, sealer: nil)
        for item in dropped { _ = keyless.take(item) }
        let verdict = keyless.finish(stated: AuditExporter.Summary(records: 11, removed: 9))
        #expect(verdict.isIntact)
    }

    @Test("Every part that is dropped, doubled or swapped is found; so is a chain left out at the end")
    func parts() async throws {
        let (items, summary) = try await self.export()
        for index in items.indices {
            var changed = items
            changed.remove(at: index)
            #expect(!self.verify(changed, summary).isIntact, "dropped \(index)")
            changed = items
            changed.insert(items[index], at: index)
            #expect(!self.verify(changed, summary).isIntact, "doubled \(index)")
            guard index > 0 else { continue }
            changed = items
            changed.swapAt(index, index - 1)
            #expect(!self.verify(changed, summary).isIntact, "swapped \(index)")
        }
        let (last, _) = try self.beginning(of: 3, items)
        let two = AuditExporter.Summary(records: 3, removed: 8)
        #expect(self.verify(Array(items[..<last]), two).badPlace == AuditPosition(writer: 3, sequence: 1))
    }

    @Test("A checkpoint that was changed, or signed by somebody else, is found by the key")
    func checkpoint() async throws {
        let (items, summary) = try await self.export()
        guard case .checkpoint(let signed) = items[0], let content = signed.content else {
            Issue.record("no checkpoint comes first")
            return
        }
        let other = try AuditSigner(signingKey: .sample("other"))
        var changed = items
        changed[0] = .checkpoint(try other.sign(content))
        let reason = "its signature is not genuine"
        #expect(self.verify(changed, summary) == .checkpointTampered(number: 1, reason: reason))
        #expect(!self.verify(items, summary, publicKey: other.publicKey).isIntact)
        var renumbered = signed
        renumbered.number = 2
        changed[0] = .checkpoint(renumbered)
        #expect(self.verify(changed, summary) == .checkpointTampered(number: 2, reason: "it was changed"))
        changed = items
        changed.removeFirst()
        #expect(self.verify(changed, summary).badPlace == AuditPosition(writer: 1, sequence: 6))
    }

    @Test("A chain that somebody wrote anew is found by the checkpoint, without the key of the seals", arguments: 1...3)
    func rewritten(writer: Int) async throws {
        let (items, summary) = try await self.export()
        let (index, original) = try self.beginning(of: writer, items)
        var chain = AuditChain(writer: writer)
        let count = original.head.sequence
        let records = (0..<count).map { _ in chain.append(.sample("another")) }
        let head = AuditHead(
            writer: writer,
            sequence: count,
            hash: chain.hash,
            state: original.head.state,
            seal: original.head.seal
        )
        var changed = items
        let old = original.through - original.start.sequence
        let part = AuditExportChain(start: AuditChain(writer: writer), through: count, head: head)
        changed.replaceSubrange(index...(index + old), with: [.chain(part)] + records.map { .record($0) })
        let stated = AuditExporter.Summary(
            records: summary.records - old + count,
            removed: summary.removed - (original.cut?.sequence ?? 0)
        )
        let verdict = self.verify(changed, stated)
        #expect(verdict.badPlace?.writer == (writer == 1 ? 2 : writer), "\(verdict)")
        var keyless = AuditExportVerifier(isWhole: true, isLive: true, sealer: nil)
        for item in changed where item != items[0] { _ = keyless.take(item) }
        let unchecked = keyless.finish(stated: stated)
        #expect(unchecked.isIntact)
    }

    @Test("A part has every chain's end, so that signatures count there as well")
    func window() async throws {
        let (items, summary) = try await self.export(places: [2: 4...5, 3: 2...3])
        #expect(summary == AuditExporter.Summary(records: 4, removed: 8))
        #expect(self.verify(items, summary, isWhole: false) == .intact(summary))
        let (index, chain) = try self.beginning(of: 1, items)
        #expect(chain.start == chain.head.chain && chain.cut != nil)
        var changed = items
        var other = chain
        other.head.sequence += 1
        changed[index] = .chain(other)
        #expect(!self.verify(changed, summary, isWhole: false).isIntact)
        for index in items.indices {
            var changed = items
            changed.remove(at: index)
            #expect(!self.verify(changed, summary, isWhole: false).isIntact, "dropped \(index)")
        }
        // Below the cut there is nothing to export.
        let (_, below) = try await self.export(places: [1: 1...5, 2: 1...2])
        #expect(below.records == 0)
    }

    @Test("A forged cut, one that is missing, and a checkpoint that is not genuine keep a store from being exported")
    func damaged() async throws {
        let other = try AuditSigner(signingKey: .sample("other"))
        await #expect(throws: AuditExporter.Damage.self) { try await self.export(publicKey: other.publicKey) }
        let cuts = try await self.fixture.store.cuts()
        self.fixture.store.use([cuts[0]])
        let missing = await #expect(throws: AuditExporter.Damage.self) { try await self.export() }
        #expect(missing?.verdict.badPlace == AuditPosition(writer: 2, sequence: 1))
        self.fixture.store.use([cuts[0], try other.cut(of: cuts[1].chain, at: cuts[1].time)])
        let forged = await #expect(throws: AuditExporter.Damage.self) { try await self.export() }
        #expect(forged?.verdict.badPlace == AuditPosition(writer: 2, sequence: 3))
    }

    @Test("What retention removes meanwhile is no tampering")
    func meanwhile() async throws {
        let next = try #require(
            self.fixture.store.current.records.first { $0.writer == 2 && $0.sequence == 4 }
        )
        let chain = AuditChain(writer: 2, sequence: 4, hash: next.hash)
        let cuts = try await self.fixture.store.cuts()
        let later = [cuts[0], try self.signer.cut(of: chain, at: cuts[1].time)]
        let exporter = AuditExporter(
            store: self.fixture.store,
            tenant: nil,
            publicKey: self.signer.publicKey
        )
        let error = await #expect(throws: GatewayError.self) {
            try await exporter.export { item in
                guard case .chain(let chain) = item, chain.start.writer == 2 else { return }
                self.fixture.store.tamper { $0.records.removeAll { $0.writer == 2 && $0.sequence == 4 } }
                self.fixture.store.use(later)
            }
        }
        #expect(error?.code == .storeUnavailable)
    }
}
