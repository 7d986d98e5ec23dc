package import GatewayCore
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

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
    /// - Parameter path: the database's path.
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

    /// Tells other processes something of this one, for as long as it holds the lock; replaces what was told before.
    ///
    /// - Parameter text: at most ``maxAnnouncementBytes`` bytes, and no secret.
    /// - Throws: `storeUnavailable` when it can't be written.
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

    /// What the process that holds a database's lock told of itself.
    ///
    /// - Parameter path: the database's path.
    /// - Returns: `nil` when nobody holds the lock, or the holder has told nothing.
    /// - Throws: `storeUnavailable` when the lock can't be asked.
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
    ///
    /// - Parameter path: the database's path.
    /// - Returns: whether the lock is held, by whichever process.
    /// - Throws: `storeUnavailable` when the lock can't be asked.
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
