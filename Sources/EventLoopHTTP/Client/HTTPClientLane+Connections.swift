import NIOCore

/// HTTP/1.1: an exchange has a connection to itself.
extension HTTPClientLane {
    /// Takes back a connection that is ready for an exchange.
    func settle(_ connection: HTTPClientConnection) {
        while let exchange = self.state.value.exclusive.checkIn(connection) {
            if exchange.run(on: .http1(connection)) {
                connection.send(exchange)
                return
            }
        }
        connection.rest()
    }

    /// Forgets a connection that has ended, and opens another if an exchange waits for its place.
    func ended(_ connection: HTTPClientConnection) {
        // One that was never handed out has failed to open, and its place is freed where that is told.
        guard self.state.value.exclusiveConnections.removeValue(forKey: ObjectIdentifier(connection)) != nil else {
            return
        }
        self.freeSlot(of: connection)
    }

    /// Finds an idle connection for an exchange, opens one, or lets it wait.
    func placeOnConnection(_ exchange: HTTPClientExchange) {
        while true {
            switch self.state.value.exclusive.checkOut(for: exchange) {
            case .reuse(let connection):
                guard connection.isUsable, exchange.run(on: .http1(connection)) else {
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

    /// Takes in a connection that was expected to speak HTTP/2, and has everything that waits use others like it.
    func fallBack(on connection: HTTPClientConnection) {
        self.state.value.spoken = .http1
        let waiters = self.state.value.shared.removeAllWaiters()
        if self.state.value.exclusive.adopt() {
            self.state.value.exclusiveConnections[ObjectIdentifier(connection)] = connection
            if self.state.value.isShutDown {
                connection.abort(.shutDown)
            } else {
                self.settle(connection)
            }
        } else {
            connection.discard()
        }
        for exchange in waiters where self.mayGoOn(exchange) {
            self.place(exchange)
        }
    }

    private func open(for exchange: HTTPClientExchange) {
        self.connector.open(for: self) { result in
            switch result {
            case .success(.http1(let connection)):
                self.state.value.exclusiveConnections[ObjectIdentifier(connection)] = connection
                if self.state.value.isShutDown {
                    connection.abort(.shutDown)
                    self.fail(exchange, .shutDown)
                } else if exchange.run(on: .http1(connection)) {
                    connection.send(exchange)
                } else {
                    // Its caller gave up meanwhile; the connection serves another.
                    self.settle(connection)
                }
            case .success(.http2(let connection)):
                self.state.value.exclusive.surrenderSlot()
                self.upgrade(to: connection, for: exchange)
            case .failure(let error):
                self.log(error)
                exchange.finish(.failure(error))
                self.freeSlot(of: nil)
            }
        }
    }

    private func freeSlot(of connection: HTTPClientConnection?) {
        guard let exchange = self.state.value.exclusive.freeSlot(of: connection) else { return }
        self.open(for: exchange)
    }
}
