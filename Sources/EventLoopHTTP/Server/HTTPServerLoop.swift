package import NIOCore

/// A server's state on one event loop: its connections, the line `Date`, lag and pacing.
///
/// Every method runs on the loop unless it says otherwise.
final class HTTPServerLoop: Sendable {
    /// Spaces answers that arrive faster than a loop should spend time on.
    ///
    /// A burst leaves at once. Each further answer waits for its turn, at most `maxDelay`. Example with an interval of
    /// 1 ms, a burst of 50 ms and a longest delay of 500 ms: of 400 answers at one moment some 50 leave at once, the
    /// next after 1 ms, and the last after 350 ms. Pure: the caller supplies the time.
    struct ResponsePacer {
        /// The time between two answers after the burst is used up.
        let interval: TimeAmount
        /// The number of answers that may leave at once, given as a time: that number times the interval.
        let burst: TimeAmount
        let maxDelay: TimeAmount
        private var next = NIODeadline.distantPast

        init(interval: TimeAmount, burst: TimeAmount, maxDelay: TimeAmount) {
            self.interval = interval
            self.burst = burst
            self.maxDelay = maxDelay
        }

        mutating func delay(at now: NIODeadline) -> TimeAmount {
            let turn = min(max(self.next, now - self.burst), now + self.maxDelay)
            self.next = turn + self.interval
            return turn > now ? turn - now : .zero
        }
    }

    let executor: EventLoopTaskExecutor
    private let connections: NIOLoopBoundBox<ConnectionTable<HTTPServerConnection>>
    private let evictable: TimeAmount
    private let dateLine: NIOLoopBoundBox<HTTPDateLine>
    private let measuresLag: Bool
    private let turns: NIOLoopBoundBox<Lag>
    private let pacing: NIOLoopBoundBox<Pacing>

    private struct Pacing {
        var pacer: ResponsePacer
        /// In the order of their turns, which is also that of their arrival.
        var waiting = CircularBuffer<(turn: NIODeadline, connection: HTTPServerConnection)>()
        var isScheduled = false
    }

    init(eventLoop: any EventLoop, configuration: HTTPServerConfiguration) {
        self.executor = EventLoopTaskExecutor(eventLoop: eventLoop)
        self.connections = .makeBoxSendingValue(ConnectionTable(), eventLoop: eventLoop)
        self.evictable = TimeAmount(configuration.evictableAfter)
        self.measuresLag = configuration.measuresLag
        self.turns = .makeBoxSendingValue(
            Lag(longTurn: .milliseconds(2), window: .milliseconds(100)),
            eventLoop: eventLoop
        )
        let perSecond = Int64(max(configuration.pacedAnswersPerSecond, 1))
        self.pacing = .makeBoxSendingValue(
            Pacing(
                pacer: ResponsePacer(
                    interval: .nanoseconds(1_000_000_000 / perSecond),
                    burst: .milliseconds(50),
                    maxDelay: TimeAmount(configuration.maxPacedDelay)
                )
            ),
            eventLoop: eventLoop
        )
        self.dateLine = .makeBoxSendingValue(HTTPDateLine(wallClock: configuration.wallClock), eventLoop: eventLoop)
    }

    var eventLoop: any EventLoop { self.executor.eventLoop }

    func date(at now: NIODeadline) -> [UInt8] {
        self.dateLine.value.bytes(at: now)
    }

    func add(_ connection: HTTPServerConnection) {
        self.connections.value.add(connection)
    }

    func remove(_ connection: HTTPServerConnection) {
        self.connections.value.remove(connection)
    }

    /// Closes the connection that has been idle longest, for a new one. Returns false if none may be closed.
    func evict() -> Bool {
        let now = self.eventLoop.now
        let connection = self.connections.value.longestIdle { connection in
            connection.idleSince.flatMap { $0 + self.evictable <= now ? $0 : nil }
        }
        connection?.abort(.evicted)
        return connection != nil
    }

    /// Records that work has arrived. Returns the loop's lag, if it has been behind for some time.
    @discardableResult
    func noteWork() -> Duration {
        guard self.measuresLag else { return .zero }
        let now = self.eventLoop.now
        if self.turns.value.beginTurn(at: now) {
            // Runs after everything that has arrived has been handled.
            self.eventLoop.execute { self.turns.value.endTurn(at: self.eventLoop.now) }
            return .zero
        }
        let lag = self.turns.value.lag(at: now)
        return lag == .zero ? .zero : .nanoseconds(lag.nanoseconds)
    }

    /// Returns true if the paced answer of a connection must wait. Its `answerPaced()` is then called at its turn.
    func pace(_ connection: HTTPServerConnection) -> Bool {
        let now = self.eventLoop.now
        let delay = self.pacing.value.pacer.delay(at: now)
        guard delay > .zero else { return false }
        self.pacing.value.waiting.append((now + delay, connection))
        if !self.pacing.value.isScheduled { self.schedulePaced(at: now + delay) }
        return true
    }

    /// One timer for all, because a timer for each would cost more than its answer.
    private func schedulePaced(at turn: NIODeadline) {
        self.pacing.value.isScheduled = true
        self.eventLoop.assumeIsolated().scheduleTask(deadline: turn) { self.answerPaced() }
    }

    private func answerPaced() {
        let now = self.eventLoop.now
        while let first = self.pacing.value.waiting.first, first.turn <= now {
            self.pacing.value.waiting.removeFirst()
            first.connection.answerPaced()
        }
        guard let first = self.pacing.value.waiting.first else {
            self.pacing.value.isScheduled = false
            return
        }
        self.schedulePaced(at: max(first.turn, now + .milliseconds(1)))
    }

    /// Closes the connections without a request. Runs on any thread.
    func closeIdle() {
        self.eventLoop.execute {
            for connection in self.connections.value.connections { connection.closeIfIdle() }
        }
    }

    /// Closes all connections, and reports the number of requests cut off. Runs on any thread.
    func closeAll(_ cutOff: @escaping @Sendable (Int) -> Void) {
        self.eventLoop.execute {
            let connections = self.connections.value.connections
            // Reported before the connections are gone, because a shutdown ends with the last one.
            cutOff(connections.count { $0.isAnswering })
            for connection in connections { connection.abort() }
        }
    }
}

extension HTTPServerLoop {
    /// The open connections of one event loop, and the choice of one to close for a new one.
    ///
    /// Pure: it closes nothing. Requests do not update it, so it has no order of idleness. A search examines a bounded
    /// number of connections and returns the one idle longest. The next search continues at the end of the last one.
    /// Redis chooses keys to evict in this way. The result is nearly as good as an order that every request would have
    /// to maintain.
    struct ConnectionTable<Connection: AnyObject> {
        /// Connections that a search examines: few enough to cost less than accepting one.
        private let searchLength: Int
        private(set) var connections: [Connection] = []
        private var indices: [ObjectIdentifier: Int] = [:]
        private var position = 0

        init(searchLength: Int = 256) {
            self.searchLength = searchLength
        }

        mutating func add(_ connection: Connection) {
            self.indices[ObjectIdentifier(connection)] = self.connections.count
            self.connections.append(connection)
        }

        /// Removes a connection. The last one takes its place in the order.
        mutating func remove(_ connection: Connection) {
            guard let index = self.indices.removeValue(forKey: ObjectIdentifier(connection)),
                let last = self.connections.popLast(), last !== connection
            else { return }
            self.connections[index] = last
            self.indices[ObjectIdentifier(last)] = index
        }

        /// `idleSince` returns nil for a connection that must stay.
        mutating func longestIdle(by idleSince: (Connection) -> NIODeadline?) -> Connection? {
            var longest: (connection: Connection, since: NIODeadline)?
            for _ in 0..<min(self.searchLength, self.connections.count) {
                if self.position >= self.connections.count { self.position = 0 }
                let connection = self.connections[self.position]
                self.position += 1
                guard let since = idleSince(connection), since < longest?.since ?? .distantFuture else { continue }
                longest = (connection, since)
            }
            return longest?.connection
        }
    }

    /// The lag of an event loop, measured by the length of its turns.
    ///
    /// A loop looks for more only after it has handled everything that has arrived. So work that it reaches late in a
    /// turn has waited at least since the turn began. A single long turn is no overload: bursts and busy neighbours
    /// cause those. The loop is behind only if long turns fill most of a window. Pure: the caller supplies the time.
    ///
    /// Example: if turns longer than 2 ms fill 80 ms of 100 ms, the loop is behind. Work that it reaches 8 ms into a
    /// turn then has a lag of 8 ms.
    struct Lag {
        let longTurn: TimeAmount
        let window: TimeAmount
        private var turnBegan: NIODeadline?
        private var windowBegan = NIODeadline.distantPast
        private var longTime = TimeAmount.zero
        /// True if long turns took more than three quarters of the last window.
        private(set) var isBehind = false

        init(longTurn: TimeAmount, window: TimeAmount) {
            self.longTurn = longTurn
            self.window = window
        }

        /// Records work. Returns true if it is the first of its turn; the caller then calls ``endTurn(at:)`` at the
        /// turn's end.
        mutating func beginTurn(at now: NIODeadline) -> Bool {
            guard self.turnBegan == nil else { return false }
            self.turnBegan = now
            return true
        }

        /// The lag of the loop. Zero unless it is behind.
        func lag(at now: NIODeadline) -> TimeAmount {
            guard self.isBehind, let turnBegan = self.turnBegan else { return .zero }
            return now - turnBegan
        }

        mutating func endTurn(at now: NIODeadline) {
            guard let turnBegan = self.turnBegan else { return }
            self.turnBegan = nil
            if now - turnBegan > self.longTurn { self.longTime = self.longTime + (now - turnBegan) }
            let elapsed = now - self.windowBegan
            guard elapsed >= self.window else { return }
            self.isBehind = self.longTime.nanoseconds > elapsed.nanoseconds / 4 * 3
            self.windowBegan = now
            self.longTime = .zero
        }
    }
}

/// Runs a task's jobs on one event loop.
///
/// A task with this preference stays on the loop across all suspensions, which makes `async` code as cheap as
/// callbacks. Jobs must not block. Create one executor for each loop and keep it.
package final class EventLoopTaskExecutor: TaskExecutor {
    package let eventLoop: any EventLoop

    package init(eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.eventLoop.execute {
            // Unsafe because the runtime can't check that each job runs exactly once. This closure runs once.
            unsafe job.runSynchronously(on: self.asUnownedTaskExecutor())
        }
    }
}

/// Runs a computation that takes milliseconds on a thread that has no connections. The caller continues on its loop.
package func computeOffLoop<Result: Sendable>(_ body: @Sendable () -> Result) async -> Result {
    await withTaskExecutorPreference(globalConcurrentExecutor) { body() }
}
