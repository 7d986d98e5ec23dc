package import GatewayCore
import GatewayStorage

/// A directory in SQLite that can refuse, lose answers and be damaged. Replicas share it.
package final class TestDirectoryStore: DirectoryStore {
    private struct State {
        var database = TestDatabase(isShared: true)
        var refusesReads = false
        var refusesChanges = false
        var losesAnswers = false
        var reads = 0
    }

    private let state = Observed(State())
    private let willApply: @Sendable (Directory.Change) -> Void

    package init(willApply: @escaping @Sendable (Directory.Change) -> Void = { _ in }) {
        self.willApply = willApply
    }

    private var store: any DirectoryStore { self.state.current.database.directoryStore }

    package func refuseReads(_ refuses: Bool = true) { self.state.change { $0.refusesReads = refuses } }

    package func refuseChanges(_ refuses: Bool = true) { self.state.change { $0.refusesChanges = refuses } }

    /// Makes changes throw although they are stored, or succeed again.
    package func loseAnswers(_ loses: Bool = true) { self.state.change { $0.losesAnswers = loses } }

    /// Replaces the store with an empty one.
    package func failOver() { self.state.change { $0.database = TestDatabase(isShared: true) } }

    /// Breaks the seal of a tenant's row, or of the row of one of its keys.
    package func damage(_ tenant: TenantID, key: String? = nil) async throws {
        let database = self.state.current.database
        let row = key.map { "api_keys SET seal = x'00' WHERE id = '\($0)'" }
        try await database.execute("UPDATE \(row ?? "tenants SET seal = x'00' WHERE id = '\(tenant.text)'")")
        try await database.execute("UPDATE directory_version SET version = version + 1")
        try await database.execute(
            """
            UPDATE directory_changes SET version = (SELECT version FROM directory_version)
            WHERE tenant = '\(tenant.text)'
            """
        )
    }

    /// The number of reads by directories, including failed ones.
    package var reads: Int { self.state.current.reads }

    /// The stored directory, even while reads are refused.
    package func contents() async throws -> Directory.Contents { try await self.store.load() }

    /// Applies a change as an up-to-date replica does.
    package func apply(_ change: Directory.Change) async throws {
        let version = try await self.store.load().version
        guard try await self.store.apply(change, plannedAt: version) != nil else {
            throw SampleError(what: "change of a tenant that nothing else changes")
        }
    }

    package func load() async throws(GatewayError) -> Directory.Contents {
        try self.noteRead()
        return try await self.store.load()
    }

    package func changes(since seen: Directory.Version) async throws(GatewayError) -> Directory.News {
        try self.noteRead()
        return try await self.store.changes(since: seen)
    }

    package func apply(
        _ change: Directory.Change,
        plannedAt version: Directory.Version
    ) async throws(GatewayError) -> Directory.Contents? {
        self.willApply(change)
        guard !self.state.current.refusesChanges else { throw Self.unavailable }
        guard let contents = try await self.store.apply(change, plannedAt: version) else { return nil }
        guard !self.state.current.losesAnswers else {
            throw GatewayError(.storeUnavailable, "The answer is lost", cause: CommitOutcomeUnknown())
        }
        return contents
    }

    private func noteRead() throws(GatewayError) {
        let isRefused = self.state.change { state in
            state.reads += 1
            return state.refusesReads
        }
        if isRefused { throw Self.unavailable }
    }

    private static var unavailable: GatewayError {
        GatewayError(.storeUnavailable, "The directory refuses, as it was told to")
    }
}
