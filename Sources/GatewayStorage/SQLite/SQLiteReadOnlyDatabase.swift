import Foundation
import GRDB
package import GatewayCore

/// A store opened for reading, also while a process serves it. Never creates, migrates or changes it.
package final class SQLiteReadOnlyDatabase: SQLDatabase {
    /// A process began to write while the store was read without locks, so what was read does not count. Opening the
    /// store again reads it with locks.
    package struct ServedMeanwhile: Error {}

    private static let maxFaults = 5

    private let file: StoreFile
    private let queue: DatabaseQueue
    /// The file's stamp when it was opened, if it is read without locks.
    private let stamp: StoreFile.Stamp?

    package var isShared: Bool { false }

    package func isLeader() async throws(GatewayError) -> Bool { false }

    package func resignLead() async {}

    package func whenNotified(_ observer: @escaping @Sendable () -> Void) {}

    /// Opens a store for reading. Blocks.
    ///
    /// - Throws: `notFound` if there is no file or it is empty, `invalid` if it is not a gateway's store or a later
    ///   version wrote it, `storeUnavailable` otherwise.
    package init(path: String) throws(GatewayError) {
        self.file = StoreFile(path)
        guard let stamp = self.file.stamp else {
            throw GatewayError(.notFound, "There is no store at \(self.file.path)")
        }
        do {
            if !stamp.hasWriteAheadLog, let queue = try Self.openUnlocked(self.file) {
                self.queue = queue
                self.stamp = stamp
            } else {
                self.queue = try DatabaseQueue(path: self.file.path, configuration: Self.configuration())
                self.stamp = nil
            }
            try self.queue.read { db in
                try SQLiteSchema.requireKnown(db)
                try SQLiteSchema.requireTables(db)
            }
        } catch {
            throw GatewayError(translating: error)
        }
    }

    /// Closes the file. Throws `storeUnavailable` while something reads.
    package func close() throws(GatewayError) {
        do {
            try self.queue.close()
        } catch {
            throw GatewayError(translating: error)
        }
    }

    package func read<T: Sendable>(
        _ load: SQLLoad,
        scope: SQLScope,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.inspect { try body(GRDBConnection(db: $0)) }
    }

    package func write<T: Sendable>(
        scope: SQLScope,
        isolation: SQLIsolation,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        throw GatewayError(.storeUnavailable, "The store is open for reading only")
    }

    package func eraseDeleted() async {}

    /// The last step taken of the schema's history, and true if that is this version's last.
    package func schema() async throws(GatewayError) -> (name: String, isCurrent: Bool) {
        try await self.inspect { db in
            let name = try SQLiteSchema.migrator.appliedIdentifiers(db).max() ?? "none"
            return (name, try SQLiteSchema.migrator.hasCompletedMigrations(db))
        }
    }

    /// A few faults that SQLite finds in the file's structure. Takes as long as reading the file.
    package func faults() async throws(GatewayError) -> [String] {
        try await self.inspect { db in
            try String.fetchAll(db, sql: "PRAGMA quick_check(\(Self.maxFaults))").filter { $0 != "ok" }
        }
    }

    private func inspect<T: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> T
    ) async throws(GatewayError) -> T {
        let result: Result<T, GatewayError>
        do {
            result = .success(try await self.queue.read(body))
        } catch {
            result = .failure(GatewayError(translating: error))
        }
        // Without locks, a read counts only if no process has begun to write.
        if let stamp = self.stamp, self.file.stamp != stamp {
            throw GatewayError(
                .storeUnavailable,
                "A process began to serve the store while it was read; try again",
                cause: ServedMeanwhile()
            )
        }
        return try result.get()
    }

    /// Opens a file that no process writes, without the files that SQLite's locks need. So the directory may be
    /// read-only, and nothing is left behind. Returns `nil` if this build of SQLite accepts no URIs.
    private static func openUnlocked(_ file: StoreFile) throws -> DatabaseQueue? {
        let takesURIs = try DatabaseQueue()
            .read { db in
                try String.fetchAll(db, sql: "PRAGMA compile_options").contains("USE_URI")
            }
        guard takesURIs else { return nil }
        let name = URL(fileURLWithPath: file.path).absoluteString + "?immutable=1"
        return try DatabaseQueue(path: name, configuration: Self.configuration())
    }

    private static func configuration() -> Configuration {
        var configuration = Configuration()
        configuration.label = "fcm-gateway.store.reader"
        configuration.readonly = true
        configuration.busyMode = .timeout(2)
        configuration.prepareDatabase { try SQLiteSchema.requireOursOrEmpty($0) }
        return configuration
    }
}
