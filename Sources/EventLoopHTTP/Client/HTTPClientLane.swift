import Logging
import NIOCore

/// The part of a pool that lives on one event loop.
final class HTTPClientLane: Sendable {
    private struct State {
        var pool: HTTPPoolState<HTTPClientConnection, HTTPClientExchange>
        var connections: [ObjectIdentifier: HTTPClientConnection] = [:]
        var isShutDown = false
    }

    let eventLoop: any EventLoop
    let core: HTTPClientCore
    private let connector: HTTPClientConnector
    private let state: NIOLoopBoundBox<State>

    init(eventLoop: any EventLoop, core: HTTPClientCore, connector: HTTPClientConnector) {
        self.eventLoop = eventLoop
        self.core = core
        self.connector = connector
        self.state = .makeBoxSendingValue(
            State(
                pool: HTTPPoolState(
                    maxConnections: core.configuration.maxConnectionsPerLoop,
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
                for exchange in self.state.value.pool.removeAllWaiters() {
                    self.fail(exchange, .shutDown)
                }
                for connection in Array(self.state.value.connections.values) {
                    connection.abort(.shutDown)
                }
            }
            .get()
    }

    // MARK: On the loop

    /// Takes back a connection that is ready for an exchange.
    func settle(_ connection: HTTPClientConnection) {
        while let exchange = self.state.value.pool.checkIn(connection) {
            if exchange.run(on: connection) {
                connection.send(exchange)
                return
            }
        }
        connection.rest()
    }

    /// Forgets a connection that has ended, and opens another if an exchange waits for its place.
    func ended(_ connection: HTTPClientConnection) {
        self.state.value.connections[ObjectIdentifier(connection)] = nil
        self.freeSlot(of: connection)
    }

    private func take(
        _ exchange: HTTPClientExchange,
        _ continuation: CheckedContinuation<HTTPClientExchange.Outcome, Never>
    ) {
        guard exchange.begin(continuation) else { return }
        guard !self.state.value.isShutDown else {
            self.fail(exchange, .shutDown)
            return
        }
        guard exchange.deadline > self.eventLoop.now else {
            self.fail(exchange, .deadlineExceeded)
            return
        }
        while true {
            switch self.state.value.pool.checkOut(for: exchange) {
            case .reuse(let connection):
                guard connection.isUsable, exchange.run(on: connection) else {
                    connection.abort(.connectionClosed)
                    continue
                }
                connection.send(exchange)
            case .connect:
                self.startTimeout(of: exchange)
                self.open(for: exchange)
            case .wait:
                self.startTimeout(of: exchange)
            case .exhausted:
                self.fail(exchange, .poolExhausted)
            }
            return
        }
    }

    private func open(for exchange: HTTPClientExchange) {
        self.connector.open(for: self) { result in
            switch result {
            case .success(let connection):
                self.state.value.connections[ObjectIdentifier(connection)] = connection
                if self.state.value.isShutDown {
                    connection.abort(.shutDown)
                    self.fail(exchange, .shutDown)
                } else if exchange.run(on: connection) {
                    connection.send(exchange)
                } else {
                    // Its caller gave up meanwhile; the connection serves another.
                    self.settle(connection)
                }
            case .failure(let error):
                self.core.logger.debug(
                    "Could not connect.",
                    metadata: ["origin": "\(self.core.authority)", "error": "\(error.cause ?? error)"]
                )
                exchange.finish(.failure(error))
                self.freeSlot(of: nil)
            }
        }
    }

    private func freeSlot(of connection: HTTPClientConnection?) {
        guard let exchange = self.state.value.pool.freeSlot(of: connection) else { return }
        self.open(for: exchange)
    }

    private func startTimeout(of exchange: HTTPClientExchange) {
        exchange.setTimeout(
            self.eventLoop.assumeIsolated()
                .scheduleTask(deadline: exchange.deadline) {
                    self.end(exchange, .deadlineExceeded)
                }
        )
    }

    /// Ends an exchange wherever it is.
    private func end(_ exchange: HTTPClientExchange, _ code: HTTPClientError.Code) {
        if let connection = exchange.connection {
            connection.abort(code)
        } else {
            self.state.value.pool.remove(exchange)
            self.fail(exchange, code)
        }
    }

    private func fail(_ exchange: HTTPClientExchange, _ code: HTTPClientError.Code) {
        exchange.finish(.failure(HTTPClientError(code: code, requestSent: false)))
    }
}
