package import NIOCore

/// The state of a server on one event loop: its connections, the line `Date`, lag and pacing.
///
/// Every method runs on the loop unless it says otherwise.
final class HTTPServerLoop: Sendable {
    let executor: EventLoopTaskExecutor
    private let connections: NIOLoopBoundBox<HTTPConnectionTable<HTTPServerConnection>>
    private let evictable: TimeAmount
    private let dateLine: NIOLoopBoundBox<HTTPDateLine>
    private let measuresLag: Bool
    private let turns: NIOLoopBoundBox<LoopLag>
    private let pacing: NIOLoopBoundBox<Pacing>

    private struct Pacing {
        var pacer: HTTPResponsePacer
        /// In the order of their turns, which is that of their coming.
        var waiting = CircularBuffer<(turn: NIODeadline, connection: HTTPServerConnection)>()
        var isScheduled = false
    }

    init(eventLoop: any EventLoop, configuration: HTTPServerConfiguration) {
        self.executor = EventLoopTaskExecutor(eventLoop: eventLoop)
        self.connections = .makeBoxSendingValue(HTTPConnectionTable(), eventLoop: eventLoop)
        self.evictable = TimeAmount(configuration.evictableAfter)
        self.measuresLag = configuration.measuresLag
        self.turns = .makeBoxSendingValue(
            LoopLag(longTurn: .milliseconds(2), window: .milliseconds(100)),
            eventLoop: eventLoop
        )
        let perSecond = Int64(max(configuration.pacedAnswersPerSecond, 1))
        self.pacing = .makeBoxSendingValue(
            Pacing(
                pacer: HTTPResponsePacer(
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

    /// Closes a connection that has been idle for long, for a new one; false if none was found that may be closed.
    func evict() -> Bool {
        let now = self.eventLoop.now
        let connection = self.connections.value.longestIdle { connection in
            connection.idleSince.flatMap { $0 + self.evictable <= now ? $0 : nil }
        }
        connection?.abort(.evicted)
        return connection != nil
    }

    /// Notes that there is something to do, and returns by how much the loop has been behind for some time.
    @discardableResult
    func noteWork() -> Duration {
        guard self.measuresLag else { return .zero }
        let now = self.eventLoop.now
        if self.turns.value.beginTurn(at: now) {
            // Run when everything that has arrived has been handled.
            self.eventLoop.execute { self.turns.value.endTurn(at: self.eventLoop.now) }
            return .zero
        }
        let lag = self.turns.value.lag(at: now)
        return lag == .zero ? .zero : .nanoseconds(lag.nanoseconds)
    }

    /// Whether the paced answer of a connection has to wait for its turn; `answerPaced()` is called when that comes.
    func pace(_ connection: HTTPServerConnection) -> Bool {
        let now = self.eventLoop.now
        let delay = self.pacing.value.pacer.delay(at: now)
        guard delay > .zero else { return false }
        self.pacing.value.waiting.append((now + delay, connection))
        if !self.pacing.value.isScheduled { self.schedulePaced(at: now + delay) }
        return true
    }

    /// One timer for all, since each of its own would cost more than the answer.
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

    /// Closes the connections that serve no request, from any thread.
    func closeIdle() {
        self.eventLoop.execute {
            for connection in self.connections.value.connections { connection.closeIfIdle() }
        }
    }

    /// Closes every connection, from any thread, and tells how many requests were cut off by that.
    func closeAll(_ cutOff: @escaping @Sendable (Int) -> Void) {
        self.eventLoop.execute {
            let connections = self.connections.value.connections
            // Told before a connection is gone, and a shutdown ends with the last one.
            cutOff(connections.count { $0.isAnswering })
            for connection in connections { connection.abort() }
        }
    }
}

/// The open connections of one event loop, and which of them to give up for a new one.
///
/// Pure: it closes nothing. Requests do not touch it, so it does not know who idles: the one that has idled longest is looked
/// for when it is needed, among a bounded number of connections, and each search goes on where the last one ended. That is
/// how Redis chooses keys to evict, and nearly as good as an order that every request would have to keep.
struct HTTPConnectionTable<Connection: AnyObject> {
    /// Connections that a search looks at: few enough to cost less than accepting one.
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

    /// Takes a connection out; another takes its place in the order.
    mutating func remove(_ connection: Connection) {
        guard let index = self.indices.removeValue(forKey: ObjectIdentifier(connection)),
            let last = self.connections.popLast(), last !== connection
        else { return }
        self.connections[index] = last
        self.indices[ObjectIdentifier(last)] = index
    }

    /// `idleSince` is nil for one that must not be given up.
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

/// How far an event loop is behind, measured by the length of its turns.
///
/// A loop handles everything that has arrived before it looks for more, so work that it comes to late in a turn has waited at
/// least since the turn began. A single long turn is no overload: bursts and busy neighbours make those. So being behind
/// counts only once long turns have taken most of the time for a while. Pure: the caller supplies the time.
struct LoopLag {
    let longTurn: TimeAmount
    let window: TimeAmount
    private var turnBegan: NIODeadline?
    private var windowBegan = NIODeadline.distantPast
    private var longTime = TimeAmount.zero
    /// Whether long turns took more than three quarters of the last window.
    private(set) var isBehind = false

    init(longTurn: TimeAmount, window: TimeAmount) {
        self.longTurn = longTurn
        self.window = window
    }

    /// Notes work that may be the first of its turn; true if it is: ``endTurn(at:)`` is due when the loop has been round.
    mutating func beginTurn(at now: NIODeadline) -> Bool {
        guard self.turnBegan == nil else { return false }
        self.turnBegan = now
        return true
    }

    /// By how much the loop is behind; zero unless it has been so for a while.
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

/// Spaces answers that come faster than a loop should spend its time on.
///
/// A burst goes out at once; beyond it each answer waits for its turn, but never longer than the longest wait. Pure: the
/// caller supplies the time.
struct HTTPResponsePacer {
    /// The time between two answers once the burst is used up.
    let interval: TimeAmount
    /// How many answers may go out at once, as the time that they would take at the interval.
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

/// Runs a task's jobs on one event loop.
///
/// A task started with this preference stays on the loop across every suspension, which is what keeps `async` code as
/// cheap as callbacks. Nothing that runs here may block. Make one per loop and keep it.
package final class EventLoopTaskExecutor: TaskExecutor {
    package let eventLoop: any EventLoop

    package init(eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.eventLoop.execute {
            // Unsafe because the runtime cannot check that each job runs exactly once; this closure runs once.
            unsafe job.runSynchronously(on: self.asUnownedTaskExecutor())
        }
    }
}

/// Computes something that takes milliseconds on a thread that serves no connections; the caller continues on its loop.
package func computeOffLoop<Result: Sendable>(_ body: @Sendable () -> Result) async -> Result {
    await withTaskExecutorPreference(globalConcurrentExecutor) { body() }
}
