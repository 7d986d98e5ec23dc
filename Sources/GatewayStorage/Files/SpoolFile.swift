import Foundation
package import GatewayCore
import NIOPosix

/// The file of an audit spool. One process uses it, and only its owner can read it.
package final class SpoolFile: AuditSpoolFile {
    /// The file's name in its directory.
    package static let name = "audit.spool"

    private let path: String
    private let file: POSIXFile

    /// Opens a spool, and creates it and its directory if they don't exist. Blocks.
    ///
    /// - Throws: `conflict` if another process uses it, `storeUnavailable` if it can't be created.
    package init(in directory: String) throws(GatewayError) {
        let path = "\(directory)/\(Self.name)"
        try StoreFile(path).makeDirectory()
        self.path = path
        let file = try POSIXFailure.explained("\(path) can't be created") { try POSIXFile(path, O_RDWR | O_CREAT) }
        self.file = file
        guard try POSIXFailure.explained("\(path) can't be locked", { try file.lock(LOCK_EX) }) else {
            throw GatewayError(.conflict, "Another gateway process uses the audit's spool \(path)")
        }
        try POSIXFailure.explained("\(path) can't be restricted to its owner") { try file.restrictPermissions() }
        // Without this, a power failure could lose the file and all records in it.
        try Self.synchronize(path: directory)
    }

    /// Opens a spool for reading, also while a process uses it. Returns `nil` if there is none. Blocks.
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

    /// Writes bytes at an offset. Returns when they are on the disk.
    ///
    /// - Throws: `storeUnavailable`. The file may then hold a part of the bytes behind the offset, which the caller
    ///   drops.
    package func write(_ bytes: [UInt8], at offset: Int) async throws(GatewayError) {
        try await self.blocking("can't be written") {
            do {
                try self.file.write(bytes, at: offset)
                try self.file.synchronize()
            } catch {
                // Half a batch takes room that a full disk may need. If this fails too, the caller tries again.
                try? self.file.cut(to: offset)
                throw error
            }
        }
    }

    package func cut(to size: Int) async throws(GatewayError) {
        try await self.blocking("can't be emptied") { try self.file.cut(to: size) }
    }

    /// Copies the content to a file beside this one, for an operator to examine, and empties this one.
    ///
    /// - Returns: the path of the copy.
    package func setAside(_ suffix: String) async throws(GatewayError) -> String {
        let copy = "\(self.path).\(suffix)"
        try await self.blocking("can't be set aside") {
            // A copy keeps the lock. A new file would need another lock, and another process might take it first.
            try? FileManager.default.removeItem(atPath: copy)
            try FileManager.default.copyItem(atPath: self.path, toPath: copy)
            // The copy reaches the disk before the original is emptied.
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
