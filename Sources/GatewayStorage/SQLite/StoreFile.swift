import Foundation
import GatewayCore

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
