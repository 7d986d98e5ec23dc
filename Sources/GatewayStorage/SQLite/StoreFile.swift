import Foundation
package import GatewayCore
import Synchronization

/// A database file by its real path, so that two names of one file share one lock.
struct StoreFile: Sendable, Hashable {
    /// Properties of a file that change when a process writes to it.
    struct Stamp: Hashable {
        let size: Int
        let modified: Date
        let hasWriteAheadLog: Bool
    }

    let path: String

    init(_ path: String) {
        self.path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    }

    var lockPath: String { self.path + ".lock" }

    /// SQLite collects changes here before it moves them into the file. It exists while a process has the file open for
    /// writing, and after such a process was killed.
    var writeAheadLogPath: String { self.path + "-wal" }

    var exists: Bool { FileManager.default.fileExists(atPath: self.path) }

    var hasWriteAheadLog: Bool { FileManager.default.fileExists(atPath: self.writeAheadLogPath) }

    /// `nil` if the file does not exist.
    var stamp: Stamp? {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: self.path),
            let size = attributes[.size] as? NSNumber,
            let modified = attributes[.modificationDate] as? Date
        else { return nil }
        return Stamp(size: size.intValue, modified: modified, hasWriteAheadLog: self.hasWriteAheadLog)
    }

    /// The file's number, which tells it from a copy that takes its place.
    var origin: String {
        let attributes = try? FileManager.default.attributesOfItem(atPath: self.path)
        return "\((attributes?[.systemFileNumber] as? NSNumber)?.uint64Value ?? 0)"
    }

    /// Creates the file's directory, readable by its owner alone. An existing directory keeps its permissions.
    func makeDirectory() throws(GatewayError) {
        let directory = URL(fileURLWithPath: self.path).deletingLastPathComponent().path
        try POSIXFailure.explained("The directory \(directory) can't be made") {
            try POSIXFile.makeDirectory(directory)
        }
    }

    /// Creates an empty file that only its owner can read. An existing file is left unchanged.
    ///
    /// SQLite gives the files beside it the same permissions.
    func makeFile() throws(GatewayError) {
        do {
            try POSIXFile(self.path, O_RDWR | O_CREAT | O_EXCL).release()
        } catch {
            guard error.number == EEXIST else {
                throw GatewayError(.storeUnavailable, "The store's file can't be created: \(self.path)", cause: error)
            }
        }
    }

    /// Withdraws the permissions of everyone but the owner from the file and those beside it.
    func restrictPermissions() throws(GatewayError) {
        for path in [self.path, self.writeAheadLogPath, self.path + "-shm"] {
            // POSIX takes the path as a pointer, valid during the call.
            if unsafe chmod(path, 0o600) != 0, errno != ENOENT {
                let failure = POSIXFailure()
                throw GatewayError(.storeUnavailable, "The store's permissions can't be set: \(path)", cause: failure)
            }
        }
    }
}

/// Marks a database as served by one process: an advisory lock on a file beside it.
///
/// The lock's file is never removed, because two processes could then hold a lock each.
package final class StoreLock: Sendable {
    /// ``isHeld(at:)`` takes the lock for an instant. A start that meets it tries again before it gives up.
    private static let attempts = 10
    private static let pauseMicroseconds: UInt32 = 10_000

    /// The longest announcement of a lock's holder.
    package static let maxAnnouncementBytes = 256

    private let file: Mutex<POSIXFile?>

    /// Takes the lock of a database. Blocks for up to a tenth of a second.
    ///
    /// - Throws: `conflict` if another process, or another part of this one, serves the database; `storeUnavailable` if
    ///   the lock's file can't be created.
    package init(at path: String) throws(GatewayError) {
        let (store, path) = (StoreFile(path).path, StoreFile(path).lockPath)
        let file = try POSIXFailure.explained("The store's lock can't be created: \(path)") {
            try POSIXFile(path, O_RDWR | O_CREAT)
        }
        self.file = Mutex(file)
        for attempt in 1...Self.attempts {
            if try POSIXFailure.explained("The store can't be locked: \(path)", { try file.lock(LOCK_EX) }) {
                // An earlier holder's announcement no longer holds.
                try? file.cut(to: 0)
                return
            }
            if attempt < Self.attempts { usleep(Self.pauseMicroseconds) }
        }
        throw GatewayError(.conflict, "Another gateway process serves this store: \(store)")
    }

    /// Takes the lock of a data directory whose store is on a server. Creates a missing directory.
    ///
    /// Replicas share a store, but never the files beside it.
    package convenience init(ofDirectory directory: String) throws(GatewayError) {
        try StoreFile(Self.path(inDirectory: directory)).makeDirectory()
        try self.init(at: Self.path(inDirectory: directory))
    }

    /// The path beside which a data directory's lock is.
    package static func path(inDirectory directory: String) -> String { directory + "/gateway" }

    deinit {
        self.release()
    }

    /// Releases the lock. A second call does nothing.
    package func release() {
        let file = self.file.withLock { file in
            defer { file = nil }
            return file
        }
        file?.unlock()
        file?.release()
    }

    /// Publishes a text of at most ``maxAnnouncementBytes`` bytes for other processes, for as long as the lock is held.
    package func announce(_ text: String) throws(GatewayError) {
        let bytes = Array(text.utf8)
        precondition(bytes.count <= Self.maxAnnouncementBytes, "\(bytes.count) bytes")
        try POSIXFailure.explained("The store's lock can't be written") {
            try self.file.withLock { file in
                guard let file else { throw POSIXFailure() }
                try file.cut(to: 0)
                try file.write(bytes, at: 0)
            }
        }
    }

    /// The announcement of the process that holds a database's lock, or `nil`.
    package static func announcement(at path: String) throws(GatewayError) -> String? {
        guard try self.isHeld(at: path) else { return nil }
        guard let file = try? POSIXFile(StoreFile(path).lockPath, O_RDONLY) else { return nil }
        defer { file.release() }
        guard let bytes = try? file.read(at: 0, count: Self.maxAnnouncementBytes), !bytes.isEmpty else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns true if a process serves the database at this moment. Does not disturb it.
    package static func isHeld(at path: String) throws(GatewayError) -> Bool {
        let path = StoreFile(path).lockPath
        let file: POSIXFile
        do {
            file = try POSIXFile(path, O_RDONLY)
        } catch {
            if error.number == ENOENT { return false }
            throw GatewayError(.storeUnavailable, "The store's lock can't be read: \(path)", cause: error)
        }
        defer { file.release() }
        // A shared lock, so that two readers that ask at once don't take each other for a server.
        return try !POSIXFailure.explained("The store's lock can't be tested: \(path)") { try file.lock(LOCK_SH) }
    }
}
