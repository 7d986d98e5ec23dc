package import GatewayCore

/// PostgreSQL through libpq.
///
/// Closures run on a pool of connections, each with its own thread. Replicas that share the database also hold one
/// lasting connection (``PostgreSQLWatcher``).
package final class PostgreSQLDatabase: SQLDatabase {
    /// Consecutive attempts that a server refuses before the refusal is final.
    private static let maxRefusals = 3

    private let pool: PostgreSQLPool
    private let watcher: PostgreSQLWatcher
    private let scanGate = ScanGate()
    private let settings: PostgreSQLSettings
    private let metrics: StoreMetrics?

    /// Opens a database whose schema this version can serve, or migrates it first.
    ///
    /// Waits for a server that does not answer yet (decision 0044), and reports why after the first attempt.
    ///
    /// - Throws: `invalid` if this version can't serve beside the one that wrote the schema, `storeUnavailable`
    ///   otherwise.
    package convenience init(
        _ settings: PostgreSQLSettings,
        migrates: Bool = false,
        metrics: GatewayMetrics? = nil,
        whenUnreachable: (@Sendable (_ reason: String) -> Void)? = nil
    ) async throws(GatewayError) {
        self.init(unchecked: settings, metrics: metrics)
        do throws(GatewayError) {
            try await self.awaitServer(whenUnreachable)
            if migrates { _ = try await self.migrate() }
            if let refusal = PostgreSQLSchema.refusal(of: try await self.schema()) { throw refusal }
        } catch {
            self.close()
            throw error
        }
    }

    private init(unchecked settings: PostgreSQLSettings, metrics: GatewayMetrics?) {
        self.settings = settings
        self.metrics = metrics.map { StoreMetrics(store: "postgresql", $0) }
        let ownMetrics = metrics.map { PostgreSQLMetrics($0) }
        self.pool = PostgreSQLPool(settings, metrics: ownMetrics)
        self.watcher = PostgreSQLWatcher(settings, metrics: ownMetrics)
    }

    deinit {
        // The watcher's thread would run on otherwise. Does nothing after `close()`.
        self.watcher.stop()
    }

    /// Migrates a database's schema, as its owner.
    ///
    /// Returns the names of the steps taken. Throws `invalid` if this version can't serve beside the one that wrote the
    /// schema, `storeUnavailable` otherwise.
    package static func migrate(
        _ settings: PostgreSQLSettings,
        whenUnreachable: (@Sendable (_ reason: String) -> Void)? = nil
    ) async throws(GatewayError) -> [String] {
        var settings = settings
        settings.poolSize = 4
        let database = PostgreSQLDatabase(unchecked: settings, metrics: nil)
        defer { database.close() }
        try await database.awaitServer(whenUnreachable)
        return try await database.migrate()
    }

    /// Closes all connections after running calls have ended. Blocks.
    package func close() {
        self.watcher.close()
        self.pool.close()
    }

    package var isShared: Bool { true }

    package func isLeader() async throws(GatewayError) -> Bool { try await self.watcher.ask(.lead) }

    package func resignLead() async { await self.watcher.resign() }

    package func whenNotified(_ observer: @escaping @Sendable () -> Void) { self.watcher.observe(observer) }

    /// Waits up to the outage timeout for a server that does not answer. A server that answers and refuses is not
    /// waited for.
    private func awaitServer(
        _ whenUnreachable: (@Sendable (_ reason: String) -> Void)? = nil
    ) async throws(GatewayError) {
        let (settings, end) = (self.settings, Uptime.now + self.settings.outageTimeout)
        var refusals = 0
        var tellReason = whenUnreachable
        while true {
            let tell = tellReason
            tellReason = nil
            let (failure, isAnswering) = try await self.translated {
                try await self.pool.run(.call) { place -> (PostgreSQLError?, Bool) in
                    do {
                        _ = try place.connect()
                        return (nil, true)
                    } catch let error as PostgreSQLError where error.kind == .disconnected {
                        tell?(error.message)
                        return (error, PostgreSQLPool.isAnswering(settings))
                    }
                }
            }
            guard let failure else { return }
            // The server may have started between the attempt and the check.
            refusals = isAnswering ? refusals + 1 : 0
            guard refusals < Self.maxRefusals, Uptime.now < end else {
                throw GatewayError(.storeUnavailable, "The store can't be reached: \(failure.message)")
            }
            do {
                try await Task.sleep(for: .milliseconds(500))
            } catch {
                throw GatewayError(translatingPostgreSQL: error)
            }
        }
    }

    private func migrate() async throws(GatewayError) -> [String] {
        try await self.translated {
            try await self.pool.run(.call) { place in
                let session = try place.connect()
                // A migration's session has other timeouts than a request's.
                defer { place.drop() }
                return try PostgreSQLSchema.migrate(session)
            }
        }
    }

    /// Reads the state of the schema. Needs no rights but CONNECT.
    package func schema() async throws(GatewayError) -> PostgreSQLSchema.State {
        try await self.translated {
            try await self.pool.run(.call) { place in try PostgreSQLSchema.state(try place.connect()) }
        }
    }

    package func read<T: Sendable>(
        _ load: SQLLoad,
        scope: SQLScope,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        switch load {
        case .lookUp:
            return try await self.read(.call, .read, scope, self.settings.callTimeout, body)
        case .scan:
            return try await self.read(.scan, .scan, scope, self.settings.scanTimeout, body)
        case .listing:
            let caller: String? = if case .tenant(let tenant) = scope { tenant } else { nil }
            return try await self.scanGate.run(for: caller) { () async throws(GatewayError) -> T in
                try await self.read(.scan, .scan, scope, self.settings.scanTimeout, body)
            }
        }
    }

    private func read<T: Sendable>(
        _ use: ConnectionQueue.Use,
        _ operation: StoreMetrics.Operation,
        _ scope: SQLScope,
        _ timeout: Duration,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.metrics.measured(operation, translating: GatewayError.init(translatingPostgreSQL:)) {
            try await self.pool.run(use, givesUp: use == .call) { place in
                try PostgreSQLTransaction(scope: scope).read(&place, timeout: timeout, body)
            }
        }
    }

    package func write<T: Sendable>(
        scope: SQLScope,
        isolation: SQLIsolation,
        _ body: @escaping @Sendable (any SQLConnection) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.metrics.measured(.write, translating: GatewayError.init(translatingPostgreSQL:)) {
            try await self.pool.run(.call) { place in
                try PostgreSQLTransaction(scope: scope).write(&place, isolation: isolation, body)
            }
        }
    }

    /// Does nothing. Deleted rows stay in the tables until a vacuum, and in the log until it is recycled. Both are the
    /// database administrator's task (docs/operations/postgresql.md).
    package func eraseDeleted() async {}

    private func translated<T: Sendable>(_ body: () async throws -> T) async throws(GatewayError) -> T {
        do {
            return try await body()
        } catch {
            throw GatewayError(translatingPostgreSQL: error)
        }
    }
}
