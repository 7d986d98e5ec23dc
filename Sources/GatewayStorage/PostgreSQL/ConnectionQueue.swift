import Dispatch
import GatewayCore
import Synchronization

/// Assigns a pool's connections to callers in the order of their arrival.
///
/// Scans use at most three connections, fewer in a small pool, so that calls always find others. At most 1,024 callers
/// wait, each for at most the timeout. Example: of 8 connections, 3 may scan; with 4 connections, 1 may.
final class ConnectionQueue: Sendable {
    enum Use: Sendable {
        case call
        /// A long read.
        case scan
    }

    private struct Waiter {
        let number: Int
        let use: Use
        let continuation: CheckedContinuation<Result<Int, GatewayError>, Never>
    }

    private struct State {
        /// The most recently used connection is last and is taken first, so that surplus ones fall idle.
        var idle: [Int]
        var scans = 0
        var waiting: [Waiter] = []
        var lastNumber = 0
        var isClosed = false

        /// Removes the waiters that can be served now.
        mutating func admit(maxScans: Int) -> [(Waiter, Int)] {
            var admitted: [(Waiter, Int)] = []
            while let connection = self.idle.last,
                let index = self.waiting.firstIndex(where: { $0.use == .call || self.scans < maxScans })
            {
                self.idle.removeLast()
                let waiter = self.waiting.remove(at: index)
                if waiter.use == .scan { self.scans += 1 }
                admitted.append((waiter, connection))
            }
            return admitted
        }
    }

    private static let maxWaiting = 1_024

    private let connections: Int
    private let maxScans: Int
    private let timeout: Duration
    private let metrics: PostgreSQLMetrics?
    private let state: Mutex<State>

    init(connections: Int, timeout: Duration, metrics: PostgreSQLMetrics? = nil) {
        (self.connections, self.maxScans) = (connections, max(1, min(3, connections / 2 - 1)))
        (self.timeout, self.metrics) = (timeout, metrics)
        self.state = Mutex(State(idle: Array((0..<connections).reversed())))
        self.change { _ in }
    }

    /// Returns the number of a connection that is the caller's until ``giveBack(_:_:)``.
    ///
    /// A cancelled task keeps waiting, because its write is still wanted, unless `givesUp` is true.
    func take(_ use: Use, givesUp: Bool = false) async throws(GatewayError) -> Int {
        let number = self.state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let result: Result<Int, GatewayError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.enter(Waiter(number: number, use: use, continuation: continuation))
                // The handler may have run before the waiter was queued.
                if givesUp, Task.isCancelled { self.refuse(number, Self.cancelled) }
            }
        } onCancel: {
            if givesUp { self.refuse(number, Self.cancelled) }
        }
        return try result.get()
    }

    private func enter(_ waiter: Waiter) {
        let (refusal, isWaiting) = self.change { state -> (GatewayError?, Bool) in
            if state.isClosed { return (Self.closed, false) }
            if state.waiting.count >= Self.maxWaiting {
                return (GatewayError(.storeUnavailable, "Too many calls are waiting for the store"), false)
            }
            let isIdle = !state.idle.isEmpty
            state.waiting.append(waiter)
            return (nil, !isIdle || waiter.use == .scan)
        }
        if let refusal {
            waiter.continuation.resume(returning: .failure(refusal))
        } else if isWaiting {
            self.expire(waiter.number)
        }
    }

    func giveBack(_ connection: Int, _ use: Use) {
        self.change { state in
            state.idle.append(connection)
            if use == .scan { state.scans -= 1 }
        }
    }

    /// Refuses all waiters, and all later callers.
    func close() {
        let waiting = self.state.withLock { state in
            state.isClosed = true
            defer {
                state.waiting = []
                self.measure(state)
            }
            return state.waiting
        }
        for waiter in waiting { waiter.continuation.resume(returning: .failure(Self.closed)) }
    }

    /// Refuses a waiter after the timeout, unless it has been served.
    private func expire(_ number: Int) {
        let milliseconds = Int(self.timeout / .milliseconds(1))
        DispatchQueue.global()
            .asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [self] in
                self.refuse(number, GatewayError(.storeUnavailable, "The store's connections are all in use"))
            }
    }

    /// Removes a waiter from the queue, unless it has been served.
    private func refuse(_ number: Int, _ refusal: GatewayError) {
        let waiter = self.state.withLock { state in
            defer { self.measure(state) }
            return state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0) }
        }
        waiter?.continuation.resume(returning: .failure(refusal))
    }

    private static var cancelled: GatewayError { GatewayError(.cancelled, "The operation was cancelled") }

    private static var closed: GatewayError { GatewayError(.storeUnavailable, "The store is closed") }

    @discardableResult
    private func change<T>(_ body: (inout State) -> T) -> T {
        let (result, admitted) = self.state.withLock { state in
            let result = body(&state)
            let admitted = state.admit(maxScans: self.maxScans)
            self.measure(state)
            return (result, admitted)
        }
        for (waiter, connection) in admitted { waiter.continuation.resume(returning: .success(connection)) }
        return result
    }

    /// Runs under the lock, so that the metrics show the latest state.
    private func measure(_ state: State) {
        let idle = state.idle.count
        self.metrics?.measured(busy: self.connections - idle, idle: idle, waiting: state.waiting.count)
    }
}

/// Spaces attempts to reach a server that does not answer. Pure.
///
/// The pause doubles from 50 ms to 2 s, and jitter takes up to half of it. Example: the fourth failure in a row is
/// followed by a pause of 200 to 400 ms.
struct ReconnectBackoff<Instant: InstantProtocol> where Instant.Duration == Duration {
    private static var first: Duration { .milliseconds(50) }
    private static var longest: Duration { .seconds(2) }

    private var failures = 0
    private var notBefore: Instant?

    /// Returns true if an attempt may start now. While the server does not answer, one attempt runs at a time.
    mutating func admit(at now: Instant, attemptDuration: Duration) -> Bool {
        guard let notBefore = self.notBefore else { return true }
        guard now >= notBefore else { return false }
        // An attempt that never ends must not block others for ever.
        self.notBefore = now.advanced(by: attemptDuration)
        return true
    }

    mutating func succeeded() {
        (self.failures, self.notBefore) = (0, nil)
    }

    /// Records a failure, and returns the pause after it. `jitter` is from 0 to 1.
    @discardableResult
    mutating func failed(at now: Instant, jitter: Double) -> Duration {
        let factor = 1 << min(self.failures, 10)
        let pause = min(Self.first * factor, Self.longest) * (0.5 + jitter / 2)
        self.failures += 1
        self.notBefore = now.advanced(by: pause)
        return pause
    }
}
