import Foundation
import GatewayCore
import GatewayStorage
import GatewayTestKit
import NIOCore
import Testing

@testable import GatewayService

struct AuditSinkOutputTests {
    private func read(_ collected: Data, _ fixture: AuditTrailFixture) throws -> AuditSinkVerifier {
        let path = "\(fixture.directory.path)/collected.jsonl"
        try collected.write(to: URL(filePath: path))
        return try fixture.read(path)
    }

    /// The number of repeated checkpoints.
    private func repeated(_ collected: Data) -> Int {
        let checkpoints = String(decoding: collected, as: UTF8.self).split(separator: "\n")
            .filter { $0.hasPrefix(#"{"type":"checkpoint""#) && $0.hasSuffix("}") }
        return checkpoints.count - Set(checkpoints).count
    }

    @Test("Lines that a stalled reader missed are written again after each stall")
    func stalled() async throws {
        try await AuditTrailFixture.with { fixture in
            let pipe = StallingPipe()
            let feeder = fixture.feeder(AuditSinkOutput(pipe.output))
            var chain = AuditChain(writer: 1)
            var collected = Data()
            var stalls = 0
            // Each round fills about half of the pipe.
            for round in 1...12 {
                try await fixture.write(35, to: &chain)
                _ = await fixture.checkpointer.checkpoint()
                await feeder.deliver()
                guard feeder.delivered != round + 1 else { continue }
                stalls += 1
                collected += pipe.drain()
                await feeder.deliver()
            }
            collected += pipe.drain()
            await feeder.deliver()
            collected += pipe.drain()
            #expect(stalls > 1)
            #expect(feeder.delivered == 13)
            // Torn lines make checkpoints repeat; a write to a full pipe would tear nothing.
            #expect(self.repeated(collected) > 0)
            let verifier = try self.read(collected, fixture)
            #expect(verifier.evidence.latest == 13)
            #expect(try await fixture.verify(evidence: verifier.evidence) == .intact(records: 12 * 35))
            // An unreadable line is a change unless a repeated checkpoint follows it.
            var lines = String(decoding: collected, as: UTF8.self).split(separator: "\n").map(String.init)
            let torn = try #require(lines.firstIndex { AuditLine(ByteBuffer(string: $0)) == nil })
            lines.remove(at: torn + 1)
            let changed = Data((lines.joined(separator: "\n") + "\n").utf8)
            #expect(throws: AuditSinkVerifier.Failure.self) {
                try self.read(changed, fixture)
            }
        }
    }

    @Test("After a stall before the first checkpoint everything is written again")
    func stalledAtFirst() async throws {
        try await AuditTrailFixture.with { fixture in
            let pipe = StallingPipe()
            let sink = AuditSinkOutput(pipe.output)
            var chain = AuditChain(writer: 1)
            let records = (0..<50).map { _ in chain.append(fixture.record()) }
            try await fixture.store.append(records, head: fixture.sealer.head(of: chain, state: .open))
            _ = await fixture.checkpointer.checkpoint()
            let checkpoint = try #require(try await fixture.store.signatures().latest)
            let lines = records.map { AuditLine.record($0) }
            await #expect(throws: GatewayError.self) {
                for _ in 0..<10 { try await sink.write(lines, isWhole: false) }
            }
            var collected = pipe.drain()
            #expect(try await sink.resume() == .unknown)
            try await sink.write(lines, isWhole: false)
            try await sink.write([.checkpoint(checkpoint, sink: "gateway")], isWhole: true)
            #expect(try await sink.resume() == .checkpoint(checkpoint, isWhole: true))
            collected += pipe.drain()
            let verifier = try self.read(collected, fixture)
            #expect(verifier.evidence.latest == 2)
        }
    }

    @Test("Lines that are repeated after a start verify together with the earlier lines", arguments: [false, true])
    func started(isTorn: Bool) async throws {
        try await AuditTrailFixture.with { fixture in
            let pipe = StallingPipe()
            var collected = Data()
            var chain = AuditChain(writer: 1)
            for start in 1...3 {
                let feeder = fixture.feeder(AuditSinkOutput(pipe.output))
                for _ in 0..<3 {
                    try await fixture.write(2, to: &chain)
                    _ = await fixture.checkpointer.checkpoint()
                    await feeder.deliver()
                    collected += pipe.drain()
                }
                #expect(feeder.delivered == 1 + 3 * start)
                // A collector terminates the line that a killed process left incomplete.
                if isTorn { collected += Data("{\"type\":\"record\",\"writer\":1\n".utf8) }
            }
            if isTorn {
                let feeder = fixture.feeder(AuditSinkOutput(pipe.output))
                await feeder.deliver()
                collected += pipe.drain()
            }
            let verifier = try self.read(collected, fixture)
            #expect(verifier.evidence.latest == 10)
            #expect(try await fixture.verify(evidence: verifier.evidence) == .intact(records: 18))
        }
    }

    @Test("A backlog that a shutdown interrupted is delivered later")
    func brokenOff() async throws {
        try await AuditTrailFixture.with { fixture in
            let path = "\(fixture.directory.path)/output.jsonl"
            try Data().write(to: URL(filePath: path))
            let file = try #require(FileHandle(forWritingAtPath: path))
            let output = TimedOutput(descriptor: file.fileDescriptor, timeoutMs: 0)
            let feeder = fixture.feeder(AuditSinkOutput(output))
            var chain = AuditChain(writer: 1)
            try await fixture.write(1_200, to: &chain)
            _ = await fixture.checkpointer.checkpoint()
            for _ in 0..<3 { await feeder.deliver(within: .zero) }
            #expect(feeder.delivered == 1)
            await feeder.deliver()
            #expect(feeder.delivered == 2)
            let collected = try Data(contentsOf: URL(filePath: path))
            let verifier = try self.read(collected, fixture)
            #expect(verifier.evidence.latest == 2 && self.repeated(collected) > 0)
            #expect(try await fixture.verify(evidence: verifier.evidence) == .intact(records: 1_200))
        }
    }

    @Test("A closed reader causes an error, not a signal")
    func closed() async throws {
        let pipe = StallingPipe()
        try pipe.closeReader()
        let sink = AuditSinkOutput(pipe.output)
        var chain = AuditChain(writer: 1)
        let record = chain.append(AuditRecord.sample())
        await #expect(throws: GatewayError.self) { try await sink.write([.record(record)], isWhole: false) }
    }
}

/// A pipe that is read only when the test drains it.
private struct StallingPipe {
    private let pipe = Pipe()

    init() {
        _ = fcntl(self.pipe.fileHandleForReading.fileDescriptor, F_SETFL, O_NONBLOCK)
    }

    /// The write end, which never waits.
    var output: TimedOutput {
        TimedOutput(descriptor: self.pipe.fileHandleForWriting.fileDescriptor, timeoutMs: 0)
    }

    func drain() -> Data {
        var all = Data()
        var block = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            // POSIX fills the block during the call.
            let count = unsafe block.withUnsafeMutableBytes { bytes in
                unsafe read(self.pipe.fileHandleForReading.fileDescriptor, bytes.baseAddress, bytes.count)
            }
            guard count > 0 else { return all }
            all += block[..<count]
        }
    }

    func closeReader() throws {
        try self.pipe.fileHandleForReading.close()
    }
}
