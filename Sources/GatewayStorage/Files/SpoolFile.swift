package import GatewayCore
import NIOPosix

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A file of a spool that belongs to one process, and that only its owner can read.
package final class SpoolFile: AuditSpoolFile {
    /// The file's name in its directory.
    package static let name = "audit.spool"

    private let path: String
    private let descriptor: Int32

    /// Opens a spool, and makes it and its directory where they are not there; blocks.
    ///
    /// - Throws: `conflict` when another process has it open, `storeUnavailable` when it can't be made.
    package init(in directory: String) throws(GatewayError) {
        let path = "\(directory)/\(Self.name)"
        try StoreFile(path).makeDirectory()
        self.path = path
        // POSIX takes the path as a pointer, valid during the call.
        self.descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard self.descriptor >= 0 else { throw Self.error(path, "can't be made", POSIXFailure()) }
        guard flock(self.descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let failure = POSIXFailure()
            guard failure.number == EWOULDBLOCK else { throw Self.error(path, "can't be locked", failure) }
            throw GatewayError(.conflict, "Another gateway process uses the audit's spool \(path)")
        }
        guard fchmod(self.descriptor, 0o600) == 0 else {
            throw Self.error(path, "can't be restricted to its owner", POSIXFailure())
        }
        // Without this the power may take the file with all that was written to it.
        try Self.synchronize(path: directory)
    }

    /// Opens a spool to look at it, whether or not a process uses it; `nil` where there is none. Blocks.
    package init?(reading directory: String) throws(GatewayError) {
        let path = "\(directory)/\(Self.name)"
        // POSIX takes the path as a pointer, valid during the call.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let failure = POSIXFailure()
            if failure.number == ENOENT { return nil }
            throw Self.error(path, "can't be read", failure)
        }
        (self.path, self.descriptor) = (path, descriptor)
    }

    deinit {
        // A program that is just being started may have the file open for a moment, and with it the lock.
        flock(self.descriptor, LOCK_UN)
        close(self.descriptor)
    }

    package func size() async throws(GatewayError) -> Int {
        try await self.blocking { file throws(GatewayError) in
            let size = lseek(file.descriptor, 0, SEEK_END)
            guard size >= 0 else { throw file.error("can't be read", POSIXFailure()) }
            return Int(size)
        }
    }

    package func read(at offset: Int, count: Int) async throws(GatewayError) -> [UInt8] {
        try await self.blocking { file throws(GatewayError) in
            // What is not there needs no room, whatever its length claims to be.
            let size = lseek(file.descriptor, 0, SEEK_END)
            guard size >= 0 else { throw file.error("can't be read", POSIXFailure()) }
            var bytes = [UInt8](repeating: 0, count: max(0, min(count, Int(size) - offset)))
            var done = 0
            while done < bytes.count {
                // POSIX fills in the part of the bytes that is left.
                let part = unsafe bytes.withUnsafeMutableBytes { buffer in
                    let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
                    return unsafe pread(file.descriptor, rest.baseAddress, rest.count, off_t(offset + done))
                }
                if part < 0 {
                    if errno == EINTR { continue }
                    throw file.error("can't be read", POSIXFailure())
                }
                guard part > 0 else { break }
                done += part
            }
            return Array(bytes.prefix(done))
        }
    }

    /// Writes bytes from an offset on and returns when they are on the disk.
    ///
    /// - Throws: `storeUnavailable`; then there may be something behind the offset, which is to be dropped.
    package func write(_ bytes: [UInt8], at offset: Int) async throws(GatewayError) {
        try await self.blocking { file throws(GatewayError) in
            do throws(GatewayError) {
                try file.writeAll(bytes, at: offset)
                guard Self.synchronize(file.descriptor) == 0 else {
                    throw file.error("can't be written", POSIXFailure())
                }
            } catch {
                // Half a batch takes room that a full disk may need. Where this fails too, the caller tries it again.
                _ = ftruncate(file.descriptor, off_t(offset))
                throw error
            }
        }
    }

    package func cut(to size: Int) async throws(GatewayError) {
        try await self.blocking { file throws(GatewayError) in
            guard ftruncate(file.descriptor, off_t(size)) == 0 else {
                throw file.error("can't be emptied", POSIXFailure())
            }
        }
    }

    /// Moves the content to a file beside it, for an operator to look at, and goes on with an empty one.
    ///
    /// - Returns: where the content is now.
    package func setAside(_ suffix: String) async throws(GatewayError) -> String {
        let copy = "\(self.path).\(suffix)"
        try await self.blocking { file throws(GatewayError) in
            // A copy, since a new file would need a lock of its own, between which another process might come.
            do {
                try? FileManager.default.removeItem(atPath: copy)
                try FileManager.default.copyItem(atPath: file.path, toPath: copy)
            } catch {
                throw GatewayError(.storeUnavailable, "\(file.path) can't be put aside", cause: error)
            }
            // On the disk before the original is gone.
            try Self.synchronize(path: copy)
            try Self.synchronize(path: URL(filePath: copy).deletingLastPathComponent().path)
            guard ftruncate(file.descriptor, 0) == 0 else { throw file.error("can't be emptied", POSIXFailure()) }
        }
        return copy
    }

    private func writeAll(_ bytes: [UInt8], at offset: Int) throws(GatewayError) {
        var done = 0
        while done < bytes.count {
            // POSIX reads bytes of ours.
            let part = unsafe bytes.withUnsafeBytes { buffer in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[done...])
                return unsafe pwrite(self.descriptor, rest.baseAddress, rest.count, off_t(offset + done))
            }
            if part < 0 {
                if errno == EINTR { continue }
                throw self.error("can't be written", POSIXFailure())
            }
            done += part
        }
    }

    private static func synchronize(_ descriptor: Int32) -> Int32 {
        #if canImport(Darwin)
        fcntl(descriptor, F_FULLFSYNC)
        #else
        fdatasync(descriptor)
        #endif
    }

    /// Has a file's content, or a directory's names, written to the disk.
    private static func synchronize(path: String) throws(GatewayError) {
        // POSIX takes the path as a pointer, valid during the call.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.error(path, "can't be opened", POSIXFailure()) }
        defer { close(descriptor) }
        // Some file systems have nothing to synchronize in a directory, and say so.
        guard fsync(descriptor) == 0 || errno == EINVAL else {
            throw Self.error(path, "can't be written", POSIXFailure())
        }
    }

    private func blocking<Value: Sendable>(
        _ body: @escaping @Sendable (SpoolFile) throws(GatewayError) -> Value
    ) async throws(GatewayError) -> Value {
        do {
            return try await NIOThreadPool.singleton.runIfActive { try body(self) }
        } catch {
            throw error as? GatewayError ?? self.error("can't be used", POSIXFailure())
        }
    }

    private func error(_ what: String, _ failure: POSIXFailure) -> GatewayError {
        Self.error(self.path, what, failure)
    }

    private static func error(_ path: String, _ what: String, _ failure: POSIXFailure) -> GatewayError {
        GatewayError(.storeUnavailable, "\(path) \(what)", cause: failure)
    }
}
