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
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return }
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
        if let descriptor { close(descriptor) }
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
