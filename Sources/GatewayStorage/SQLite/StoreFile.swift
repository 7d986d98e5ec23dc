import Foundation
package import GatewayCore
import Synchronization

/// A database file by its real path, so that two names of one file have one lock.
struct StoreFile: Sendable, Hashable {
    /// What a file looks like while nobody writes to it.
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

    /// Where SQLite gathers changes before it moves them into the file; it exists while a process has the file open
    /// for writing, and after one was killed.
    var writeAheadLogPath: String { self.path + "-wal" }

    var exists: Bool { FileManager.default.fileExists(atPath: self.path) }

    var hasWriteAheadLog: Bool { FileManager.default.fileExists(atPath: self.writeAheadLogPath) }

    /// `nil` when the file is not there.
    var stamp: Stamp? {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: self.path),
            let size = attributes[.size] as? NSNumber,
            let modified = attributes[.modificationDate] as? Date
        else { return nil }
        return Stamp(size: size.intValue, modified: modified, hasWriteAheadLog: self.hasWriteAheadLog)
    }

    /// Tells the file from a copy of it that takes its place.
    var origin: String {
        let attributes = try? FileManager.default.attributesOfItem(atPath: self.path)
        return "\((attributes?[.systemFileNumber] as? NSNumber)?.uint64Value ?? 0)"
    }

    /// Makes the file's directory, readable by its owner alone; one that is there is left as it is.
    func makeDirectory() throws(GatewayError) {
        let directory = URL(fileURLWithPath: self.path).deletingLastPathComponent().path
        try POSIXFailure.explained("The directory \(directory) can't be made") {
            try POSIXFile.makeDirectory(directory)
        }
    }

    /// Makes an empty file that only its owner can read; one that is there is left as it is.
    ///
    /// SQLite gives the files beside it the same permissions.
    func makeFile() throws(GatewayError) {
        do {
            try POSIXFile(self.path, O_RDWR | O_CREAT | O_EXCL).release()
        } catch {
            guard error.number == EEXIST else {
                throw GatewayError(.storeUnavailable, "The store's file can't be made: \(self.path)", cause: error)
            }
        }
    }

    /// Takes away what others than the owner may do with the file and those beside it.
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

/// Says that a process serves a database: an advisory lock on a file beside it.
///
/// The file itself stays, because removing it could leave two processes with a lock each.
package final class StoreLock: Sendable {
    /// A reader asks by taking the lock for an instant; a start that meets it asks again before it gives up.
    private static let attempts = 10
    private static let pauseMicroseconds: UInt32 = 10_000

    /// The bound on what the holder of a lock tells of itself.
    package static let maxAnnouncementBytes = 256

    private let file: Mutex<POSIXFile?>

    /// Takes the lock of a database; blocks for up to a tenth of a second.
    ///
    /// - Throws: `conflict` when another process, or another part of this one, serves the database; `storeUnavailable`
    ///   when the lock's file can't be made.
    package init(at path: String) throws(GatewayError) {
        let (store, path) = (StoreFile(path).path, StoreFile(path).lockPath)
        let file = try POSIXFailure.explained("The store's lock can't be made: \(path)") {
            try POSIXFile(path, O_RDWR | O_CREAT)
        }
        self.file = Mutex(file)
        for attempt in 1...Self.attempts {
            if try POSIXFailure.explained("The store can't be locked: \(path)", { try file.lock(LOCK_EX) }) {
                // What an earlier holder said of itself is no longer true.
                try? file.cut(to: 0)
                return
            }
            if attempt < Self.attempts { usleep(Self.pauseMicroseconds) }
        }
        throw GatewayError(.conflict, "Another gateway process serves this store: \(store)")
    }

    /// Takes the lock of a data directory, whose store is a server's; makes the directory where it is missing.
    ///
    /// Replicas share a store, but never the files beside it.
    package convenience init(ofDirectory directory: String) throws(GatewayError) {
        try StoreFile(Self.path(inDirectory: directory)).makeDirectory()
        try self.init(at: Self.path(inDirectory: directory))
    }

    /// What the lock of a data directory stands beside.
    package static func path(inDirectory directory: String) -> String { directory + "/gateway" }

    deinit {
        self.release()
    }

    /// Gives the lock back; a second call does nothing.
    package func release() {
        let file = self.file.withLock { file in
            defer { file = nil }
            return file
        }
        file?.unlock()
        file?.release()
    }

    /// Leaves a text of at most ``maxAnnouncementBytes`` bytes for other processes, for as long as the lock is held.
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

    /// The text of the process that holds a database's lock; `nil` without either.
    package static func announcement(at path: String) throws(GatewayError) -> String? {
        guard try self.isHeld(at: path) else { return nil }
        guard let file = try? POSIXFile(StoreFile(path).lockPath, O_RDONLY) else { return nil }
        defer { file.release() }
        guard let bytes = try? file.read(at: 0, count: Self.maxAnnouncementBytes), !bytes.isEmpty else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether a process serves a database at this moment; does not hinder it.
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
        // Shared, so that two readers that ask at once don't take each other for a server.
        return try !POSIXFailure.explained("The store's lock can't be asked: \(path)") { try file.lock(LOCK_SH) }
    }
}
