import Foundation
import GatewayCore

/// A file descriptor that is written to piece by piece, as its reader takes them.
struct PatientOutput: Sendable {
    /// What a pipe takes at once when it takes anything (`PIPE_BUF`).
    private static let pieceBytes = 4_096

    /// What is written to; never closed.
    let descriptor: Int32
    /// How long a reader may keep a piece waiting, in milliseconds.
    let patience: Int32

    /// Writes as many of the first bytes as the reader takes at once.
    ///
    /// - Returns: how many were written: one at least, unless there are none.
    /// - Throws: `storeUnavailable` when nobody reads; then nothing was written.
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
            let count = unsafe poll(&waiting, 1, self.patience)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.failure("Standard output can't be written", errno) }
            guard count > 0 else { throw GatewayError(.storeUnavailable, "Nobody reads standard output") }
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
