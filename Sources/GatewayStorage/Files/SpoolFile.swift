import Foundation
package import GatewayCore
import NIOPosix

/// A file of a spool that belongs to one process, and that only its owner can read.
package final class SpoolFile: AuditSpoolFile {
    /// The file's name in its directory.
    package static let name = "audit.spool"

    private let path: String
    private let file: POSIXFile

    /// Opens a spool, and makes it and its directory where they are not there; blocks.
    ///
    /// - Throws: `conflict` when another process has it open, `storeUnavailable` when it can't be made.
    package init(in directory: String) throws(GatewayError) {
        let path = "\(directory)/\(Self.name)"
        try StoreFile(path).makeDirectory()
        self.path = path
        let file = try POSIXFailure.explained("\(path) can't be made") { try POSIXFile(path, O_RDWR | O_CREAT) }
        self.file = file
        guard try POSIXFailure.explained("\(path) can't be locked", { try file.lock(LOCK_EX) }) else {
            throw GatewayError(.conflict, "Another gateway process uses the audit's spool \(path)")
        }
        try POSIXFailure.explained("\(path) can't be restricted to its owner") { try file.restrictPermissions() }
        // Without this the power may take the file with all that was written to it.
        try Self.synchronize(path: directory)
    }

    /// Opens a spool to look at it, whether or not a process uses it; `nil` where there is none. Blocks.
    package init?(reading directory: String) throws(GatewayError) {
        let path = "\(directory)/\(Self.name)"
        let file: POSIXFile
        do {
            file = try POSIXFile(path, O_RDONLY)
        } catch {
            if error.number == ENOENT { return nil }
            throw GatewayError(.storeUnavailable, "\(path) can't be read", cause: error)
        }
        (self.path, self.file) = (path, file)
    }

    deinit {
        self.file.unlock()
        self.file.release()
    }

    package func size() async throws(GatewayError) -> Int {
        try await self.blocking("can't be read") { try self.file.size() }
    }

    package func read(at offset: Int, count: Int) async throws(GatewayError) -> [UInt8] {
        try await self.blocking("can't be read") { try self.file.read(at: offset, count: count) }
    }

    /// Writes bytes from an offset on and returns when they are on the disk.
    ///
    /// - Throws: `storeUnavailable`; then there may be something behind the offset, which is to be dropped.
    package func write(_ bytes: [UInt8], at offset: Int) async throws(GatewayError) {
        try await self.blocking("can't be written") {
            do {
                try self.file.write(bytes, at: offset)
                try self.file.synchronize()
            } catch {
                // Half a batch takes room that a full disk may need. Where this fails too, the caller tries it again.
                try? self.file.cut(to: offset)
                throw error
            }
        }
    }

    package func cut(to size: Int) async throws(GatewayError) {
        try await self.blocking("can't be emptied") { try self.file.cut(to: size) }
    }

    /// Moves the content to a file beside it, for an operator to look at, and goes on with an empty one.
    ///
    /// - Returns: where the content is now.
    package func setAside(_ suffix: String) async throws(GatewayError) -> String {
        let copy = "\(self.path).\(suffix)"
        try await self.blocking("can't be put aside") {
            // A copy, since a new file would need a lock of its own, between which another process might come.
            try? FileManager.default.removeItem(atPath: copy)
            try FileManager.default.copyItem(atPath: self.path, toPath: copy)
            // On the disk before the original is gone.
            try Self.synchronize(path: copy)
            try Self.synchronize(path: URL(filePath: copy).deletingLastPathComponent().path)
            try POSIXFailure.explained("\(self.path) can't be emptied") { try self.file.cut(to: 0) }
        }
        return copy
    }

    private static func synchronize(path: String) throws(GatewayError) {
        let file = try POSIXFailure.explained("\(path) can't be opened") { try POSIXFile(path, O_RDONLY) }
        defer { file.release() }
        try POSIXFailure.explained("\(path) can't be written") { try file.synchronizeNames() }
    }

    private func blocking<Value: Sendable>(
        _ what: String,
        _ body: @escaping @Sendable () throws -> Value
    ) async throws(GatewayError) -> Value {
        do {
            return try await NIOThreadPool.singleton.runIfActive(body)
        } catch {
            throw error as? GatewayError ?? GatewayError(.storeUnavailable, "\(self.path) \(what)", cause: error)
        }
    }
}
