import Logging
import NIOCore

/// The part of a pool that lives on one event loop.
///
/// Which connections there are, and who gets them, depends on the protocol; see the extensions.
final class HTTPClientLane: Sendable {
    struct State {
        /// What the peer has last agreed to, and new exchanges therefore use.
        var spoken: HTTPClientProtocol
        var exclusive: HTTPPoolState<HTTPClientConnection, HTTPClientExchange>
        var shared: HTTP2PoolState<HTTP2ClientConnection, HTTPClientExchange>
        var exclusiveConnections: [ObjectIdentifier: HTTPClientConnection] = [:]
        var sharedConnections: [ObjectIdentifier: HTTP2ClientConnection] = [:]
        var isShutDown = false
    }

    let eventLoop: any EventLoop
    let core: HTTPClientCore
    let connector: HTTPClientConnector
    let state: NIOLoopBoundBox<State>

    init(eventLoop: any EventLoop, core: HTTPClientCore, connector: HTTPClientConnector) {
        self.eventLoop = eventLoop
        self.core = core
        self.connector = connector
        self.state = .makeBoxSendingValue(
            State(
                spoken: connector.expectedProtocol,
                exclusive: HTTPPoolState(
                    maxConnections: core.configuration.maxConnectionsPerLoop,
                    maxWaiters: core.configuration.maxWaitersPerLoop
                ),
                shared: HTTP2PoolState(
                    maxConnections: core.http2.maxConnections,
                    maxWaiters: core.configuration.maxWaitersPerLoop
                )
            ),
            eventLoop: eventLoop
        )
    }

    // MARK: From any thread

    /// Takes an exchange; the continuation is resumed on the loop.
    func submit(
        _ exchange: HTTPClientExchange,
        _ continuation: CheckedContinuation<HTTPClientExchange.Outcome, Never>
    ) {
        if self.eventLoop.inEventLoop {
            self.take(exchange, continuation)
        } else {
            self.eventLoop.execute { self.take(exchange, continuation) }
        }
    }

    /// Ends an exchange whose caller is cancelled.
    func cancel(_ exchange: HTTPClientExchange) {
        self.eventLoop.execute { self.end(exchange, .cancelled) }
    }

    /// Ends every exchange and closes every connection.
    func shutDown() async {
        try? await self.eventLoop
            .submit {
                self.state.value.isShutDown = true
                let waiters =
                    self.state.value.exclusive.removeAllWaiters() + self.state.value.shared.removeAllWaiters()
                for exchange in waiters {
                    self.fail(exchange, .shutDown)
                }
                for connection in Array(self.state.value.exclusiveConnections.values) {
                    connection.abort(.shutDown)
                }
                for connection in Array(self.state.value.sharedConnections.values) {
                    connection.abort(.shutDown)
                }
            }
            .get()
    }

    /// Closes the connections without exchanges, and HTTP/2 connections once they have none.
    func closeIdle() {
        self.eventLoop.execute {
            for connection in Array(self.state.value.exclusiveConnections.values) where connection.taker == nil {
                connection.close()
            }
            for connection in Array(self.state.value.sharedConnections.values) { connection.drain() }
        }
    }

    // MARK: On the loop

    private func take(
        _ exchange: HTTPClientExchange,
        _ continuation: CheckedContinuation<HTTPClientExchange.Outcome, Never>
    ) {
        guard exchange.begin(continuation), self.mayGoOn(exchange) else { return }
        self.place(exchange)
    }

    /// Whether an exchange may still be sent; it has failed otherwise.
    func mayGoOn(_ exchange: HTTPClientExchange) -> Bool {
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

    /// Finds a connection for an exchange that waits.
    func place(_ exchange: HTTPClientExchange) {
        switch self.state.value.spoken {
        case .http1: self.placeOnConnection(exchange)
        case .http2: self.placeOnStream(exchange)
        }
    }

    /// Bounds how long an exchange waits.
    func startTimeout(of exchange: HTTPClientExchange) {
        exchange.setTimeout(
            self.eventLoop.assumeIsolated()
                .scheduleTask(deadline: exchange.deadline) {
                    self.end(exchange, .deadlineExceeded)
                }
        )
    }

    /// Ends an exchange that no connection has.
    func fail(_ exchange: HTTPClientExchange, _ code: HTTPClientError.Code, cause: (any Error)? = nil) {
        exchange.finish(.failure(HTTPClientError(code: code, requestSent: false, cause: cause)))
    }

    /// Notes an attempt to connect that came to nothing.
    func log(_ error: HTTPClientError) {
        self.core.logger.debug(
            "Could not connect.",
            metadata: ["origin": "\(self.core.authority)", "error": "\(error.cause ?? error)"]
        )
    }

    /// Ends an exchange wherever it is.
    private func end(_ exchange: HTTPClientExchange, _ code: HTTPClientError.Code) {
        if let carrier = exchange.carrier {
            carrier.end(code)
        } else {
            self.state.value.exclusive.remove(exchange, of: exchange.request.tenant)
            self.state.value.shared.remove(exchange, of: exchange.request.tenant)
            self.fail(exchange, code)
        }
    }
}
