package import GatewayCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file beside the store that is written whole or not at all, and that only its owner can read.
///
/// What it holds is worth less than a wait for the disk: with the power, its newest content may be lost.
package struct StateFile: Sendable {
    private let path: String

    package init(path: String) {
        self.path = path
    }

    /// The file's content; `nil` when there is no file. Blocks.
    ///
    /// - Throws: `storeUnavailable` when it can't be read, `invalid` when it is larger than the bound.
    package func read(maxBytes: Int) throws(GatewayError) -> [UInt8]? {
        // POSIX takes the path as a pointer, valid during the call.
        let descriptor = unsafe open(self.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let failure = POSIXFailure()
            if failure.number == ENOENT { return nil }
            throw self.error("can't be read", failure)
        }
        defer { close(descriptor) }
        let size = lseek(descriptor, 0, SEEK_END)
        guard size >= 0 else { throw self.error("can't be read", POSIXFailure()) }
        guard size <= maxBytes else { throw GatewayError(.invalid, "\(self.path) is larger than it can be") }
        var bytes = [UInt8](repeating: 0, count: Int(size))
        var count = 0
        while count < bytes.count {
            // POSIX fills in the part of the bytes that is left.
            let part = unsafe bytes.withUnsafeMutableBytes { buffer in
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
                return unsafe pread(descriptor, rest.baseAddress, rest.count, count)
            }
            if part < 0 {
                if errno == EINTR { continue }
                throw self.error("can't be read", POSIXFailure())
            }
            guard part > 0 else { break }
            count += part
        }
        return Array(bytes.prefix(count))
    }

    /// Replaces the file's content; where it throws, the file is as it was. Blocks.
    package func write(_ bytes: [UInt8]) throws(GatewayError) {
        let draft = "\(self.path).new"
        // POSIX takes paths as pointers, valid during the calls.
        let descriptor = unsafe open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw self.error("can't be made", POSIXFailure()) }
        var failure = Self.write(bytes, to: descriptor)
        if close(descriptor) != 0, failure == nil { failure = POSIXFailure() }
        if failure == nil, unsafe rename(draft, self.path) != 0 { failure = POSIXFailure() }
        guard let failure else { return }
        unsafe unlink(draft)
        throw self.error("can't be written", failure)
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> POSIXFailure? {
        // POSIX reads bytes of ours.
        unsafe bytes.withUnsafeBytes { buffer in
            var written = 0
            while written < buffer.count {
                let start = unsafe buffer.baseAddress?.advanced(by: written)
                #if canImport(Darwin)
                let part = unsafe Darwin.write(descriptor, start, buffer.count - written)
                #elseif canImport(Glibc)
                let part = unsafe Glibc.write(descriptor, start, buffer.count - written)
                #else
                let part = unsafe Musl.write(descriptor, start, buffer.count - written)
                #endif
                if part < 0 {
                    if errno == EINTR { continue }
                    return POSIXFailure()
                }
                written += part
            }
            return nil
        }
    }

    private func error(_ what: String, _ failure: POSIXFailure) -> GatewayError {
        GatewayError(.storeUnavailable, "\(self.path) \(what)", cause: failure)
    }
}
