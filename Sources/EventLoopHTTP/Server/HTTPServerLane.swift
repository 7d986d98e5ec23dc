import Logging
import NIOCore

/// What a server keeps on one event loop.
final class HTTPServerLane: Sendable {
    let executor: EventLoopTaskExecutor
    private let connections: NIOLoopBoundBox<HTTPConnectionTable<HTTPServerConnection>>
    private let evictable: TimeAmount
    private let dateLine: NIOLoopBoundBox<HTTPDateLine>
    private let measuresLag: Bool
    private let turns: NIOLoopBoundBox<LoopLag>
    private let pacing: NIOLoopBoundBox<Pacing>

    /// The answers that wait for their turn.
    private struct Pacing {
        var pacer: AnswerPacer
        /// In the order of their turns, which is that of their coming.
        var waiting = CircularBuffer<(turn: NIODeadline, connection: HTTPServerConnection)>()
        /// Whether the loop will come round to them.
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
                pacer: AnswerPacer(
                    interval: .nanoseconds(1_000_000_000 / perSecond),
                    burst: .milliseconds(50),
                    maxDelay: TimeAmount(configuration.maxPacedDelay)
                )
            ),
            eventLoop: eventLoop
        )
        self.dateLine = .makeBoxSendingValue(
            HTTPDateLine(wallClock: configuration.wallClock),
            eventLoop: eventLoop
        )
    }

    var eventLoop: any EventLoop {
        self.executor.eventLoop
    }

    /// The line that says when an answer was made, with its end; on the loop only.
    func date(at now: NIODeadline) -> [UInt8] {
        self.dateLine.value.bytes(at: now)
    }

    /// Remembers an open connection; on the loop only.
    func add(_ connection: HTTPServerConnection) {
        self.connections.value.add(connection)
    }

    /// Forgets a connection that has closed; on the loop only.
    func remove(_ connection: HTTPServerConnection) {
        self.connections.value.remove(connection)
    }

    /// Closes a connection that has been idle for long, to have its place for a new one; on the loop only.
    ///
    /// - Returns: false if none was found that may be closed.
    func evict() -> Bool {
        let now = self.eventLoop.now
        let connection = self.connections.value.longestIdle { connection in
            connection.idleSince.flatMap { $0 + self.evictable <= now ? $0 : nil }
        }
        connection?.cut(.evicted)
        return connection != nil
    }

    /// Notes that there is something to do, and tells by how much the loop has been behind for some time; on the loop
    /// only.
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

    /// Finds out whether the paced answer of a connection has to wait for its turn; on the loop only.
    ///
    /// - Returns: whether it has; the connection is then told when its turn has come.
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
            for connection in self.connections.value.connections {
                connection.closeIfIdle()
            }
        }
    }

    /// Closes every connection, from any thread.
    ///
    /// - Parameter logger: told how many requests were cut off by that.
    func closeAll(logger: Logger) {
        self.eventLoop.execute {
            var cut = 0
            for connection in self.connections.value.connections {
                if connection.isAnswering { cut += 1 }
                connection.abort()
            }
            guard cut > 0 else { return }
            logger.warning(
                "Requests were cut off, because the time to finish them was over.",
                metadata: ["requests": "\(cut)"]
            )
        }
    }
}
