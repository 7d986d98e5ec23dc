import Foundation
import GatewayCore
import NIOCore

/// The audit's second sink as JSON lines on standard output, for a log collector.
///
/// A slow reader delays only this sink. A delivery that times out is interrupted and repeated, as in ``AuditSinkFile``.
/// The output of an earlier process can't be read back. So after a start, the lines after the last checkpoint
/// that the store has noted as delivered are delivered again.
final class AuditSinkOutput: AuditSink {
    private struct State {
        /// The last checkpoint that this process wrote completely.
        var last: SignedCheckpoint?
        /// True if anything was written after the last checkpoint.
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

/// A file descriptor that accepts bytes in pieces, as fast as its reader reads them.
struct TimedOutput: Sendable {
    /// The number of bytes that a pipe accepts at once if it accepts any (`PIPE_BUF`).
    private static let pieceBytes = 4_096

    let descriptor: Int32
    /// The longest time for which a reader may delay a piece.
    let timeoutMs: Int32

    /// Writes as many of the first bytes as the reader accepts at once. Returns the number of bytes written, which is 0
    /// only if `bytes` is empty. If there is no reader, writes nothing and throws `storeUnavailable`.
    func put(_ bytes: ArraySlice<UInt8>) throws(GatewayError) -> Int {
        let piece = bytes.prefix(Self.pieceBytes)
        while !piece.isEmpty {
            try self.awaitReader()
            // POSIX reads the bytes during the call, and keeps no reference.
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
            // POSIX fills the structure during the call, and keeps no reference.
            let count = unsafe poll(&waiting, 1, self.timeoutMs)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.failure("Standard output can't be written", errno) }
            guard count > 0 else { throw GatewayError(.storeUnavailable, "Standard output has no reader") }
            // A write to a closed pipe would end the process by a signal.
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
