import NIOCore

/// HTTP/1.1: an exchange has a connection to itself.
extension HTTPClientLane {
    /// Takes back a connection that is ready for an exchange.
    func settle(_ connection: HTTPClientConnection) {
        self.state.value.exclusive.checkIn(connection, from: connection.taker)
        connection.taker = nil
        connection.rest()
        self.serveOnConnections()
    }

    /// Forgets a connection that has ended, and opens another if an exchange waits for its place.
    func ended(_ connection: HTTPClientConnection) {
        // One that was never handed out has failed to open, and its place is freed where that is told.
        guard self.state.value.exclusiveConnections.removeValue(forKey: ObjectIdentifier(connection)) != nil else {
            return
        }
        self.freeSlot(of: connection, from: connection.taker)
    }

    /// Finds an idle connection for an exchange, opens one, or lets it wait.
    func placeOnConnection(_ exchange: HTTPClientExchange) {
        while true {
            switch self.state.value.exclusive.checkOut(for: exchange, of: exchange.request.tenant) {
            case .place(.reuse(let connection)):
                guard self.start(exchange, on: connection) else { continue }
            case .place(.connect):
                self.startTimeout(of: exchange)
                self.open(for: exchange)
            case .wait(let displaced):
                self.startTimeout(of: exchange)
                if let displaced { self.fail(displaced, .poolExhausted) }
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

    /// Gives what is free to those that wait.
    private func serveOnConnections() {
        while let (exchange, place) = self.state.value.exclusive.next() {
            switch place {
            case .reuse(let connection):
                if !self.start(exchange, on: connection), exchange.isOpen { self.placeOnConnection(exchange) }
            case .connect:
                self.open(for: exchange)
            }
        }
    }

    private func start(_ exchange: HTTPClientExchange, on connection: HTTPClientConnection) -> Bool {
        connection.taker = exchange.request.tenant
        guard connection.isUsable, exchange.run(on: .http1(connection)) else {
            connection.abort(.connectionClosed)
            return false
        }
        connection.send(exchange)
        return true
    }

    private func open(for exchange: HTTPClientExchange) {
        let tenant = exchange.request.tenant
        self.connector.open(for: self) { result in
            switch result {
            case .success(.http1(let connection)):
                self.state.value.exclusiveConnections[ObjectIdentifier(connection)] = connection
                connection.taker = tenant
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
                // Exchanges that wait stay queued.
                self.state.value.exclusive.freeSlot(of: nil, from: tenant)
                self.upgrade(to: connection, for: exchange)
            case .failure(let error):
                self.log(error)
                exchange.finish(.failure(error))
                self.freeSlot(of: nil, from: tenant)
            }
        }
    }

    private func freeSlot(of connection: HTTPClientConnection?, from tenant: Int?) {
        self.state.value.exclusive.freeSlot(of: connection, from: tenant)
        self.serveOnConnections()
    }
}
