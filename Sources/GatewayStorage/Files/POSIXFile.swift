import Foundation
import GatewayCore

/// The error number that a system call left.
struct POSIXFailure: Error, Hashable, CustomStringConvertible {
    let number: Int32

    /// The number of the call that failed just now on this thread.
    init() {
        self.number = errno
    }

    /// The system's words, such as `Permission denied`.
    var description: String {
        // The text belongs to the system and is copied at once.
        unsafe String(cString: strerror(self.number))
    }

    /// Says in words that something can't be done, and by what failure, as `storeUnavailable`.
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

/// An open file; its calls block.
struct POSIXFile: Sendable {
    private let descriptor: Int32

    /// Opens a file; one that is made by that can be read by its owner alone.
    init(_ path: String, _ flags: Int32) throws(POSIXFailure) {
        // POSIX takes the path as a pointer, valid during the call.
        self.descriptor = unsafe open(path, flags | O_CLOEXEC, 0o600)
        guard self.descriptor >= 0 else { throw POSIXFailure() }
    }

    /// Closes the file; whether all that was written had room.
    @discardableResult
    func release() -> Bool { close(self.descriptor) == 0 }

    func size() throws(POSIXFailure) -> Int {
        let size = lseek(self.descriptor, 0, SEEK_END)
        guard size >= 0 else { throw POSIXFailure() }
        return Int(size)
    }

    /// The bytes from an offset on that are there; others need no room, whatever their number claims to be.
    func read(at offset: Int, count: Int) throws(POSIXFailure) -> [UInt8] {
        let size = try self.size()
        var bytes = [UInt8](repeating: 0, count: max(0, min(count, size - offset)))
        var done = 0
        while done < bytes.count {
            // POSIX fills in the part of the bytes that is left.
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
            // POSIX reads bytes of ours.
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

    /// Makes a directory, and those above it, for its owner alone; one that is there is left as it is.
    static func makeDirectory(_ path: String) throws(POSIXFailure) {
        // POSIX takes the path as a pointer, valid during the call.
        if unsafe mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        let (failure, parent) = (POSIXFailure(), URL(filePath: path).deletingLastPathComponent().path)
        guard failure.number == ENOENT, parent != path else { throw failure }
        try self.makeDirectory(parent)
        if unsafe mkdir(path, 0o700) != 0, errno != EEXIST { throw POSIXFailure() }
    }

    /// Takes away what others than the owner may do with the file.
    func restrictPermissions() throws(POSIXFailure) {
        guard fchmod(self.descriptor, 0o600) == 0 else { throw POSIXFailure() }
    }

    /// Has the content written to the disk.
    func synchronize() throws(POSIXFailure) {
        #if canImport(Darwin)
        let result = fcntl(self.descriptor, F_FULLFSYNC)
        #else
        let result = fdatasync(self.descriptor)
        #endif
        guard result == 0 else { throw POSIXFailure() }
    }

    /// Has a directory's names, or a file, written to the disk.
    func synchronizeNames() throws(POSIXFailure) {
        // Some file systems have nothing to synchronize in a directory, and say so.
        guard fsync(self.descriptor) == 0 || errno == EINVAL else { throw POSIXFailure() }
    }

    /// Takes an advisory lock, `LOCK_EX` or `LOCK_SH`, if it is to be had at once; whether it was.
    ///
    /// The kernel releases it when the process ends, however it ends.
    func lock(_ kind: Int32) throws(POSIXFailure) -> Bool {
        if flock(self.descriptor, kind | LOCK_NB) == 0 { return true }
        let failure = POSIXFailure()
        guard failure.number == EWOULDBLOCK else { throw failure }
        return false
    }

    /// Gives the lock back: a program that is just being started may have the file open for a moment, and with it the
    /// lock, also when this one has closed it.
    func unlock() {
        flock(self.descriptor, LOCK_UN)
    }

    /// A file's size in bytes; 0 where there is none.
    static func size(of path: String) -> Int {
        var status = stat()
        // The call fills the structure it is handed; the path is valid during the call.
        return unsafe stat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}
