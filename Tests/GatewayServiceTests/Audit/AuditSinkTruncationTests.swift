import Foundation
import GatewayCore
import GatewayStorage
import GatewayTestKit
import NIOCore
import Testing

@testable import GatewayService

struct AuditSinkTruncationTests {
    /// Writes two short chains on the first day, one ended uncleanly, and a long one with a checkpoint every day.
    private func fill(_ fixture: AuditTrailFixture, _ feeder: AuditSinkFeeder? = nil) async throws {
        func mark() async {
            await self.mark(fixture, feeder)
        }
        var closed = AuditChain(writer: 1)
        try await fixture.write(3, to: &closed, state: .closed)
        await mark()
        var recovered = AuditChain(writer: 2)
        try await fixture.write(3, to: &recovered)
        let end = recovered.append(fixture.record("audit.recovered", tenant: nil))
        try await fixture.store.append([end], head: fixture.sealer.head(of: recovered, state: .recovered))
        await mark()
        var long = AuditChain(writer: 3)
        for _ in 0..<40 {
            try await fixture.write(5, to: &long)
            await mark()
            fixture.clock.advance(by: .seconds(86_400))
        }
    }

    private func mark(_ fixture: AuditTrailFixture, _ feeder: AuditSinkFeeder?) async {
        _ = await fixture.checkpointer.checkpoint()
        await feeder?.deliver()
    }

    private func more(_ fixture: AuditTrailFixture, _ feeder: AuditSinkFeeder) async throws {
        for _ in 0..<3 {
            var chain = try #require(try await fixture.store.heads().last).chain
            try await fixture.write(5, to: &chain)
            await self.mark(fixture, feeder)
        }
    }

    @Test("A sink added after a truncation holds the remaining records and protects how removed chains ended")
    func namedFirst() async throws {
        try await AuditTrailFixture.with { fixture in
            try await self.fill(fixture)
            let removed = await fixture.retain(days: 30)
            await self.mark(fixture, nil)
            // Checkpoints reach further back than the records.
            let truncations = try await fixture.store.truncations()
            #expect(truncations.map(\.writer) == [1, 2, 3] && removed == truncations.reduce(0) { $0 + $1.sequence })
            let path = "\(fixture.directory.path)/audit.jsonl"
            let feeder = fixture.feeder(AuditSinkFile(path: path, name: "gateway"))
            await feeder.deliver()
            var verifier = try fixture.read(path)
            #expect(verifier.records == 208 - removed)
            #expect(try await fixture.verify(evidence: verifier.evidence) == .intact(records: 208 - removed))

            try await self.more(fixture, feeder)
            verifier = try fixture.read(path)
            #expect(verifier.evidence.latest == feeder.delivered)
            #expect(try await fixture.verify(evidence: verifier.evidence) == .intact(records: 223 - removed))

            // The checkpoint protects the end of a chain whose records are all removed.
            let lines = try fixture.lines(path)
            let ended = lines.indices.filter { lines[$0].contains(#""ended":"#) }
            #expect(ended.count == 2)
            for index in ended {
                for change in [(#""closed""#, #""recovered""#), (#""recovered""#, #""closed""#)] {
                    var changed = lines
                    changed[index] = changed[index].replacing(change.0, with: change.1)
                    guard changed != lines else { continue }
                    try fixture.write(changed, to: "\(path).changed")
                    #expect(throws: AuditSinkVerifier.Failure.self) {
                        try fixture.read("\(path).changed")
                    }
                }
            }
        }
    }

    @Test("Records that are removed during their delivery leave no gap in the sink", arguments: [false, true])
    func overtaken(hasBegun: Bool) async throws {
        try await AuditTrailFixture.with { fixture in
            let path = "\(fixture.directory.path)/audit.jsonl"
            try await self.fill(fixture)
            let store = InterposedAuditStore(
                fixture.store,
                beforeRows: { number in
                    if number == 1 { _ = await fixture.retain(days: 30) }
                }
            )
            let sink = AuditSinkFile(path: path, name: "gateway")
            let feeder = AuditSinkFeeder(
                sink: sink,
                name: "gateway",
                store: store,
                publicKey: fixture.signer.publicKey,
                clock: fixture.clock,
                logger: AuditTrailFixture.logger
            )
            if hasBegun {
                // The sink holds the first checkpoint and was then unwritable for long.
                let first = try #require(try await fixture.store.signatures().oldest)
                _ = try await sink.resume()
                try await sink.write([.checkpoint(first, sink: "gateway")], isWhole: true)
            }
            await feeder.deliver()
            let latest = try await fixture.store.signatures().latest?.number
            #expect(feeder.delivered == latest)
            try await self.more(fixture, feeder)
            let whole = try await fixture.verify()
            guard case .intact(let records) = whole else {
                Issue.record("\(whole)")
                return
            }
            #expect(records < 223)
            let verifier = try fixture.read(path)
            #expect(verifier.evidence.latest == feeder.delivered)
            #expect(try await fixture.verify(evidence: verifier.evidence) == whole)
            // The next process can continue after any line behind the store's oldest checkpoint.
            let text = try fixture.lines(path)
            let oldest = try #require(try await fixture.store.signatures().oldest?.number)
            let mark = #"{"type":"checkpoint","sink":"gateway","number":\#(oldest),"#
            let start = try #require(text.firstIndex { $0.hasPrefix(mark) })
            for end in stride(from: start + 1, to: text.count, by: 41) {
                let copy = "\(fixture.directory.path)/short.jsonl"
                try fixture.write(Array(text[..<end]), to: copy)
                await fixture.feeder(AuditSinkFile(path: copy, name: "gateway")).deliver()
                let again = try fixture.read(copy)
                #expect(again.evidence.latest == feeder.delivered, "\(end) lines")
                try FileManager.default.removeItem(atPath: copy)
            }
        }
    }
}
