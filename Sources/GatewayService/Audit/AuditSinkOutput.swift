import Foundation
import GatewayCore
import NIOCore

/// The second sink as JSON lines on standard output, for whoever collects it.
///
/// A reader that does not keep up holds up nothing but this sink: what it does not take in time is broken off and follows
/// again. What an earlier process wrote can't be read back, so the last of it comes again after a start.
final class AuditSinkOutput: AuditSink {
    private struct State {
        /// The last checkpoint that this process wrote whole.
        var last: SignedCheckpoint?
        /// Whether something was written since.
        var isHalfWritten = false
        var isMidLine = false
    }

    private let output: TimedOutput
    private let state = BlockingState(State())

    init(_ output: TimedOutput = TimedOutput(descriptor: STDOUT_FILENO, timeoutMs: 1_000)) {
        self.output = output
    }

    func resume() async throws(GatewayError) -> AuditSinkPlace {
        try await self.blocking { state in
            guard let last = state.last else { return .unknown }
            return .checkpoint(last, isWhole: !state.isHalfWritten)
        }
    }

    func write(_ lines: [AuditLine], isWhole: Bool) async throws(GatewayError) {
        try await self.blocking { state in
            let newline = UInt8(ascii: "\n")
            var left = ((state.isMidLine ? [newline] : []) + lines.bytes)[...]
            while !left.isEmpty {
                let written = left.prefix(try self.output.put(left))
                (state.isHalfWritten, state.isMidLine) = (true, written.last != newline)
                left = left.dropFirst(written.count)
            }
            guard isWhole else { return }
            (state.last, state.isHalfWritten) = (lines.lastCheckpoint ?? state.last, false)
        }
    }

    private func blocking<T: Sendable>(
        _ body: @escaping @Sendable (inout State) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.state.blocking("Standard output can't be written", body)
    }
}

/// A file descriptor that is written to piece by piece, as its reader takes them.
struct TimedOutput: Sendable {
    /// What a pipe takes at once when it takes anything (`PIPE_BUF`).
    private static let pieceBytes = 4_096

    let descriptor: Int32
    /// How long a reader may keep a piece waiting.
    let timeoutMs: Int32

    /// Writes as many of the first bytes as the reader takes at once, and returns how many: one at least, unless there
    /// are none. Throws `storeUnavailable` when nobody reads; then nothing was written.
    func put(_ bytes: ArraySlice<UInt8>) throws(GatewayError) -> Int {
        let piece = bytes.prefix(Self.pieceBytes)
        while !piece.isEmpty {
            try self.awaitReader()
            // POSIX reads what it is handed, and keeps nothing of it.
            let count = unsafe piece.withUnsafeBytes { bytes in
                unsafe write(self.descriptor, bytes.baseAddress, bytes.count)
            }
            if count > 0 { return count }
            guard count < 0, errno == EINTR || errno == EAGAIN else {
                throw Self.failure("Standard output can't be written", errno)
            }
        }
        return 0
    }

    private func awaitReader() throws(GatewayError) {
        while true {
            var waiting = pollfd(fd: self.descriptor, events: Int16(POLLOUT), revents: 0)
            // POSIX fills in what it is handed, and keeps nothing of it.
            let count = unsafe poll(&waiting, 1, self.timeoutMs)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.failure("Standard output can't be written", errno) }
            guard count > 0 else { throw GatewayError(.storeUnavailable, "Standard output has no reader") }
            // Writing where the reader has gone would end the process by a signal.
            guard waiting.revents & Int16(POLLERR | POLLNVAL) == 0 else {
                throw Self.failure("Standard output is closed", EPIPE)
            }
            return
        }
    }

    private static func failure(_ reason: String, _ code: Int32) -> GatewayError {
        GatewayError(.storeUnavailable, reason, cause: POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO))
    }
}
