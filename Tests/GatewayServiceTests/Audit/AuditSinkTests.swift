import Foundation
import GatewayCore
import GatewayStorage
import GatewayTestKit
import NIOCore
import Testing

@testable import GatewayService

struct AuditSinkTests {
    /// Runs a body with a sink file of three closed chains and a checkpoint after each.
    private func delivered(
        _ body: (AuditTrailFixture, AuditSinkFile, String) async throws -> Void
    ) async throws {
        try await AuditTrailFixture.with { fixture in
            let path = "\(fixture.directory.path)/audit.jsonl"
            let sink = AuditSinkFile(path: path, name: "gateway")
            let feeder = fixture.feeder(sink)
            for writer in 1...3 {
                var chain = AuditChain(writer: writer)
                try await fixture.write(4, to: &chain, state: .closed)
                _ = await fixture.checkpointer.checkpoint()
                await feeder.deliver()
            }
            #expect(feeder.delivered == 4)
            try await body(fixture, sink, path)
        }
    }

    @Test("The sink reveals a store restored from an old copy, with or without new records", arguments: [false, true])
    func rolledBack(goesOn: Bool) async throws {
        try await TemporaryDirectory.with { directory in
            let fixture = try await AuditTrailFixture(directory)
            var chain = AuditChain(writer: 1)
            try await fixture.write(4, to: &chain)
            #expect(await fixture.checkpointer.checkpoint())
            try fixture.database.close()
            try FileManager.default.copyItem(atPath: fixture.path, toPath: "\(fixture.path).old")

            let path = "\(directory.path)/audit.jsonl"
            var later = try await AuditTrailFixture(directory)
            var longer = chain
            try await later.write(4, to: &longer)
            _ = await later.checkpointer.checkpoint()
            await later.feeder(AuditSinkFile(path: path, name: "gateway")).deliver()
            try later.database.close()

            for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: fixture.path + end) }
            try FileManager.default.copyItem(atPath: "\(fixture.path).old", toPath: fixture.path)
            later = try await AuditTrailFixture(directory)
            if goesOn {
                later.clock.advance(by: .seconds(5))
                for _ in 0..<3 {
                    try await later.write(4, to: &chain)
                    _ = await later.checkpointer.checkpoint()
                }
            }
            #expect(try await later.verify() == .intact(records: goesOn ? 16 : 4))
            let evidence = try later.read(path).evidence
            switch try await later.verify(evidence: evidence) {
            case .tampered(let place, _): #expect(place == AuditChain.Position(writer: 1, sequence: goesOn ? 8 : 5))
            case .checkpointTampered: break
            case .intact, .unclean: Issue.record("The rollback was overlooked")
            }
            try later.database.close()
        }
    }

    @Test("The next feeder completes a truncated sink file", arguments: [0, 1, 40, 700, 5_000])
    func brokenOff(bytes: Int) async throws {
        try await self.delivered { fixture, _, path in
            var whole = try Data(contentsOf: URL(filePath: path))
            // As if the process had been killed while it wrote the last batch.
            whole.removeLast(min(bytes, whole.count))
            try whole.write(to: URL(filePath: path))
            var chain = AuditChain(writer: 4)
            try await fixture.write(2, to: &chain)
            _ = await fixture.checkpointer.checkpoint()
            for _ in 0..<2 {
                await fixture.feeder(AuditSinkFile(path: path, name: "gateway")).deliver()
                let verifier = try fixture.read(path)
                #expect(verifier.evidence.latest == 5)
                #expect(try await fixture.verify(evidence: verifier.evidence) == .intact(records: 17))
            }
            var lines = try fixture.lines(path)
            let torn = lines.indices.filter { AuditLine(ByteBuffer(string: lines[$0])) == nil }
            #expect(torn.count == (bytes <= 1 ? 0 : 1))
            // An unreadable line is a change unless a repeated checkpoint follows it.
            guard let index = torn.first else { return }
            lines.remove(at: index + 1)
            try fixture.write(lines, to: path)
            #expect(throws: AuditSinkVerifier.Failure.self) { try fixture.read(path) }
        }
    }

    @Test("An incomplete last line is only a warning after the last checkpoint known as delivered", arguments: [4, 3])
    func torn(checkpoint: Int) async throws {
        try await self.delivered { fixture, _, path in
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let mark = try #require(
                text.range(of: #""type":"checkpoint","sink":"gateway","number":\#(checkpoint),"#)
            )
            let end = try #require(text[mark.upperBound...].firstIndex(of: "\n"))
            let torn = text[...end] + #"{"type":"record","writer":4"#
            try Data(torn.utf8).write(to: URL(filePath: path))
            let verifier = try fixture.read(path)
            let line = torn.split(separator: "\n").count
            #expect(verifier.warning?.line == line && verifier.evidence.latest == checkpoint)
            var evidence = verifier.evidence
            evidence.required = try await fixture.store.sinks()["gateway"] ?? 0
            let reason = "the sink had it, and has it no more"
            let expected: AuditVerifier.Verdict =
                checkpoint == 4 ? .intact(records: 15) : .checkpointTampered(number: 4, reason: reason)
            #expect(try await fixture.verify(evidence: evidence) == expected)
            // With a newline it can't come from a kill.
            try Data((torn + "\n").utf8).write(to: URL(filePath: path))
            #expect(throws: AuditSinkVerifier.Failure.self) { try fixture.read(path) }
        }
    }

    @Test("A new file continues a sink whose file was moved; both verify together, and the later one alone")
    func rotation() async throws {
        try await self.delivered { fixture, sink, path in
            let feeder = fixture.feeder(sink)
            await feeder.deliver()
            try FileManager.default.moveItem(atPath: path, toPath: "\(path).1")
            await sink.reopen()
            for writer in 4...6 {
                var chain = AuditChain(writer: writer)
                try await fixture.write(3, to: &chain, state: .closed)
                _ = await fixture.checkpointer.checkpoint()
                await feeder.deliver()
            }
            let both = try fixture.read("\(path).1", path)
            #expect(both.evidence.latest == 7 && both.records == 27)
            #expect(try await fixture.verify(evidence: both.evidence) == .intact(records: 27))
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
            let later = try fixture.read(path)
            #expect(later.evidence.latest == 7)
            #expect(try await fixture.verify(evidence: later.evidence) == .intact(records: 27))
            #expect(throws: AuditSinkVerifier.Failure.self) { try fixture.read(path, "\(path).1") }
        }
    }

    @Test("A moved file gets no more lines unless a checkpoint's batch is incomplete")
    func idleRotation() async throws {
        try await self.delivered { fixture, sink, path in
            let whole = try fixture.lines(path)
            try FileManager.default.moveItem(atPath: path, toPath: "\(path).1")
            await sink.reopen()
            #expect(try fixture.lines("\(path).1") == whole)
            #expect(try fixture.lines(path) == Array(whole.suffix(1)))

            var chain = AuditChain(writer: 4)
            let records = (0..<3).map { _ in AuditLine.record(chain.append(fixture.record())) }
            try await fixture.store.append(
                records.compactMap { if case .record(let record) = $0 { record } else { nil } },
                head: fixture.sealer.head(of: chain, state: .open)
            )
            _ = await fixture.checkpointer.checkpoint()
            try await sink.write(records, isWhole: false)
            try FileManager.default.moveItem(atPath: path, toPath: "\(path).2")
            await sink.reopen()
            #expect(!FileManager.default.fileExists(atPath: path))
            let last = try #require(try await fixture.store.signatures().latest)
            try await sink.write([.checkpoint(last, sink: "gateway")], isWhole: true)
            let second = try fixture.lines("\(path).2")
            #expect(second.count == 5)
            #expect(try fixture.lines(path) == Array(second.suffix(1)))
            let verifier = try fixture.read("\(path).1", "\(path).2", path)
            #expect(verifier.evidence.latest == 5)
        }
    }

    @Test("Changes in any file of a rotated sink are found, and so are swapped or missing later files")
    func tamperedRotation() async throws {
        try await self.delivered { fixture, sink, path in
            let feeder = fixture.feeder(sink)
            await feeder.deliver()
            var files: [String] = []
            for writer in 4...5 {
                files.append("\(path).\(writer)")
                try FileManager.default.moveItem(atPath: path, toPath: files[files.count - 1])
                await sink.reopen()
                for part in 0..<2 {
                    var chain = AuditChain(writer: 2 * writer - 4 + part)
                    try await fixture.write(2, to: &chain, state: .closed)
                    _ = await fixture.checkpointer.checkpoint()
                    await feeder.deliver()
                }
            }
            files.append(path)
            let required = try await fixture.store.sinks()["gateway"] ?? 0
            func verdict(_ files: [String]) async throws -> AuditVerifier.Verdict? {
                var verifier = AuditSinkVerifier(publicKey: fixture.signer.publicKey)
                do {
                    for file in files { try verifier.read(file) }
                } catch is AuditSinkVerifier.Failure {
                    return nil
                }
                guard verifier.finding == nil else { return nil }
                var evidence = verifier.evidence
                evidence.required = required
                return try await fixture.verify(evidence: evidence)
            }
            let untouched = try await verdict(files)
            #expect(untouched == .intact(records: 27))

            // The first file may be missing, because a sink may begin anywhere.
            for index in files.indices.dropFirst() {
                var fewer = files
                fewer.remove(at: index)
                let found = try await verdict(fewer)
                #expect(found != untouched, "without file \(index)")
                var swapped = files
                swapped.swapAt(index, index - 1)
                #expect(try await verdict(swapped) != untouched, "file \(index) before its predecessor")
            }
            let copy = "\(fixture.directory.path)/changed.jsonl"
            for (index, file) in files.enumerated() {
                let lines = try fixture.lines(file)
                var changes: [(String, [String])] = []
                for number in lines.indices {
                    // A file's last line is repeated as the next file's first, so either may be missing.
                    let isTwice = number == 0 || (number == lines.count - 1 && index < files.count - 1)
                    var changed = lines
                    changed.remove(at: number)
                    if !isTwice { changes.append(("without line \(number)", changed)) }
                    if !isTwice { changes.append(("truncated before line \(number)", Array(lines[..<number]))) }
                    changed = lines
                    changed[number] = changed[number].replacing("0", with: "1", maxReplacements: 1)
                    if changed != lines { changes.append(("line \(number) changed", changed)) }
                    changed = lines
                    changed.insert(lines[(number + 1) % lines.count], at: number)
                    // Lines before a repeated checkpoint are read again after it.
                    if index == 0 || number > 0 { changes.append(("inserted before line \(number)", changed)) }
                }
                for (what, changed) in changes {
                    try fixture.write(changed, to: copy)
                    var named = files
                    named[index] = copy
                    #expect(try await verdict(named) != untouched, "file \(index): \(what)")
                }
            }
        }
    }

    @Test("A sink that couldn't be written gets everything later, and the loss of a sink is found")
    func outage() async throws {
        try await AuditTrailFixture.with { fixture in
            let path = "\(fixture.directory.path)/not-there/audit.jsonl"
            let feeder = fixture.feeder(AuditSinkFile(path: path, name: "gateway"))
            var chain = AuditChain(writer: 1)
            try await fixture.write(1_200, to: &chain)
            _ = await fixture.checkpointer.checkpoint()
            await feeder.deliver()
            #expect(feeder.delivered == nil)
            try FileManager.default.createDirectory(
                atPath: "\(fixture.directory.path)/not-there",
                withIntermediateDirectories: true
            )
            await feeder.deliver()
            #expect(feeder.delivered == 2)
            let verifier = try fixture.read(path)
            #expect(verifier.records == 1_200 && verifier.evidence.latest == 2)
            // The store knows the delivered checkpoint, so a lost sink is found.
            var evidence = AuditEvidence()
            evidence.required = try await fixture.store.sinks()["gateway"] ?? 0
            #expect(
                try await fixture.verify(evidence: evidence)
                    == .checkpointTampered(number: 2, reason: "the sink had it, and has it no more")
            )
        }
    }

    @Test("A sink that starts after records were removed holds the remaining ones and verifies")
    func afterRetention() async throws {
        try await AuditTrailFixture.with { fixture in
            var chain = AuditChain(writer: 1)
            try await fixture.write(5, to: &chain, days: 40)
            let removed = await fixture.retain(days: 30)
            #expect(removed > 0)
            _ = await fixture.checkpointer.checkpoint()
            let path = "\(fixture.directory.path)/audit.jsonl"
            await fixture.feeder(AuditSinkFile(path: path, name: "gateway")).deliver()
            let verifier = try fixture.read(path)
            #expect(verifier.records == 41 * 5 - removed)
            #expect(try await fixture.verify(evidence: verifier.evidence) == .intact(records: 41 * 5 - removed))
        }
    }
}
