import Foundation
import GatewayTestKit
import Logging
import NIOCore
import Testing

@testable import GatewayService

@Suite("Log output", .timeLimit(.minutes(10)))
struct LogOutputTests {
    private static func output(_ handle: sending FileHandle) -> LogOutput {
        LogOutput(handle, timeout: .seconds(600)) { ByteBuffer(string: "lost \($0)\n") }
    }

    /// A line of a kibibyte.
    private static let line = Array(repeating: UInt8(ascii: "x"), count: 1_023) + Array("\n".utf8)

    /// The lines of a pipe that is read only after a body has written.
    private func lines(_ body: (LogOutput, ReadPipe) async throws -> Void) async throws -> [Substring] {
        let pipe = ReadPipe()
        let output = Self.output(pipe.writer)
        try await body(output, pipe)
        pipe.read()
        output.flush()
        try pipe.writer.close()
        return try await pipe.lines()
    }

    @Test("Lines of many writers are written whole and in each writer's order")
    func order() async throws {
        let pipe = ReadPipe()
        let output = Self.output(pipe.writer)
        pipe.read()
        await withDiscardingTaskGroup { group in
            for writer in 0..<8 {
                group.addTask {
                    for number in 0..<500 {
                        output.write("\(writer) \(number)\n".utf8.span, isUrgent: number.isMultiple(of: 100))
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

    @Test("A reader that stalls blocks no writer, and lines that don't fit are counted")
    func overflow() async throws {
        let count = 3 * LogOutput.maxBytes / Self.line.count
        let lines = try await self.lines { output, _ in
            for _ in 0..<count { output.write(Self.line.span, isUrgent: false) }
        }
        let lost = lines.filter { $0.hasPrefix("lost ") }.compactMap { Int($0.dropFirst(5)) }.reduce(0, +)
        #expect(lost > 0)
        #expect(lines.count { $0.hasPrefix("x") } + lost == count)
    }

    @Test("A flush returns although the log is never read")
    func unread() throws {
        let pipe = ReadPipe()
        let output = LogOutput(pipe.writer) { _ in ByteBuffer() }
        for _ in 0..<200 { output.write(Self.line.span, isUrgent: false) }
        output.flush()
        // Lets the writing thread end.
        pipe.read()
    }

    @Test("A flood of lines leaves room for urgent ones")
    func urgent() async throws {
        let lines = try await self.lines { output, _ in
            for _ in 0..<LogOutput.maxBytes / Self.line.count { output.write(Self.line.span, isUrgent: false) }
            output.write("trouble\n".utf8.span, isUrgent: true)
        }
        #expect(lines.contains("trouble"))
        #expect(lines.contains { $0.hasPrefix("lost ") })
    }

    @Test("A nonblocking pipe loses nothing")
    func nonblocking() async throws {
        let count = 1_000
        let lines = try await self.lines { output, pipe in
            let descriptor = pipe.writer.fileDescriptor
            #expect(fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0)
            for number in 0..<count { output.write("\(number) \(Self.filling)\n".utf8.span, isUrgent: false) }
        }
        #expect(lines.map { $0.prefix { $0 != " " } } == (0..<count).map { "\($0)" })
    }

    private static let filling = String(repeating: "x", count: 1_000)

    @Test("Lines that can't be written are counted, and the count is written later")
    func refused() throws {
        let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
        let descriptor = full.fileDescriptor
        let output = Self.output(full)
        for number in 0..<3 { output.write("\(number)\n".utf8.span, isUrgent: false) }
        output.flush()
        output.write("3\n".utf8.span, isUrgent: false)
        output.flush()
        let pipe = Pipe()
        #expect(dup2(pipe.fileHandleForWriting.fileDescriptor, descriptor) == descriptor)
        output.write("4\n".utf8.span, isUrgent: false)
        output.flush()
        // Either order is possible: the count may be due before the line.
        try pipe.fileHandleForWriting.close()
        try full.close()
        let text = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        #expect(text.split(separator: "\n").sorted() == ["4", "lost 4"])
    }

    @Test("A line after a partly written one begins on a new line")
    func cut() throws {
        signal(SIGPIPE, SIG_IGN)
        let broken = Pipe()
        let writer = broken.fileHandleForWriting
        let output = Self.output(writer)
        // More than a pipe holds, so that only part is written when the reader closes.
        let long = String(repeating: "x", count: 100_000) + "\n"
        output.write(long.utf8.span, isUrgent: true)
        #expect(try broken.fileHandleForReading.read(upToCount: 1) == Data("x".utf8))
        try broken.fileHandleForReading.close()
        output.flush()
        let pipe = Pipe()
        #expect(dup2(pipe.fileHandleForWriting.fileDescriptor, writer.fileDescriptor) == writer.fileDescriptor)
        output.write("next\n".utf8.span, isUrgent: false)
        output.flush()
        #expect(String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self) == "\nnext\nlost 1\n")
    }

    @Test("A closed output accepts lines and drops them")
    func closed() throws {
        let pipe = ReadPipe()
        try pipe.writer.close()
        let output = Self.output(pipe.writer)
        output.write("x\n".utf8.span, isUrgent: true)
        output.flush()
    }
}

/// A pipe that a blocking thread reads to its end.
private struct ReadPipe: Sendable {
    /// Keeps both ends open, so that no other test reuses a closed descriptor's number.
    private let pipe = Pipe()
    private let text = Observed<String?>(nil)

    var writer: FileHandle { self.pipe.fileHandleForWriting }

    /// Starts the reading thread.
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
