import Foundation
import GRDB
package import GatewayCore

/// A store open for looking only, whether or not a process serves it; never makes, migrates or changes it.
package final class SQLiteReadOnlyDatabase: SQLDatabase {
    /// Why what was read without locks does not count; the store is to be opened anew, and is read with locks then.
    package struct ServedMeanwhile: Error {}

    private static let maxFaults = 5

    private let file: StoreFile
    private let queue: DatabaseQueue
    /// What the file looked like when it was opened, if it is read without locks.
    private let stamp: StoreFile.Stamp?

    package var isShared: Bool { false }

    package func isLeader() async throws(GatewayError) -> Bool { false }

    package func resignLead() async {}

    package func whenNotified(_ observer: @escaping @Sendable () -> Void) {}

    /// Opens a store for looking; blocks.
    ///
    /// - Throws: `notFound` when there is no file or it holds nothing yet, `invalid` when it is not a gateway's store or one
    ///   of a later version, `storeUnavailable` otherwise.
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

    /// Closes the file; `storeUnavailable` while something still reads.
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

    /// The newest step of the schema's history that was taken, and whether that is this version's newest.
    package func schema() async throws(GatewayError) -> (name: String, isCurrent: Bool) {
        try await self.inspect { db in
            let name = try SQLiteSchema.migrator.appliedIdentifiers(db).max() ?? "none"
            return (name, try SQLiteSchema.migrator.hasCompletedMigrations(db))
        }
    }

    /// A few of the faults that SQLite finds in the file's structure; takes as long as reading it.
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
        // Without locks, what was read counts only if nobody has begun to write.
        if let stamp = self.stamp, self.file.stamp != stamp {
            throw GatewayError(
                .storeUnavailable,
                "A process began to serve the store while it was read; try again",
                cause: ServedMeanwhile()
            )
        }
        return try result.get()
    }

    /// Opens a file that nobody writes without making the files that SQLite's locks need, so that it can lie in a
    /// directory that can't be written and nothing is left behind; `nil` where this build of SQLite takes no such names.
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
