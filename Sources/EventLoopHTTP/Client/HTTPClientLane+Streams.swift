import NIOCore

/// HTTP/2: exchanges share connections.
extension HTTPClientLane {
    /// Finds a stream for an exchange, opens a connection, or lets it wait.
    ///
    /// - Parameters:
    ///   - exchange: the exchange.
    ///   - avoided: the connection that has refused it, if one has.
    func placeOnStream(_ exchange: HTTPClientExchange, avoiding avoided: HTTP2ClientConnection? = nil) {
        while true {
            switch self.state.value.shared.admit(exchange, of: exchange.request.tenant, avoiding: avoided) {
            case .start(let connection):
                guard connection.isUsable else {
                    self.state.value.shared.streamEnded(on: connection, of: exchange.request.tenant)
                    self.drop(connection)
                    continue
                }
                self.start(exchange, on: connection)
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

    /// Repeats an exchange that a peer refused without having looked at it, elsewhere where that is possible.
    func retry(_ exchange: HTTPClientExchange, refusedBy connection: HTTP2ClientConnection) {
        guard exchange.waitAgain(maxRefusals: self.core.http2.maxRefusals) else {
            self.fail(exchange, .refused, cause: HTTP2ClientFault.refused)
            return
        }
        guard self.mayGoOn(exchange) else { return }
        switch self.state.value.spoken {
        case .http1: self.placeOnConnection(exchange)
        case .http2: self.placeOnStream(exchange, avoiding: connection)
        }
    }

    /// The place of an exchange's stream is free.
    func streamEnded(on connection: HTTP2ClientConnection, of exchange: HTTPClientExchange) {
        self.state.value.shared.streamEnded(on: connection, of: exchange.request.tenant)
        self.serveWaiters()
    }

    /// A connection carries another number of streams from now on.
    func streamLimitChanged(of connection: HTTP2ClientConnection) {
        self.state.value.shared.setLimit(connection.streamLimit, of: connection)
        self.serveWaiters()
        self.connectIfNeeded()
    }

    /// A connection takes no more exchanges; another takes its place if one is needed.
    func retire(_ connection: HTTP2ClientConnection) {
        let tenants = connection.streams.values.lazy.map(\.exchange.request.tenant)
        self.state.value.shared.retire(connection, carrying: tenants)
        self.connectIfNeeded()
    }

    /// Forgets a connection that has ended.
    func ended(_ connection: HTTP2ClientConnection) {
        self.state.value.sharedConnections[ObjectIdentifier(connection)] = nil
        self.retire(connection)
    }

    /// Takes in a connection that was expected to speak HTTP/1.1, and has everything that waits share it.
    func upgrade(to connection: HTTP2ClientConnection, for exchange: HTTPClientExchange) {
        self.state.value.spoken = .http2
        let waiters = [exchange] + self.state.value.exclusive.removeAllWaiters()
        self.state.value.shared.adopt(connection, streams: connection.streamLimit)
        self.register(connection)
        for exchange in waiters where exchange.isOpen && self.mayGoOn(exchange) {
            self.place(exchange)
        }
    }

    private func connectIfNeeded() {
        guard !self.state.value.isShutDown else { return }
        while self.state.value.shared.shouldConnect() {
            self.connect()
        }
    }

    private func connect() {
        self.connector.open(for: self) { result in
            switch result {
            case .success(.http2(let connection)):
                self.state.value.spoken = .http2
                self.state.value.shared.connected(connection, streams: connection.streamLimit)
                self.register(connection)
                self.serveWaiters()
                self.connectIfNeeded()
            case .success(.http1(let connection)):
                self.state.value.shared.attemptEnded()
                self.fallBack(on: connection)
            case .failure(let error):
                self.log(error)
                for exchange in self.state.value.shared.attemptFailed() {
                    exchange.finish(.failure(error))
                }
                // What waited for this attempt alone may now use any other connection.
                self.serveWaiters()
            }
        }
    }

    private func register(_ connection: HTTP2ClientConnection) {
        self.state.value.sharedConnections[ObjectIdentifier(connection)] = connection
        if self.state.value.isShutDown {
            connection.abort(.shutDown)
        }
    }

    private func serveWaiters() {
        while let (exchange, connection) = self.state.value.shared.next() {
            if connection.isUsable {
                self.start(exchange, on: connection)
            } else {
                self.state.value.shared.streamEnded(on: connection, of: exchange.request.tenant)
                self.drop(connection)
                self.place(exchange)
            }
        }
    }

    /// Ends a connection that turns out to be of no use.
    private func drop(_ connection: HTTP2ClientConnection) {
        // One that is closed already says so no second time.
        let tenants = connection.streams.values.lazy.map(\.exchange.request.tenant)
        self.state.value.shared.retire(connection, carrying: tenants)
        connection.abort(.connectionClosed)
    }

    private func start(_ exchange: HTTPClientExchange, on connection: HTTP2ClientConnection) {
        if !connection.start(exchange) {
            // Its caller gave up meanwhile.
            self.state.value.shared.streamEnded(on: connection, of: exchange.request.tenant)
        }
    }
}
