package import Foundation
import Synchronization

/// What a process writes to one of its streams, for a test to wait on.
package final class ProcessOutput: Sendable {
    /// The process ended before it wrote what was waited for.
    package struct Missing: Error, CustomStringConvertible {
        let written: String

        package init(written: String) {
            self.written = written
        }

        package var description: String { "the process ended, having written: \(self.written)" }
    }

    private struct State {
        var bytes = Data()
        var isComplete = false
        var version = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// Where the process writes.
    ///
    /// No other child inherits it: its end would be waited for, too.
    let pipe: Pipe = {
        let pipe = Pipe()
        for handle in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
            _ = fcntl(handle.fileDescriptor, F_SETFD, FD_CLOEXEC)
        }
        return pipe
    }()
    private let state = Mutex(State())

    /// Reads from now on, on a thread of its own.
    ///
    /// Foundation's handlers for readable files miss the end of a pipe now and then.
    func start() {
        Thread.detachNewThread { [self] in
            let handle = self.pipe.fileHandleForReading
            while true {
                let data = handle.availableData
                if data.isEmpty { try? handle.close() }
                self.append(data)
                if data.isEmpty { return }
            }
        }
    }

    /// Everything so far, as ``bytes``.
    package var text: String { String(decoding: self.bytes, as: UTF8.self) }

    package var bytes: Data { self.state.withLock { $0.bytes } }

    /// Waits until something can be found in the text; throws `Missing` when the stream ends before.
    package func first<Value>(_ find: (String) throws -> Value?) async throws -> Value {
        while true {
            let (bytes, isComplete, version) = self.state.withLock { ($0.bytes, $0.isComplete, $0.version) }
            let text = String(decoding: bytes, as: UTF8.self)
            if let value = try find(text) { return value }
            guard !isComplete else { throw Missing(written: text) }
            await self.change(after: version)
        }
    }

    /// Waits for the stream's end.
    package func complete() async {
        while true {
            let (isComplete, version) = self.state.withLock { ($0.isComplete, $0.version) }
            if isComplete { return }
            await self.change(after: version)
        }
    }

    private func change(after version: Int) async {
        await withCheckedContinuation { continuation in
            let hasChanged = self.state.withLock { state in
                if state.version == version { state.waiters.append(continuation) }
                return state.version != version
            }
            if hasChanged { continuation.resume() }
        }
    }

    private func append(_ data: Data) {
        let waiters = self.state.withLock { state in
            state.bytes.append(data)
            state.isComplete = data.isEmpty
            state.version += 1
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
