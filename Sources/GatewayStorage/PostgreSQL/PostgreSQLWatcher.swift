import Dispatch
import Foundation
import GatewayCore
import NIOPosix
import Synchronization

/// A connection beside the pool that lasts: notifications come by it, and the lead among the replicas is a lock of its
/// session (decision 0054).
///
/// It is made at its first use, on a thread of its own, and anew whenever it breaks; the lead goes with it. Whether it is
/// held is asked of the server each time, so that nothing here can be out of date. A session that says nothing for half a
/// minute is ended by the server: its replica is paused, or cut off.
final class PostgreSQLWatcher: Sendable {
    enum Question: Sendable {
        /// Whether this session has the lock; it takes it where nobody has.
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
        /// Why there is no connection, once it was tried.
        var failure: GatewayError?
        var isStarted = false
        var isClosed = false
    }

    /// What transactions notify that change the directory; databases have channels of their own.
    static let channel = "fcmgw_directory"
    /// Of several gateways in schemas of one database, each has a lock of its own. The name is `FCML`.
    private static let lock = "\(0x4643_4D4C), hashtext(current_setting('search_path'))"
    /// How often the session says something.
    private static let interval = Duration.seconds(10)
    /// By when the server ends one that says nothing; before version 14 it can't.
    private static let sessionSettings = """
        SELECT set_config(wanted.name, wanted.value, false)
        FROM (VALUES ('idle_session_timeout', '30000'), ('tcp_user_timeout', '10000')) AS wanted (name, value)
        JOIN pg_settings USING (name)
        """
    /// How long a server may take at the end to give the lock to the next.
    private static let closingTimeout = Duration.seconds(1)

    private let settings: PostgreSQLSettings
    private let metrics: PostgreSQLMetrics?
    private let state = Mutex(State())
    private let threads = NIOThreadPool(numberOfThreads: 1)
    /// Ends the thread's wait for the server.
    private let wakeup = Pipe()

    /// Connects to nothing yet.
    init(_ settings: PostgreSQLSettings, metrics: PostgreSQLMetrics? = nil) {
        (self.settings, self.metrics) = (settings, metrics)
    }

    deinit {
        // Does nothing where it was closed.
        self.threads.shutdownGracefully { _ in }
    }

    // MARK: Any thread

    func observe(_ observer: @escaping @Sendable () -> Void) {
        self.state.withLock { state in
            state.observer = observer
            self.start(&state)
        }
    }

    /// Asks the server, for a call's time; at once where the last attempt to reach it has failed.
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

    /// Gives the lead up; without a connection there is none.
    func resign() async {
        guard self.state.withLock({ $0.isStarted }) else { return }
        _ = try? await self.ask(.resign)
    }

    /// Has the thread end, without a wait for it.
    func stop() {
        let requests = self.state.withLock { state in
            (state.isClosed, state.observer) = (true, nil)
            defer { state.requests = [] }
            return state.requests
        }
        for request in requests { request.continuation.resume(returning: .failure(Self.closed)) }
        self.wake()
    }

    /// Gives the lock back and closes the connection; blocks.
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

    /// Answers a request, unless that was done before.
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
            // The lead went with the connection.
            self.metrics?.measured(leads: false)
            guard !self.isClosed else { return }
            self.takeWakeups(waitingFor: backoff.failed(at: .now, jitter: .random(in: 0...1)))
        }
    }

    /// Answers and listens until the connection breaks, or is to be closed. Who has no answer by then gets it from the
    /// next connection.
    private func serve(_ session: PostgreSQLSession, _ backoff: inout PostgreSQLPool.Backoff) {
        // Nobody was told of what happened before.
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
            // It is made anew; the next attempt says why where that fails.
        }
    }

    private func answer(_ question: Question, _ session: PostgreSQLSession) throws -> Bool {
        var isHeld = false
        switch question {
        case .resign:
            try session.execute("SELECT pg_advisory_unlock_all()")
        case .lead:
            // A session that has it gets it again.
            try session.query("SELECT pg_try_advisory_lock(\(Self.lock))", []) { row in
                isHeld = try row.bool(0)
                return true
            }
        }
        self.metrics?.measured(leads: isHeld)
        return isHeld
    }

    /// Refuses those who wait, and those who come before there is a connection.
    private func refuse(_ failure: GatewayError) {
        let requests = self.state.withLock { state in
            state.failure = failure
            defer { state.requests = [] }
            return state.requests
        }
        for request in requests { request.continuation.resume(returning: .failure(failure)) }
    }

    /// Takes note of what others woke this thread for, if need be after a wait.
    private func takeWakeups(waitingFor duration: Duration = .zero) {
        let input = self.wakeup.fileHandleForReading
        var awaited = pollfd(fd: input.fileDescriptor, events: Int16(POLLIN), revents: 0)
        // POSIX fills in what it is handed, and keeps nothing of it.
        guard unsafe poll(&awaited, 1, Int32(duration / .milliseconds(1))) > 0 else { return }
        _ = input.availableData
    }
}
