import CLibPQ
import GatewayCore
import NIOPosix
import Synchronization

/// Connections to a server, one for each thread, so that a caller with a connection always has a thread too.
///
/// Connections are made at their first use, and again after they break. While the server can't be reached, one call at
/// a time tries to connect and the others fail at once.
final class PostgreSQLPool: Sendable {
    typealias Backoff = ReconnectBackoff<Uptime>

    /// A slot for one connection. One thread at a time uses it.
    struct Place {
        fileprivate let pool: PostgreSQLPool.Shared
        private var session: PostgreSQLSession?

        fileprivate init(pool: PostgreSQLPool.Shared) {
            self.pool = pool
        }

        var settings: PostgreSQLSettings { self.pool.settings }
        var metrics: PostgreSQLMetrics? { self.pool.metrics }

        /// Returns the connection, with no transaction open. Connects first if necessary.
        ///
        /// - Throws: a `PostgreSQLError` if no connection can be made.
        mutating func connect() throws -> PostgreSQLSession {
            if let session = self.session, session.isUsable {
                session.timeout = self.settings.callTimeout
                try session.tidy()
                return session
            }
            self.session = nil
            let session = try self.pool.connect()
            self.session = session
            return session
        }

        /// Closes a connection that is of no more use.
        mutating func drop() {
            self.session = nil
        }
    }

    /// The state that all places share.
    fileprivate final class Shared: Sendable {
        /// The longest that an attempt is expected to take: libpq's timeout for three hosts.
        private static let attemptDuration = Duration.seconds(15)

        let settings: PostgreSQLSettings
        let metrics: PostgreSQLMetrics?
        private let backoff = Mutex((attempts: Backoff(), reason: "the server has not answered yet"))

        init(_ settings: PostgreSQLSettings, _ metrics: PostgreSQLMetrics?) {
            (self.settings, self.metrics) = (settings, metrics)
        }

        func connect() throws -> PostgreSQLSession {
            let refusal = self.backoff.withLock { backoff in
                let mayTry = backoff.attempts.admit(at: .now, attemptDuration: Self.attemptDuration)
                return mayTry ? nil : PostgreSQLError(.disconnected, backoff.reason)
            }
            if let refusal { throw refusal }
            do {
                let session = try PostgreSQLSession(self.settings)
                self.backoff.withLock { $0.attempts.succeeded() }
                return session
            } catch {
                self.backoff.withLock { backoff in
                    backoff.attempts.failed(at: .now, jitter: .random(in: 0...1))
                    backoff.reason = "\(error)"
                }
                throw error
            }
        }
    }

    /// A class, because an array can't hold a mutex.
    private final class Holder: Sendable {
        let place: Mutex<Place>

        init(pool: Shared) {
            self.place = Mutex(Place(pool: pool))
        }
    }

    /// The continuation of a caller, until the thread has finished or the caller gives up.
    private final class PendingCall<T: Sendable>: Sendable {
        private let continuation: Mutex<CheckedContinuation<T, any Error>?> = Mutex(nil)

        func wait(with continuation: CheckedContinuation<T, any Error>) {
            self.continuation.withLock { $0 = continuation }
        }

        /// Only the first result counts.
        func resume(with result: Result<T, any Error>) {
            let continuation = self.continuation.withLock { waiting in
                defer { waiting = nil }
                return waiting
            }
            continuation?.resume(with: result)
        }
    }

    private let shared: Shared
    private let holders: [Holder]
    private let queue: ConnectionQueue
    private let threads: NIOThreadPool

    /// Connects to nothing yet.
    init(_ settings: PostgreSQLSettings, metrics: PostgreSQLMetrics? = nil) {
        let shared = Shared(settings, metrics)
        self.shared = shared
        self.holders = (0..<settings.poolSize).map { _ in Holder(pool: shared) }
        self.queue = ConnectionQueue(
            connections: settings.poolSize,
            timeout: settings.queueTimeout,
            metrics: metrics
        )
        self.threads = NIOThreadPool(numberOfThreads: settings.poolSize)
        self.threads.start()
    }

    deinit {
        // Does nothing after `close()`.
        self.threads.shutdownGracefully { _ in }
    }

    /// Runs a body on a thread that may block, with a connection's place that is the body's alone.
    ///
    /// If `givesUp` is true, a cancelled task returns at once. The thread's work still ends by its own deadline.
    func run<T: Sendable>(
        _ use: ConnectionQueue.Use,
        givesUp: Bool = false,
        _ body: @escaping @Sendable (inout Place) throws -> T
    ) async throws -> T {
        let number = try await self.queue.take(use, givesUp: givesUp)
        if givesUp, Task.isCancelled {
            self.queue.giveBack(number, use)
            throw CancellationError()
        }
        let call = PendingCall<T>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                call.wait(with: continuation)
                self.submit(number, use, body) { call.resume(with: $0) }
                // The handler may have run before the continuation was stored.
                if givesUp, Task.isCancelled { call.resume(with: .failure(CancellationError())) }
            }
        } onCancel: {
            if givesUp { call.resume(with: .failure(CancellationError())) }
        }
    }

    private func submit<T: Sendable>(
        _ number: Int,
        _ use: ConnectionQueue.Use,
        _ body: @escaping @Sendable (inout Place) throws -> T,
        _ whenDone: @escaping @Sendable (Result<T, any Error>) -> Void
    ) {
        self.threads.submit { state in
            let result: Result<T, any Error>
            switch state {
            case .active: result = Result { try self.holders[number].place.withLock { try body(&$0) } }
            case .cancelled: result = .failure(GatewayError(.storeUnavailable, "The store is closed"))
            }
            self.queue.giveBack(number, use)
            whenDone(result)
        }
    }

    /// Returns true if a server answers at the address, so that waiting after its refusal is pointless.
    ///
    /// Blocks for up to `connect_timeout` for each host.
    static func isAnswering(_ settings: PostgreSQLSettings) -> Bool {
        // libpq reads the text during the call.
        let answer = unsafe fcmgw_pq_ping(settings.url)
        return answer == PQPING_OK || answer == PQPING_NO_ATTEMPT
    }

    /// Closes all connections after running calls have ended. Blocks.
    func close() {
        self.queue.close()
        for holder in self.holders { holder.place.withLock { $0.drop() } }
        try? self.threads.syncShutdownGracefully()
    }
}
