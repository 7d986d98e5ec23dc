package import Logging
package import NIOCore
import NIOPosix

/// Keep-alive connections to one origin, with a separate set on each event loop.
///
/// A caller pinned to a loop gets a connection of that loop, so its exchange never leaves it. An `https` origin gets
/// HTTP/2 if it supports it; callers see no difference. The pool repeats only exchanges that a peer refused without
/// processing them. Other errors say if anything was sent, and the caller decides.
package final class HTTPClientPool: Sendable {
    package let origin: HTTPOrigin
    private let eventLoopGroup: any EventLoopGroup
    private let loops: [ObjectIdentifier: HTTPClientLoop]

    /// Creates a pool without connections. They are opened when they are needed.
    ///
    /// Prepares TLS from the configuration unless `encryption` is given. Logs failed connections at debug level.
    package init(
        origin: HTTPOrigin,
        configuration: HTTPClientConfiguration = HTTPClientConfiguration(),
        encryption: HTTPClientEncryption? = nil,
        eventLoopGroup: any EventLoopGroup,
        logger: Logger
    ) throws {
        self.origin = origin
        self.eventLoopGroup = eventLoopGroup
        let encryption: HTTPClientEncryption? =
            switch origin.scheme {
            case .http: nil
            case .https: try encryption ?? HTTPClientEncryption(configuration)
            }
        let core = HTTPClientCore(origin: origin, configuration: configuration, encryption: encryption, logger: logger)
        var loops: [ObjectIdentifier: HTTPClientLoop] = [:]
        for eventLoop in eventLoopGroup.makeIterator() {
            loops[ObjectIdentifier(eventLoop)] = HTTPClientLoop(eventLoop: eventLoop, core: core)
        }
        self.loops = loops
    }

    /// Sends a request and returns its final answer, with any status.
    ///
    /// The deadline covers waiting, connecting, sending and reading. If no event loop is given, the pool uses the calling
    /// task's own loop, or any of the pool's loops.
    package func execute(
        _ request: HTTPClientRequest,
        deadline: NIODeadline,
        on eventLoop: (any EventLoop)? = nil
    ) async throws(HTTPClientError) -> HTTPClientResponse {
        guard let loop = self.loop(on: eventLoop) else {
            throw HTTPClientError(code: .shutDown, requestSent: false)
        }
        // On the exchange's loop, a cancelled task would write the exchange before its cancellation handler has run.
        guard !Task.isCancelled else { throw HTTPClientError(code: .cancelled, requestSent: false) }
        let exchange = HTTPClientExchange(request: request, deadline: deadline, eventLoop: loop.eventLoop)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                loop.submit(exchange, continuation)
            }
        } onCancel: {
            loop.cancel(exchange)
        }
        return try outcome.get()
    }

    /// Ends all exchanges with `shutDown` and closes all connections. Later requests are refused.
    package func shutdown() async {
        for loop in self.loops.values {
            await loop.shutDown()
        }
    }

    /// Closes unused connections. Current and later exchanges are served, and their connections close at the latest
    /// after the idle timeout.
    package func closeIdle() {
        for loop in self.loops.values { loop.closeIdle() }
    }

    private func loop(on eventLoop: (any EventLoop)?) -> HTTPClientLoop? {
        if let eventLoop = eventLoop ?? MultiThreadedEventLoopGroup.currentEventLoop,
            let loop = self.loops[ObjectIdentifier(eventLoop)]
        {
            return loop
        }
        return self.loops[ObjectIdentifier(self.eventLoopGroup.next())]
    }
}

/// The part of a pool on one event loop. It carries out the decisions of ``HTTPPoolState``.
final class HTTPClientLoop: Sendable {
    private struct State {
        var pool: HTTPPoolState<HTTPClientConnection, HTTPClientExchange>
        /// All open connections, including those that take no more exchanges.
        var connections: [ObjectIdentifier: HTTPClientConnection] = [:]
        var isShutDown = false
    }

    let eventLoop: any EventLoop
    let core: HTTPClientCore
    private let state: NIOLoopBoundBox<State>

    init(eventLoop: any EventLoop, core: HTTPClientCore) {
        self.eventLoop = eventLoop
        self.core = core
        let configuration = core.configuration
        let pool = HTTPPoolState<HTTPClientConnection, HTTPClientExchange>(
            maxConnections: core.offersHTTP2
                ? configuration.http2.maxConnectionsPerLoop : configuration.maxConnectionsPerLoop,
            maxWaiters: configuration.maxWaitersPerLoop,
            expectedPlaces: core.offersHTTP2 ? nil : 1
        )
        self.state = .makeBoxSendingValue(State(pool: pool), eventLoop: eventLoop)
    }

    // MARK: From any thread

    /// Accepts an exchange. The continuation is resumed on the loop.
    func submit(
        _ exchange: HTTPClientExchange,
        _ continuation: CheckedContinuation<HTTPClientExchange.Outcome, Never>
    ) {
        if self.eventLoop.inEventLoop {
            self.begin(exchange, continuation)
        } else {
            self.eventLoop.execute { self.begin(exchange, continuation) }
        }
    }

    /// Ends an exchange whose caller was cancelled.
    func cancel(_ exchange: HTTPClientExchange) {
        self.eventLoop.execute { self.end(exchange, .cancelled) }
    }

    func shutDown() async {
        try? await self.eventLoop
            .submit {
                self.state.value.isShutDown = true
                for exchange in self.state.value.pool.removeAllWaiters() {
                    self.fail(exchange, .shutDown)
                }
                for connection in Array(self.state.value.connections.values) {
                    connection.abort(.shutDown)
                }
            }
            .get()
    }

    /// Closes the connections without exchanges, and HTTP/2 connections after their last exchange.
    func closeIdle() {
        self.eventLoop.execute {
            for connection in Array(self.state.value.connections.values) { connection.closeIfIdle() }
        }
    }

    // MARK: Exchanges, on the loop

    private func begin(
        _ exchange: HTTPClientExchange,
        _ continuation: CheckedContinuation<HTTPClientExchange.Outcome, Never>
    ) {
        guard exchange.begin(continuation), self.mayGoOn(exchange) else { return }
        self.place(exchange)
    }

    /// Returns true if an exchange may still be sent. Otherwise the exchange has failed.
    private func mayGoOn(_ exchange: HTTPClientExchange) -> Bool {
        guard !self.state.value.isShutDown else {
            self.fail(exchange, .shutDown)
            return false
        }
        guard exchange.deadline > self.eventLoop.now else {
            self.fail(exchange, .deadlineExceeded)
            return false
        }
        return true
    }

    private func place(_ exchange: HTTPClientExchange, avoiding avoided: HTTPClientConnection? = nil) {
        while true {
            switch self.state.value.pool.admit(exchange, of: exchange.request.tenant, avoiding: avoided) {
            case .start(let connection):
                guard self.start(exchange, on: connection) else { continue }
            case .wait(let displaced):
                self.startTimeout(of: exchange)
                if let displaced { self.fail(displaced, .poolExhausted) }
                self.connectIfNeeded()
            case .exhausted:
                self.fail(exchange, .poolExhausted)
            }
            return
        }
    }

    /// Starts an exchange in its place. Returns false if the connection is unusable.
    private func start(_ exchange: HTTPClientExchange, on connection: HTTPClientConnection) -> Bool {
        guard connection.isUsable else {
            self.state.value.pool.release(connection, of: exchange.request.tenant)
            self.drop(connection)
            return false
        }
        if !connection.start(exchange) {
            // The caller gave up meanwhile.
            self.state.value.pool.release(connection, of: exchange.request.tenant)
        }
        return true
    }

    private func serveWaiters() {
        while let (exchange, connection) = self.state.value.pool.next() {
            // After a pause of the process, the loop may read sockets before it runs the timers that expired.
            guard self.mayGoOn(exchange) else {
                self.state.value.pool.release(connection, of: exchange.request.tenant)
                continue
            }
            if !self.start(exchange, on: connection) { self.place(exchange) }
        }
    }

    /// Repeats an exchange that a peer refused without processing it, on another connection if possible.
    func retry(_ exchange: HTTPClientExchange, refusedBy connection: HTTPClientConnection) {
        guard exchange.waitAgain(maxRefusals: self.core.configuration.http2.maxRefusals) else {
            self.fail(exchange, .refused, cause: HTTP2ClientConnection.Fault.refused)
            return
        }
        guard self.mayGoOn(exchange) else { return }
        self.place(exchange, avoiding: connection)
    }

    private func startTimeout(of exchange: HTTPClientExchange) {
        exchange.setTimeout(
            self.eventLoop.assumeIsolated()
                .scheduleTask(deadline: exchange.deadline) {
                    self.end(exchange, .deadlineExceeded)
                }
        )
    }

    private func end(_ exchange: HTTPClientExchange, _ code: HTTPClientError.Code) {
        if let connection = exchange.connection {
            connection.cancel(exchange, code)
        } else {
            self.state.value.pool.remove(exchange, of: exchange.request.tenant)
            self.fail(exchange, code)
        }
    }

    private func fail(_ exchange: HTTPClientExchange, _ code: HTTPClientError.Code, cause: (any Error)? = nil) {
        exchange.finish(.failure(HTTPClientError(code: code, requestSent: false, cause: cause)))
    }

    // MARK: Connections, on the loop

    private func connectIfNeeded() {
        guard !self.state.value.isShutDown else { return }
        while self.state.value.pool.shouldConnect() {
            self.core.connect(on: self) { result in
                switch result {
                case .success(let connection): self.connected(connection)
                case .failure(let error): self.failedToConnect(error)
                }
            }
        }
    }

    private func connected(_ connection: HTTPClientConnection) {
        self.state.value.connections[ObjectIdentifier(connection)] = connection
        self.state.value.pool.connected(connection, maxConnections: connection.maxConnections)
        guard !self.state.value.isShutDown else {
            connection.abort(.shutDown)
            return
        }
        connection.joined()
        self.serveWaiters()
        self.connectIfNeeded()
    }

    private func failedToConnect(_ error: HTTPClientError) {
        self.core.logger.debug(
            "Could not connect.",
            metadata: ["origin": "\(self.core.authority)", "error": "\(error.cause ?? error)"]
        )
        for exchange in self.state.value.pool.attemptFailed() {
            exchange.finish(.failure(error))
        }
        // Exchanges that waited for this attempt may now use any other connection.
        self.serveWaiters()
    }

    func released(_ connection: HTTPClientConnection, of tenant: Int) {
        self.state.value.pool.release(connection, of: tenant)
        self.serveWaiters()
    }

    func setLimit(_ limit: Int, of connection: HTTPClientConnection) {
        self.state.value.pool.setLimit(limit, of: connection)
        self.serveWaiters()
        self.connectIfNeeded()
    }

    /// The connection takes no more exchanges. Another replaces it if one is needed.
    func retire(_ connection: HTTPClientConnection) {
        self.state.value.pool.retire(connection, carrying: connection.tenants)
        self.serveWaiters()
        self.connectIfNeeded()
    }

    func ended(_ connection: HTTPClientConnection) {
        self.state.value.connections[ObjectIdentifier(connection)] = nil
        self.retire(connection)
    }

    /// Ends an unusable connection. A closed one does not report its end again.
    private func drop(_ connection: HTTPClientConnection) {
        self.state.value.pool.retire(connection, carrying: connection.tenants)
        self.state.value.connections[ObjectIdentifier(connection)] = nil
        connection.abort(.connectionClosed)
    }
}
