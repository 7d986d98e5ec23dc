package import Logging
package import NIOCore
import NIOPosix
package import NIOSSL

/// Commands to one Redis or Valkey server, over a pipelined connection on each event loop.
///
/// Each loop connects at its first command, and from then on keeps a connection. Pauses between attempts grow to half a
/// second. A command waits for an attempt in progress, and fails at once between attempts. It is sent only once: if no
/// reply arrives, the error says so, and the caller decides. If the location names Sentinels, each attempt asks them
/// again, and so follows a fail-over.
package final class RedisClient: Sendable {
    /// A client's connection settings.
    package struct Configuration: Sendable {
        package var location: RedisLocation
        package var password: String?
        /// The name in the server's list of clients, without spaces.
        package var clientName: String
        /// The verification of a server with TLS.
        package var tls: TLSConfiguration = {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.minimumTLSVersion = .tlsv12
            return tls
        }()
        /// The time from submitting a command to its reply.
        package var callTimeout = Duration.milliseconds(25)
        /// The time for opening a connection. The server has the same time again to answer the connection's first
        /// commands, such as `HELLO`.
        package var connectTimeout = Duration.seconds(1)
        /// Commands that may wait for replies on one connection.
        package var maxCallsPerConnection = 10_000
        package var replyLimits = RESPParser.Limits()

        package init(location: RedisLocation, password: String? = nil, clientName: String = "fcm-gateway") {
            self.location = location
            self.password = password
            self.clientName = clientName
        }
    }

    private let eventLoopGroup: any EventLoopGroup
    private let loops: [ObjectIdentifier: Loop]

    /// A client without connections. With TLS it reads the system's trust roots, so don't create it on an event loop.
    package init(
        _ configuration: Configuration,
        eventLoopGroup: any EventLoopGroup,
        logger: Logger
    ) throws {
        self.eventLoopGroup = eventLoopGroup
        let encryption = configuration.location.usesTLS ? try NIOSSLContext(configuration: configuration.tls) : nil
        var loops: [ObjectIdentifier: Loop] = [:]
        for eventLoop in eventLoopGroup.makeIterator() {
            loops[ObjectIdentifier(eventLoop)] = Loop(
                eventLoop: eventLoop,
                configuration: configuration,
                encryption: encryption,
                logger: logger
            )
        }
        self.loops = loops
    }

    /// Sends a command and returns its reply, which may be an error of the server.
    ///
    /// A command never times out before an earlier one on its connection. So give a timeout that
    /// differs from the configured one only if no other commands follow closely.
    package func call(
        _ command: RedisCommand,
        timeout: Duration? = nil
    ) async throws(RedisClientError) -> RESPValue {
        guard let loop = self.loop() else { throw RedisClientError(.shutDown, "There is no event loop") }
        let outcome = await withCheckedContinuation { continuation in
            loop.submit(command, timeout: timeout, continuation)
        }
        return try outcome.get()
    }

    /// Closes all connections. Current and later commands fail with `shutDown`.
    package func shutdown() async {
        for loop in self.loops.values { await loop.shutDown() }
    }

    /// Returns the loop that runs the calling task, or any loop if none of them does.
    private func loop() -> Loop? {
        if let eventLoop = MultiThreadedEventLoopGroup.currentEventLoop,
            let loop = self.loops[ObjectIdentifier(eventLoop)]
        {
            return loop
        }
        return self.loops[ObjectIdentifier(self.eventLoopGroup.next())]
    }
}

extension RedisClient {
    /// The part of a client on one event loop: its connection, and the attempts to make one.
    final class Loop: Sendable {
        private enum Phase {
            /// No command has arrived yet. Next: `connecting`, `shutDown`.
            case idle
            /// A channel is being opened, or its connection introduces itself. Next: `connected`, `resting`,
            /// `shutDown`.
            case connecting(RedisConnection)
            /// Next: `resting`, `shutDown`.
            case connected(RedisConnection)
            /// Pauses until the next attempt. Next: `connecting`, `shutDown`.
            case resting(RedisClientError)
            case shutDown
        }

        private struct State {
            var phase = Phase.idle
            /// Calls that wait for the current attempt, by number.
            var waiting: [UInt64: RedisCall] = [:]
            var nextNumber: UInt64 = 0
            /// Attempts that failed since the last connection.
            var failures = 0
            /// The index of the next endpoint to try.
            var nextEndpoint = 0
        }

        private static let shortestRest = Duration.milliseconds(25)
        private static let longestRest = Duration.milliseconds(500)
        /// The pause no longer grows after this many attempts.
        private static let growingRests = 5

        private let eventLoop: any EventLoop
        private let configuration: RedisClient.Configuration
        private let encryption: NIOSSLContext?
        private let logger: Logger
        private let state: NIOLoopBoundBox<State>

        init(
            eventLoop: any EventLoop,
            configuration: RedisClient.Configuration,
            encryption: NIOSSLContext?,
            logger: Logger
        ) {
            self.eventLoop = eventLoop
            self.configuration = configuration
            self.encryption = encryption
            self.logger = logger
            self.state = .makeBoxSendingValue(State(), eventLoop: eventLoop)
        }

        // MARK: From any thread

        func submit(
            _ command: RedisCommand,
            timeout: Duration?,
            _ continuation: CheckedContinuation<RedisCall.Outcome, Never>
        ) {
            let call = RedisCall(
                command: command,
                deadline: .now() + TimeAmount(timeout ?? self.configuration.callTimeout),
                continuation: continuation
            )
            if self.eventLoop.inEventLoop {
                self.begin(call)
            } else {
                self.eventLoop.execute { self.begin(call) }
            }
        }

        func shutDown() async {
            try? await self.eventLoop
                .submit {
                    let error = RedisClientError(.shutDown, "The client is shut down")
                    let phase = self.state.value.phase
                    self.state.value.phase = .shutDown
                    switch phase {
                    case .connecting(let connection), .connected(let connection): connection.close(error)
                    case .idle, .resting, .shutDown: break
                    }
                    self.failWaiting(error)
                }
                .get()
        }

        // MARK: Calls, on the loop

        private func begin(_ call: RedisCall) {
            switch self.state.value.phase {
            case .connected(let connection):
                connection.submit(call)
            case .resting(let error):
                call.finish(.failure(error.beforeSending))
            case .shutDown:
                call.finish(.failure(RedisClientError(.shutDown, "The client is shut down")))
            case .idle:
                self.wait(call)
                self.connect()
            case .connecting:
                self.wait(call)
            }
        }

        private func wait(_ call: RedisCall) {
            guard self.state.value.waiting.count < self.configuration.maxCallsPerConnection else {
                call.finish(
                    .failure(RedisClientError(.tooManyCommands, "Too many commands are waiting for a connection"))
                )
                return
            }
            let number = self.state.value.nextNumber
            self.state.value.nextNumber += 1
            self.state.value.waiting[number] = call
            self.eventLoop.assumeIsolated()
                .scheduleTask(deadline: call.deadline) {
                    let error = RedisClientError(.unavailable, "No connection was ready in time")
                    self.state.value.waiting.removeValue(forKey: number)?.finish(.failure(error))
                }
        }

        private func failWaiting(_ error: RedisClientError) {
            let calls = self.state.value.waiting
            self.state.value.waiting = [:]
            for call in calls.values { call.finish(.failure(error.beforeSending)) }
        }

        // MARK: The connection, on the loop

        private func connect() {
            if case .shutDown = self.state.value.phase { return }
            let location = self.configuration.location
            let endpoint = location.endpoints[self.state.value.nextEndpoint % location.endpoints.count]
            // The next attempt begins with the next endpoint, whether this one succeeds or fails.
            self.state.value.nextEndpoint = (self.state.value.nextEndpoint + 1) % location.endpoints.count
            self.open(endpoint, service: location.service)
        }

        /// Opens a connection to the server, or to a Sentinel that names it.
        private func open(_ endpoint: RedisLocation.Endpoint, service: String?) {
            let location = self.configuration.location
            let connection = RedisConnection(
                loop: self,
                introduction: RedisConnection.State.Introduction(
                    user: location.user,
                    password: self.configuration.password,
                    name: self.configuration.clientName,
                    database: location.database,
                    service: service
                ),
                configuration: self.configuration
            )
            self.state.value.phase = .connecting(connection)
            let address = try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port)
            let encryption = self.encryption
            let bound = NIOLoopBound(connection, eventLoop: self.eventLoop)
            let bootstrap = ClientBootstrap(group: self.eventLoop)
                .connectTimeout(TimeAmount(self.configuration.connectTimeout))
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        if let encryption {
                            let name = address == nil ? endpoint.host : nil
                            try pipeline.addHandler(NIOSSLClientHandler(context: encryption, serverHostname: name))
                        }
                        try pipeline.addHandler(bound.value)
                    }
                }
            let connecting =
                if let address {
                    bootstrap.connect(to: address)
                } else {
                    bootstrap.connect(host: endpoint.host, port: endpoint.port)
                }
            connecting.assumeIsolated()
                .whenFailure { error in
                    connection.close(RedisClientError(.unavailable, "\(endpoint) can't be reached", causedBy: error))
                }
        }

        func ready(_ connection: RedisConnection) {
            guard case .connecting(let current) = self.state.value.phase, current === connection else {
                connection.close(RedisClientError(.shutDown, "The client is shut down"))
                return
            }
            self.state.value.phase = .connected(connection)
            self.state.value.failures = 0
            self.logger.debug("Connected to Redis.")
            let calls = self.state.value.waiting.sorted { $0.key < $1.key }
            self.state.value.waiting = [:]
            for (_, call) in calls { connection.submit(call) }
        }

        func discovered(_ endpoint: RedisLocation.Endpoint, by connection: RedisConnection) {
            guard case .connecting(let current) = self.state.value.phase, current === connection else {
                connection.close(RedisClientError(.shutDown, "The client is shut down"))
                return
            }
            // This call moves the phase to the next connection, so the end of the current one has no effect.
            self.open(endpoint, service: nil)
            connection.close(RedisClientError(.connectionClosed, "The Sentinel has named the server"))
        }

        /// A connection has ended, by its own decision or its peer's.
        func ended(_ connection: RedisConnection, _ error: RedisClientError) {
            switch self.state.value.phase {
            case .connecting(let current), .connected(let current):
                guard current === connection else { return }
            case .idle, .resting, .shutDown:
                return
            }
            self.logger.debug("The connection to Redis has ended.", metadata: ["error": "\(error)"])
            let rest = Self.rest(after: self.state.value.failures, jitter: .random(in: 0.5...1))
            self.state.value.failures += 1
            self.state.value.phase = .resting(error)
            self.failWaiting(error)
            self.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(rest)) { self.connect() }
        }

        /// The pause after a failure. `failures` is the number of consecutive failures before this one.
        ///
        /// It doubles from 25 ms to 500 ms and is multiplied by the jitter, 0.5 to 1. Example: after the third failure
        /// in a row (`failures` is 2) it is 50 to 100 ms.
        static func rest(after failures: Int, jitter: Double) -> Duration {
            let rest = Self.shortestRest * (1 << min(failures, Self.growingRests))
            return min(rest, Self.longestRest) * jitter
        }
    }
}
