import Dispatch
import Foundation
import GatewayCore
import NIOPosix
import Synchronization

/// A lasting connection beside the pool. It receives notifications and holds the replicas' leadership lock, which is a
/// lock of its session (decision 0054).
///
/// It is made at its first use, on its own thread, and again after it breaks. A broken connection loses the lead. Each
/// question about the lead goes to the server, so that no answer is stale. The server ends a session that is silent for
/// half a minute: its replica is paused or cut off.
final class PostgreSQLWatcher: Sendable {
    enum Question: Sendable {
        /// Takes the lock if no session holds it. The answer is true if this session holds it.
        case lead
        case resign
    }

    private struct Request {
        let number: Int
        let question: Question
        let continuation: CheckedContinuation<Result<Bool, GatewayError>, Never>
    }

    private struct State {
        var observer: (@Sendable () -> Void)?
        var requests: [Request] = []
        var lastNumber = 0
        /// Why there is no connection, after the first failed attempt.
        var failure: GatewayError?
        var isStarted = false
        var isClosed = false
    }

    /// The channel that transactions notify which change the directory. Each database has its own channels.
    static let channel = "fcmgw_directory"
    /// The key of the lock, `FCML`. Gateways in other schemas of the same database have other locks.
    private static let lock = "\(0x4643_4D4C), hashtext(current_setting('search_path'))"
    /// The longest time between two statements of the session.
    private static let interval = Duration.seconds(10)
    /// The server ends a session that is silent for longer. Versions before 14 can't.
    private static let sessionSettings = """
        SELECT set_config(wanted.name, wanted.value, false)
        FROM (VALUES ('idle_session_timeout', '30000'), ('tcp_user_timeout', '10000')) AS wanted (name, value)
        JOIN pg_settings USING (name)
        """
    /// At close, how long the server may take to release the lock for the next replica.
    private static let closingTimeout = Duration.seconds(1)

    private let settings: PostgreSQLSettings
    private let metrics: PostgreSQLMetrics?
    private let state = Mutex(State())
    private let threads = NIOThreadPool(numberOfThreads: 1)
    /// Interrupts the thread's wait for the server.
    private let wakeup = Pipe()

    /// Connects to nothing yet.
    init(_ settings: PostgreSQLSettings, metrics: PostgreSQLMetrics? = nil) {
        (self.settings, self.metrics) = (settings, metrics)
    }

    deinit {
        // Does nothing after `close()`.
        self.threads.shutdownGracefully { _ in }
    }

    // MARK: Any thread

    func observe(_ observer: @escaping @Sendable () -> Void) {
        self.state.withLock { state in
            state.observer = observer
            self.start(&state)
        }
    }

    /// Asks the server and waits up to a call's timeout. Fails at once if the last attempt to connect failed.
    func ask(_ question: Question) async throws(GatewayError) -> Bool {
        let result: Result<Bool, GatewayError> = await withCheckedContinuation { continuation in
            let (number, refusal) = self.state.withLock { state -> (Int, GatewayError?) in
                if let refusal = state.isClosed ? Self.closed : state.failure { return (0, refusal) }
                state.lastNumber += 1
                let number = state.lastNumber
                state.requests.append(Request(number: number, question: question, continuation: continuation))
                self.start(&state)
                return (number, nil)
            }
            if let refusal {
                continuation.resume(returning: .failure(refusal))
                return
            }
            self.wake()
            self.expire(number)
        }
        return try result.get()
    }

    /// Gives up the lead. Without a connection there is none.
    func resign() async {
        guard self.state.withLock({ $0.isStarted }) else { return }
        _ = try? await self.ask(.resign)
    }

    /// Tells the thread to end, and does not wait for it.
    func stop() {
        let requests = self.state.withLock { state in
            (state.isClosed, state.observer) = (true, nil)
            defer { state.requests = [] }
            return state.requests
        }
        for request in requests { request.continuation.resume(returning: .failure(Self.closed)) }
        self.wake()
    }

    /// Releases the lock and closes the connection. Blocks.
    func close() {
        self.stop()
        try? self.threads.syncShutdownGracefully()
    }

    private static var closed: GatewayError { GatewayError(.storeUnavailable, "The store is closed") }

    private func start(_ state: inout State) {
        guard !state.isStarted, !state.isClosed else { return }
        state.isStarted = true
        self.threads.start()
        self.threads.submit { if $0 == .active { self.run() } }
    }

    private func wake() { try? self.wakeup.fileHandleForWriting.write(contentsOf: [UInt8(0)]) }

    private func expire(_ number: Int) {
        let milliseconds = Int(self.settings.callTimeout / .milliseconds(1))
        DispatchQueue.global()
            .asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [self] in
                self.finish(number, .failure(GatewayError(.storeUnavailable, "The store did not answer in time")))
            }
    }

    /// Completes a request, unless it has been completed.
    private func finish(_ number: Int, _ result: Result<Bool, GatewayError>) {
        let request = self.state.withLock { state in
            state.requests.firstIndex { $0.number == number }.map { state.requests.remove(at: $0) }
        }
        request?.continuation.resume(returning: result)
    }

    // MARK: The connection's thread

    private var isClosed: Bool { self.state.withLock { $0.isClosed } }

    private func run() {
        var backoff = PostgreSQLPool.Backoff()
        while true {
            do {
                let session = try PostgreSQLSession(self.settings)
                try session.execute(Self.sessionSettings)
                try session.run(script: "LISTEN \(Self.channel)")
                self.state.withLock { $0.failure = nil }
                self.serve(session, &backoff)
            } catch {
                self.refuse(GatewayError(translatingPostgreSQL: error))
            }
            // The lead ends with the connection.
            self.metrics?.measured(leads: false)
            guard !self.isClosed else { return }
            self.takeWakeups(waitingFor: backoff.failed(at: .now, jitter: .random(in: 0...1)))
        }
    }

    /// Answers requests and waits for notifications, until the connection breaks or is to be closed. The next
    /// connection answers the remaining requests.
    private func serve(_ session: PostgreSQLSession, _ backoff: inout PostgreSQLPool.Backoff) {
        // Notifications may have been missed before.
        var isNotified = true
        do {
            while !self.isClosed {
                let observer = isNotified ? self.state.withLock { $0.observer } : nil
                observer?()
                while let request = self.state.withLock({ $0.requests.first }) {
                    self.finish(request.number, .success(try self.answer(request.question, session)))
                }
                try session.execute("SELECT 1")
                backoff.succeeded()
                let descriptor = self.wakeup.fileHandleForReading.fileDescriptor
                isNotified = try session.awaitNotification(orInput: descriptor, for: Self.interval)
                self.takeWakeups()
            }
            session.timeout = Self.closingTimeout
            _ = try self.answer(.resign, session)
        } catch {
            // The connection is made again. If that fails, the next attempt reports why.
        }
    }

    private func answer(_ question: Question, _ session: PostgreSQLSession) throws -> Bool {
        var isHeld = false
        switch question {
        case .resign:
            try session.execute("SELECT pg_advisory_unlock_all()")
        case .lead:
            // A session that holds the lock gets it again.
            try session.query("SELECT pg_try_advisory_lock(\(Self.lock))", []) { row in
                isHeld = try row.bool(0)
                return true
            }
        }
        self.metrics?.measured(leads: isHeld)
        return isHeld
    }

    /// Refuses the waiting requests, and all later ones until there is a connection.
    private func refuse(_ failure: GatewayError) {
        let requests = self.state.withLock { state in
            state.failure = failure
            defer { state.requests = [] }
            return state.requests
        }
        for request in requests { request.continuation.resume(returning: .failure(failure)) }
    }

    /// Consumes the wake-ups of other threads. Waits for one up to the duration.
    private func takeWakeups(waitingFor duration: Duration = .zero) {
        let input = self.wakeup.fileHandleForReading
        var awaited = pollfd(fd: input.fileDescriptor, events: Int16(POLLIN), revents: 0)
        // POSIX fills the structure and keeps no pointer.
        guard unsafe poll(&awaited, 1, Int32(duration / .milliseconds(1))) > 0 else { return }
        _ = input.availableData
    }
}
