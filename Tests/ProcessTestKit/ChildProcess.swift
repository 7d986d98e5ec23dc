package import Foundation
import Synchronization

/// A process that a test started; it never outlives the test's body.
package final class ChildProcess: Sendable {
    /// How a process ended: by itself, with a code, or by a signal.
    package enum End: Sendable, Equatable {
        case code(Int32)
        case signal(Int32)
    }

    package let output = ProcessOutput()
    package let errors = ProcessOutput()
    private let process: Spawned
    private let ends: AsyncStream<End>
    /// Finishes with the process.
    private let life: AsyncStream<Void>

    /// Starts a program, runs a body, and kills the program if it still runs then, or when the test is cancelled; it sees
    /// no variables but those given and those that programs need.
    package static func with<Result>(
        _ program: URL,
        _ arguments: [String],
        environment: [String: String] = [:],
        input: String = "",
        _ body: (ChildProcess) async throws -> Result
    ) async throws -> Result {
        try await PrivateDirectory.with { directory in
            // A file never blocks and never breaks, as a pipe would if the program does not read.
            let inputFile = FileHandle(forReadingAtPath: try directory.write(input, to: "input"))
            let child = try ChildProcess(program, arguments, environment: environment, input: inputFile)
            let result: Swift.Result<Result, any Error>
            do {
                result = .success(
                    try await withTaskCancellationHandler {
                        try await body(child)
                    } onCancel: {
                        child.signal(SIGKILL)
                    }
                )
            } catch {
                result = .failure(error)
            }
            child.signal(SIGKILL)
            await child.drained()
            // Its locks and its files are let go of by then, and its output may have ended before.
            for await _ in child.life {}
            return try result.get()
        }
    }

    private init(_ program: URL, _ arguments: [String], environment: [String: String], input: FileHandle?) throws {
        let (ends, continuation) = AsyncStream.makeStream(of: End.self)
        self.ends = ends
        let (life, lifeContinuation) = AsyncStream.makeStream(of: Void.self)
        self.life = life
        let inherited = ProcessInfo.processInfo.environment.filter { name, _ in
            ["PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"].contains(name)
        }
        defer { try? input?.close() }
        self.process = try Spawned(
            program.path,
            arguments,
            environment: inherited.merging(environment) { $1 },
            descriptors: [
                input?.fileDescriptor ?? STDIN_FILENO, self.output.pipe.fileHandleForWriting.fileDescriptor,
                self.errors.pipe.fileHandleForWriting.fileDescriptor,
            ]
        )
        // The child has its own; without ours its end is the stream's end.
        try self.output.pipe.fileHandleForWriting.close()
        try self.errors.pipe.fileHandleForWriting.close()
        self.process.whenEnded { end in
            continuation.yield(end)
            continuation.finish()
            lifeContinuation.finish()
        }
        self.output.start()
        self.errors.start()
    }

    package var pid: Int32 { self.process.pid }

    /// Sends a signal, unless the process has ended.
    package func signal(_ number: Int32) { self.process.signal(number) }

    /// Waits for the end and for all output; one caller may ask, once.
    package func end() async throws -> End {
        for await end in self.ends {
            await self.drained()
            return end
        }
        throw CancellationError()
    }

    private func drained() async {
        await self.output.complete()
        await self.errors.complete()
    }
}
