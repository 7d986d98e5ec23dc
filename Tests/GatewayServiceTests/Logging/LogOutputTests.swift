import Foundation
import GatewayTestKit
import Logging
import Testing

@testable import GatewayService

@Suite("Log output", .timeLimit(.minutes(10)))
struct LogOutputTests {
    private static func output(_ handle: sending FileHandle) -> LogOutput {
        LogOutput(handle, timeout: .seconds(600)) { Array("lost \($0)\n".utf8) }
    }

    /// A line of a kibibyte.
    private static let line = Array(repeating: UInt8(ascii: "x"), count: 1_023) + Array("\n".utf8)

    /// What comes out of a pipe that is read only once a body has written.
    private func lines(_ body: (LogOutput, ReadPipe) async throws -> Void) async throws -> [Substring] {
        let pipe = ReadPipe()
        let output = Self.output(pipe.writer)
        try await body(output, pipe)
        pipe.read()
        output.flush()
        try pipe.writer.close()
        return try await pipe.lines()
    }

    @Test("Lines of many writers come out whole, and each writer's in order")
    func order() async throws {
        let pipe = ReadPipe()
        let output = Self.output(pipe.writer)
        pipe.read()
        await withDiscardingTaskGroup { group in
            for writer in 0..<8 {
                group.addTask {
                    for number in 0..<500 {
                        output.write(Array("\(writer) \(number)\n".utf8), isUrgent: number.isMultiple(of: 100))
                    }
                }
            }
        }
        output.flush()
        try pipe.writer.close()
        let lines = try await pipe.lines().map { $0.split(separator: " ").compactMap { Int($0) } }
        #expect(lines.count == 4_000)
        for writer in 0..<8 {
            #expect(lines.filter { $0.first == writer }.map(\.last) == Array(0..<500))
        }
    }

    @Test("Who does not read the log stops nobody; what does not fit is counted")
    func overflow() async throws {
        let count = 3 * LogOutput.maxBytes / Self.line.count
        let lines = try await self.lines { output, _ in
            for _ in 0..<count { output.write(Self.line, isUrgent: false) }
        }
        let lost = lines.filter { $0.hasPrefix("lost ") }.compactMap { Int($0.dropFirst(5)) }.reduce(0, +)
        #expect(lost > 0)
        #expect(lines.count { $0.hasPrefix("x") } + lost == count)
    }

    @Test("Who never reads the log does not keep the process from ending")
    func unread() throws {
        let pipe = ReadPipe()
        let output = LogOutput(pipe.writer) { _ in [] }
        for _ in 0..<200 { output.write(Self.line, isUrgent: false) }
        output.flush()
        // So that the thread that writes ends, too.
        pipe.read()
    }

    @Test("A flood of lines leaves room for those that tell of trouble")
    func urgent() async throws {
        let lines = try await self.lines { output, _ in
            for _ in 0..<LogOutput.maxBytes / Self.line.count { output.write(Self.line, isUrgent: false) }
            output.write(Array("trouble\n".utf8), isUrgent: true)
        }
        #expect(lines.contains("trouble"))
        #expect(lines.contains { $0.hasPrefix("lost ") })
    }

    @Test("A pipe that was told not to wait loses nothing")
    func nonblocking() async throws {
        let count = 1_000
        let lines = try await self.lines { output, pipe in
            let descriptor = pipe.writer.fileDescriptor
            #expect(fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0)
            for number in 0..<count { output.write(Array("\(number) \(Self.filling)\n".utf8), isUrgent: false) }
        }
        #expect(lines.map { $0.prefix { $0 != " " } } == (0..<count).map { "\($0)" })
    }

    private static let filling = String(repeating: "x", count: 1_000)

    @Test("What can't be written is counted, and told once it can be")
    func refused() throws {
        let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
        let descriptor = full.fileDescriptor
        let output = Self.output(full)
        for number in 0..<3 { output.write(Array("\(number)\n".utf8), isUrgent: false) }
        output.flush()
        output.write(Array("3\n".utf8), isUrgent: false)
        output.flush()
        let pipe = Pipe()
        #expect(dup2(pipe.fileHandleForWriting.fileDescriptor, descriptor) == descriptor)
        output.write(Array("4\n".utf8), isUrgent: false)
        output.flush()
        // Both come, one before the other: lines of before may have been due in between.
        try pipe.fileHandleForWriting.close()
        try full.close()
        let text = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        #expect(text.split(separator: "\n").sorted() == ["4", "lost 4"])
    }

    @Test("No line is glued to half of another")
    func cut() throws {
        signal(SIGPIPE, SIG_IGN)
        let broken = Pipe()
        let writer = broken.fileHandleForWriting
        let output = Self.output(writer)
        // More than a pipe holds, so that half of it is written when its reader goes away.
        output.write(Array(repeating: UInt8(ascii: "x"), count: 100_000) + Array("\n".utf8), isUrgent: true)
        #expect(try broken.fileHandleForReading.read(upToCount: 1) == Data("x".utf8))
        try broken.fileHandleForReading.close()
        output.flush()
        let pipe = Pipe()
        #expect(dup2(pipe.fileHandleForWriting.fileDescriptor, writer.fileDescriptor) == writer.fileDescriptor)
        output.write(Array("next\n".utf8), isUrgent: false)
        output.flush()
        #expect(String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self) == "\nnext\nlost 1\n")
    }

    @Test("A closed output takes lines and loses them")
    func closed() throws {
        let pipe = ReadPipe()
        try pipe.writer.close()
        let output = Self.output(pipe.writer)
        output.write(Array("x\n".utf8), isUrgent: true)
        output.flush()
    }
}

/// A pipe that is read to its end, on a thread that may wait.
private struct ReadPipe: Sendable {
    /// Keeps both ends open: a number that is closed too early may be another test's a moment later.
    private let pipe = Pipe()
    private let text = Observed<String?>(nil)

    /// The end that is written to.
    var writer: FileHandle { self.pipe.fileHandleForWriting }

    /// Begins to read.
    func read() {
        Thread {
            let data = (try? self.pipe.fileHandleForReading.readToEnd()) ?? Data()
            self.text.change { $0 = String(decoding: data, as: UTF8.self) }
        }
        .start()
    }

    /// The lines, once the pipe has ended.
    func lines() async throws -> [Substring] {
        try await self.text.wait { $0 != nil }
        return self.text.current?.split(separator: "\n") ?? []
    }
}
