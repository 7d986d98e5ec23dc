import Foundation
package import GatewayCore
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A database file by its real path, so that two names of one file have one lock.
struct StoreFile: Sendable, Hashable {
    /// What a file looks like while nobody writes to it.
    struct Stamp: Hashable {
        let size: Int
        let modified: Date
        let hasWriteAheadLog: Bool
    }

    /// The path with symbolic links resolved.
    let path: String

    init(_ path: String) {
        self.path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    }

    /// Where the lock of the process that serves the file lives.
    var lockPath: String { self.path + ".lock" }

    /// Where SQLite gathers changes before it moves them into the file; it exists while a process has the file open
    /// for writing, and after one was killed.
    var writeAheadLogPath: String { self.path + "-wal" }

    var exists: Bool { FileManager.default.fileExists(atPath: self.path) }

    var hasWriteAheadLog: Bool { FileManager.default.fileExists(atPath: self.writeAheadLogPath) }

    /// - Returns: `nil` when the file is not there.
    var stamp: Stamp? {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: self.path),
            let size = attributes[.size] as? NSNumber,
            let modified = attributes[.modificationDate] as? Date
        else { return nil }
        return Stamp(size: size.intValue, modified: modified, hasWriteAheadLog: self.hasWriteAheadLog)
    }

    /// Makes the file's directory, readable by its owner alone; one that is there is left as it is.
    func makeDirectory() throws(GatewayError) {
        let directory = URL(fileURLWithPath: self.path).deletingLastPathComponent().path
        guard !FileManager.default.fileExists(atPath: directory) else { return }
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw GatewayError(.storeUnavailable, "The store's directory can't be made: \(directory)", cause: error)
        }
    }

    /// Makes an empty file that only its owner can read; one that is there is left as it is.
    ///
    /// SQLite gives the files beside it the same permissions.
    func makeFile() throws(GatewayError) {
        // POSIX takes the path as a pointer, valid during the call.
        let descriptor = unsafe open(self.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor >= 0 {
            close(descriptor)
        } else if errno != EEXIST {
            throw GatewayError(.storeUnavailable, "The store's file can't be made: \(self.path)", cause: POSIXFailure())
        }
    }

    /// Takes away what others than the owner may do with the file and those beside it.
    func restrictPermissions() throws(GatewayError) {
        for path in [self.path, self.writeAheadLogPath, self.path + "-shm"] {
            // POSIX takes the path as a pointer, valid during the call.
            if unsafe chmod(path, 0o600) != 0, errno != ENOENT {
                throw GatewayError(
                    .storeUnavailable,
                    "The store's permissions can't be set: \(path)",
                    cause: POSIXFailure()
                )
            }
        }
    }
}

/// Says that a process serves a database: an advisory lock on a file beside it.
///
/// The kernel releases it when the process ends, however it ends. The file itself stays, because removing it could
/// leave two processes with a lock each.
package final class StoreLock: Sendable {
    /// A reader asks by taking the lock for an instant; a start that meets it asks again before it gives up.
    private static let attempts = 10
    private static let pauseMicroseconds: UInt32 = 10_000

    /// The bound on what the holder of a lock tells of itself.
    package static let maxAnnouncementBytes = 256

    private let descriptor: Mutex<Int32?>

    /// Takes the lock of a database; blocks for up to a tenth of a second.
    ///
    /// - Throws: `conflict` when another process, or another part of this one, serves the database; `storeUnavailable`
    ///   when the lock's file can't be made.
    package init(at path: String) throws(GatewayError) {
        let file = StoreFile(path)
        // POSIX takes the path as a pointer, valid during the call.
        let descriptor = unsafe open(file.lockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw GatewayError(
                .storeUnavailable,
                "The store's lock can't be made: \(file.lockPath)",
                cause: POSIXFailure()
            )
        }
        self.descriptor = Mutex(descriptor)
        for attempt in 1...Self.attempts {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 {
                // What an earlier holder said of itself is no longer true.
                _ = ftruncate(descriptor, 0)
                return
            }
            let failure = POSIXFailure()
            guard failure.number == EWOULDBLOCK else {
                throw GatewayError(.storeUnavailable, "The store can't be locked: \(file.lockPath)", cause: failure)
            }
            if attempt < Self.attempts { usleep(Self.pauseMicroseconds) }
        }
        throw GatewayError(.conflict, "Another gateway process serves this store: \(file.path)")
    }

    deinit {
        self.release()
    }

    /// Gives the lock back; a second call does nothing.
    package func release() {
        let descriptor = self.descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
        guard let descriptor else { return }
        // A program that is just being started may have the file open for a moment, and with it the lock.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// Leaves a text of at most ``maxAnnouncementBytes`` bytes for other processes, for as long as the lock is held.
    package func announce(_ text: String) throws(GatewayError) {
        let bytes = Array(text.utf8)
        precondition(bytes.count <= Self.maxAnnouncementBytes, "\(bytes.count) bytes")
        let isWritten = self.descriptor.withLock { descriptor in
            guard let descriptor, ftruncate(descriptor, 0) == 0 else { return false }
            // POSIX takes the bytes as a pointer, valid during the call.
            return unsafe pwrite(descriptor, bytes, bytes.count, 0) == bytes.count
        }
        guard isWritten else {
            throw GatewayError(.storeUnavailable, "The store's lock can't be written", cause: POSIXFailure())
        }
    }

    /// The text of the process that holds a database's lock; `nil` without either.
    package static func announcement(at path: String) throws(GatewayError) -> String? {
        guard try self.isHeld(at: path) else { return nil }
        // POSIX takes the path as a pointer, valid during the call.
        let descriptor = unsafe open(StoreFile(path).lockPath, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: Self.maxAnnouncementBytes)
        // POSIX fills in bytes of ours.
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe pread(descriptor, $0.baseAddress, $0.count, 0) }
        return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
    }

    /// Whether a process serves a database at this moment; does not hinder it.
    package static func isHeld(at path: String) throws(GatewayError) -> Bool {
        let file = StoreFile(path)
        // POSIX takes the path as a pointer, valid during the call.
        let descriptor = unsafe open(file.lockPath, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let failure = POSIXFailure()
            if failure.number == ENOENT { return false }
            throw GatewayError(.storeUnavailable, "The store's lock can't be read: \(file.lockPath)", cause: failure)
        }
        defer { close(descriptor) }
        // Shared, so that two readers that ask at once don't take each other for a server.
        if flock(descriptor, LOCK_SH | LOCK_NB) == 0 { return false }
        let failure = POSIXFailure()
        if failure.number == EWOULDBLOCK { return true }
        throw GatewayError(.storeUnavailable, "The store's lock can't be asked: \(file.lockPath)", cause: failure)
    }
}

/// The error number that a system call left.
struct POSIXFailure: Error, Hashable, CustomStringConvertible {
    let number: Int32

    /// The number of the call that failed just now on this thread.
    init() {
        self.number = errno
    }

    /// The number and what the system says of it.
    var description: String {
        // The text belongs to the system and is copied at once.
        unsafe "errno \(self.number): \(String(cString: strerror(self.number)))"
    }
}
