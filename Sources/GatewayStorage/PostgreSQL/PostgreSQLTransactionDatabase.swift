import GatewayCore
import NIOPosix
import Synchronization

/// One transaction in PostgreSQL, for a command that changes the whole store or nothing. This object's readers and
/// writers see its changes; other sessions see them only after ``commit()``.
///
/// It has one connection and one thread. It runs as the connecting user, which must own the tables.
final class PostgreSQLTransactionDatabase: SQLDatabase {
    /// For a statement, such as counting a large table.
    private static let timeout = Duration.seconds(600)

    private let settings: PostgreSQLSettings
    private let session = Mutex<PostgreSQLSession?>(nil)
    private let thread = NIOThreadPool(numberOfThreads: 1)

    var isShared: Bool { false }

    init(_ settings: PostgreSQLSettings) {
        var settings = settings
        (settings.callTimeout, settings.scanTimeout) = (Self.timeout, Self.timeout)
        self.settings = settings
        self.thread.start()
    }

    deinit {
        self.thread.shutdownGracefully { _ in }
    }

    /// Connects and begins the transaction.
    ///
    /// Throws `invalid` if this version can't serve the schema, `storeUnavailable` otherwise.
    func begin() async throws(GatewayError) {
        let settings = self.settings
        try await self.run { place in
            let session = try PostgreSQLSession(settings)
            let state = try PostgreSQLSchema.state(session)
            if let refusal = PostgreSQLSchema.refusal(of: state) { throw refusal }
            try session.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            place = session
        }
    }

    /// Commits and closes the connection.
    ///
    /// Throws `storeUnavailable`. Then nothing was written, unless the cause is a ``CommitOutcomeUnknown``.
    func commit() async throws(GatewayError) {
        try await self.run { place in
            let session = try Self.open(place)
            defer { place = nil }
            do {
                // PostgreSQL answers COMMIT with ROLLBACK if a caller has ignored a failed statement.
                guard try session.answers([("COMMIT", [])]).last?.last?.isCommand("COMMIT") == true else {
                    throw PostgreSQLError(.unsupported, "the transaction had failed before its COMMIT")
                }
            } catch let error as PostgreSQLError where error.endsConnection {
                throw GatewayError(
                    .storeUnavailable,
                    "The answer to COMMIT was lost: either all of it was stored, or nothing",
                    cause: CommitOutcomeUnknown()
                )
            }
        }
    }

    /// Closes the connection. A transaction that is not committed is rolled back.
    func close() async {
        try? await self.run { $0 = nil }
    }

    func read<T: Sendable>(
        _ load: SQLLoad,
        scope: SQLScope,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.run { try body(PostgreSQLConnection(session: Self.open($0))) }
    }

    func write<T: Sendable>(
        scope: SQLScope,
        isolation: SQLIsolation,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.run { try body(PostgreSQLConnection(session: Self.open($0))) }
    }

    func isLeader() async throws(GatewayError) -> Bool { false }

    func resignLead() async {}

    func whenNotified(_ observer: @escaping @Sendable () -> Void) {}

    func eraseDeleted() async {}

    private static func open(_ session: PostgreSQLSession?) throws -> PostgreSQLSession {
        guard let session else { throw GatewayError(.storeUnavailable, "The transaction has ended") }
        return session
    }

    private func run<T: Sendable>(
        _ body: @escaping @Sendable (inout PostgreSQLSession?) throws -> T
    ) async throws(GatewayError) -> T {
        do {
            return try await self.thread.runIfActive { try self.session.withLock { try body(&$0) } }
        } catch {
            throw GatewayError(translatingPostgreSQL: error)
        }
    }
}
