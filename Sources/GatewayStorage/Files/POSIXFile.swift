import Foundation
import GatewayCore

/// The error number that a system call left.
struct POSIXFailure: Error, Hashable, CustomStringConvertible {
    let number: Int32

    /// Reads the number that the last call on this thread left.
    init() {
        self.number = errno
    }

    var description: String {
        // The text belongs to the system and is copied at once.
        unsafe String(cString: strerror(self.number))
    }

    /// Runs a body, and turns what it throws into `storeUnavailable` with a message of ours and the failure as its
    /// cause.
    static func explained<Value>(
        _ words: @autoclosure () -> String,
        _ body: () throws -> Value
    ) throws(GatewayError) -> Value {
        do {
            return try body()
        } catch {
            throw GatewayError(.storeUnavailable, words(), cause: error)
        }
    }
}

/// An open file. Its calls block.
struct POSIXFile: Sendable {
    private let descriptor: Int32

    /// Opens a file. A file that the call creates is readable by its owner alone.
    init(_ path: String, _ flags: Int32) throws(POSIXFailure) {
        // POSIX takes the path as a pointer, valid during the call.
        self.descriptor = unsafe open(path, flags | O_CLOEXEC, 0o600)
        guard self.descriptor >= 0 else { throw POSIXFailure() }
    }

    /// Closes the file. Returns false if the system could not store everything that was written.
    @discardableResult
    func release() -> Bool { close(self.descriptor) == 0 }

    func size() throws(POSIXFailure) -> Int {
        let size = lseek(self.descriptor, 0, SEEK_END)
        guard size >= 0 else { throw POSIXFailure() }
        return Int(size)
    }

    /// Reads up to `count` bytes, fewer at the file's end. Memory is allocated only for bytes that exist, so `count`
    /// may be any number.
    func read(at offset: Int, count: Int) throws(POSIXFailure) -> [UInt8] {
        let size = try self.size()
        var bytes = [UInt8](repeating: 0, count: max(0, min(count, size - offset)))
        var done = 0
        while done < bytes.count {
            // POSIX writes to the bytes that are still missing.
            let part = unsafe bytes.withUnsafeMutableBytes { buffer in
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
                return unsafe pread(self.descriptor, rest.baseAddress, rest.count, off_t(offset + done))
            }
            if part < 0 {
                if errno == EINTR { continue }
                throw POSIXFailure()
            }
            guard part > 0 else { break }
            done += part
        }
        return Array(bytes.prefix(done))
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(POSIXFailure) {
        var done = 0
        while done < bytes.count {
            // POSIX reads the bytes during the call.
            let part = unsafe bytes.withUnsafeBytes { buffer in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[done...])
                return unsafe pwrite(self.descriptor, rest.baseAddress, rest.count, off_t(offset + done))
            }
            if part < 0 {
                if errno == EINTR { continue }
                throw POSIXFailure()
            }
            done += part
        }
    }

    func cut(to size: Int) throws(POSIXFailure) {
        guard ftruncate(self.descriptor, off_t(size)) == 0 else { throw POSIXFailure() }
    }

    /// Creates a directory and those above it, accessible to its owner alone. An existing directory keeps its
    /// permissions.
    static func makeDirectory(_ path: String) throws(POSIXFailure) {
        // POSIX takes the path as a pointer, valid during the call.
        if unsafe mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        let (failure, parent) = (POSIXFailure(), URL(filePath: path).deletingLastPathComponent().path)
        guard failure.number == ENOENT, parent != path else { throw failure }
        try self.makeDirectory(parent)
        if unsafe mkdir(path, 0o700) != 0, errno != EEXIST { throw POSIXFailure() }
    }

    /// Withdraws the permissions of everyone but the owner.
    func restrictPermissions() throws(POSIXFailure) {
        guard fchmod(self.descriptor, 0o600) == 0 else { throw POSIXFailure() }
    }

    /// Returns when the content is on the disk.
    func synchronize() throws(POSIXFailure) {
        #if canImport(Darwin)
        let result = fcntl(self.descriptor, F_FULLFSYNC)
        #else
        let result = fdatasync(self.descriptor)
        #endif
        guard result == 0 else { throw POSIXFailure() }
    }

    /// Returns when a directory's names, or a file with its size, are on the disk.
    func synchronizeNames() throws(POSIXFailure) {
        // Some file systems can't synchronize a directory and report EINVAL.
        guard fsync(self.descriptor) == 0 || errno == EINVAL else { throw POSIXFailure() }
    }

    /// Takes an advisory lock, `LOCK_EX` or `LOCK_SH`, without waiting. Returns false if another process holds it.
    ///
    /// The kernel releases the lock when the process ends in any way.
    func lock(_ kind: Int32) throws(POSIXFailure) -> Bool {
        if flock(self.descriptor, kind | LOCK_NB) == 0 { return true }
        let failure = POSIXFailure()
        guard failure.number == EWOULDBLOCK else { throw failure }
        return false
    }

    /// Releases the lock. Closing the file is not enough: a child process that is just being started may have the file
    /// open, and the lock with it.
    func unlock() {
        flock(self.descriptor, LOCK_UN)
    }

    /// Returns a file's size in bytes, 0 if there is none.
    static func size(of path: String) -> Int {
        var status = stat()
        // The call fills the structure. The path is valid during the call.
        return unsafe stat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}
