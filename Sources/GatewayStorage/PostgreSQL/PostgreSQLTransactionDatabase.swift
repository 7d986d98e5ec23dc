import GatewayCore
import NIOPosix
import Synchronization

/// One transaction of a PostgreSQL, for a command that changes all of the store or nothing: readers and writers of this
/// object see what it has written, nobody else does before ``commit()``.
///
/// It has one connection and one thread. It runs as the user who connects, who has to be the owner of the tables.
final class PostgreSQLTransactionDatabase: SQLDatabase {
    /// For a statement: to count a large table takes its time.
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

    /// Connects, and begins the transaction.
    ///
    /// Throws `invalid` for a schema that is not this version's, `storeUnavailable` otherwise.
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

    /// Commits, and ends the connection.
    ///
    /// Throws `storeUnavailable`; then nothing was written, unless the cause is a ``CommitOutcomeUnknown``.
    func commit() async throws(GatewayError) {
        try await self.run { place in
            let session = try Self.open(place)
            defer { place = nil }
            do {
                // A transaction whose failed statement nobody noticed is answered by ROLLBACK.
                guard try session.answers([("COMMIT", [])]).last?.last?.isCommand("COMMIT") == true else {
                    throw PostgreSQLError(.unsupported, "a failed transaction was to be committed")
                }
            } catch let error as PostgreSQLError where error.endsConnection {
                throw GatewayError(
                    .storeUnavailable,
                    "The answer to COMMIT was lost: either all is there or nothing",
                    cause: CommitOutcomeUnknown()
                )
            }
        }
    }

    /// Ends the connection, and the transaction with it, if it is not committed.
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
