package import Logging
package import NIOCore
import NIOPosix
package import NIOSSL
import Synchronization

/// An HTTP/1.1 server that keeps a request on its connection's event loop.
///
/// Each request runs in one task whose executor is the loop of its connection. The server bounds heads, bodies and
/// times, and refuses whatever could be read in two ways, before a responder sees it.
package final class HTTPServer: Sendable {
    private struct State {
        var listener: HTTPListener?
        var encryption: NIOSSLContext?
        var isStarted = false
        var isStopped = false
    }

    private let core: HTTPServerCore
    private let eventLoopGroup: any EventLoopGroup
    private let lanes: [ObjectIdentifier: HTTPServerLane]
    private let state = Mutex(State())

    /// Creates a server that does not listen yet.
    ///
    /// - Parameters:
    ///   - configuration: where to listen, and the limits.
    ///   - responder: answers the requests.
    ///   - eventLoopGroup: the loops connections are spread over.
    ///   - logger: used for connections that fail, at debug level, and for starting and stopping.
    package init(
        configuration: HTTPServerConfiguration,
        responder: any HTTPServerResponder,
        eventLoopGroup: any EventLoopGroup,
        logger: Logger
    ) {
        self.core = HTTPServerCore(configuration: configuration, responder: responder, logger: logger)
        self.eventLoopGroup = eventLoopGroup
        var lanes: [ObjectIdentifier: HTTPServerLane] = [:]
        for eventLoop in eventLoopGroup.makeIterator() {
            lanes[ObjectIdentifier(eventLoop)] = HTTPServerLane(eventLoop: eventLoop, configuration: configuration)
        }
        self.lanes = lanes
    }

    /// The address in use, once started.
    package var localAddress: SocketAddress? {
        self.state.withLock { $0.listener?.channel.localAddress }
    }

    /// The port in use, once started.
    package var port: Int? {
        self.localAddress?.port
    }

    /// Connections open now.
    package var openConnections: Int {
        self.core.gauge.open
    }

    /// Bytes of request bodies held now.
    package var heldBodyBytes: Int {
        self.core.bodies.heldBytes
    }

    /// Binds the address and accepts connections from then on.
    ///
    /// - Throws: what binding or the TLS configuration met.
    package func start() async throws {
        let configuration = self.core.configuration
        let encryption = try configuration.tls.map { try Self.encryption($0) }
        let isFirst = self.state.withLock { state in
            defer { state.isStarted = true }
            // A reload may have come first.
            if state.encryption == nil { state.encryption = encryption }
            return !state.isStarted
        }
        precondition(isFirst, "An HTTPServer starts once.")
        let channel = try await ServerBootstrap(group: self.eventLoopGroup)
            .serverChannelOption(.backlog, value: CInt(clamping: configuration.backlog))
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        HTTPDescriptorReserveHandler(onCut: configuration.onCut, logger: self.core.logger)
                    )
                }
            }
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.writeBufferWaterMark, value: .unwritableUntilFlushed)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try self.admit(channel) }
            }
            .bind(host: configuration.host, port: configuration.port)
            .get()
        let listener = HTTPListener(
            channel: channel,
            eventLoopGroup: self.eventLoopGroup,
            settlingTime: self.core.timeouts.settling,
            logger: self.core.logger
        )
        self.state.withLock { $0.listener = listener }
        self.core.logger.info(
            "Listening.",
            metadata: [
                "listener": "\(configuration.name)", "address": "\(configuration.host)", "port": "\(self.port ?? 0)",
            ]
        )
    }

    /// Uses another certificate for the connections accepted from now on.
    ///
    /// - Parameter tls: the new configuration.
    /// - Throws: what is wrong with it; the old one then stays in use.
    package func reload(tls: TLSConfiguration) throws {
        let encryption = try Self.encryption(tls)
        self.state.withLock { $0.encryption = encryption }
    }

    /// From now on every answer ends its connection; new connections are still accepted.
    package func beginDraining() {
        self.core.beginDraining()
    }

    /// Stops listening, closes idle connections, and waits for the running requests.
    ///
    /// - Parameter grace: how long to wait; what is still open then is closed, and its tasks are cancelled.
    package func shutdown(grace: Duration) async {
        self.core.beginDraining()
        let listener = self.state.withLock { $0.listener }
        await listener?.close()
        self.core.gauge.shut()
        for lane in self.lanes.values {
            lane.closeIdle()
        }
        let lanes = self.lanes.values
        let logger = self.core.logger
        let expiry = self.eventLoopGroup.next()
            .scheduleTask(in: TimeAmount(grace)) {
                for lane in lanes {
                    lane.closeAll(logger: logger)
                }
            }
        await self.core.gauge.waitUntilEmpty()
        expiry.cancel()
        // One that is told to hurry is waited for twice.
        let isFirst = self.state.withLock { state in
            defer { state.isStopped = true }
            return !state.isStopped
        }
        guard isFirst else { return }
        self.core.logger.info("Stopped.", metadata: ["listener": "\(self.core.configuration.name)"])
    }

    // MARK: Connections

    /// Prepares an accepted channel, on its loop.
    private func admit(_ channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        let encryption = self.state.withLock { $0.encryption }
        guard let lane = self.lanes[ObjectIdentifier(channel.eventLoop)] else {
            throw ChannelError.operationUnsupported
        }
        var admission = self.core.gauge.admit()
        if case .full = admission, lane.evict() { admission = self.core.gauge.admit(inPlace: true) }
        switch admission {
        case .shut:
            throw ChannelError.alreadyClosed
        case .full:
            // A handshake costs more than there is to give; without one there is no answer to send.
            guard encryption == nil else {
                self.core.configuration.onCut(.tooManyConnections)
                throw ChannelError.alreadyClosed
            }
            let request = HTTPRefusedRequest(remoteAddress: channel.remoteAddress?.ipAddress)
            let response = self.core.configuration.refusalResponse(.tooManyConnections, request)
            let date = lane.date(at: channel.eventLoop.now)
            try pipeline.addHandler(HTTPTurnAwayHandler(response: response, date: date))
            return
        case .admitted:
            break
        }
        let gauge = self.core.gauge
        channel.closeFuture.whenComplete { _ in gauge.leave() }
        let connection = HTTPServerConnection(
            core: self.core,
            lane: lane,
            info: HTTPConnectionInfo(
                remoteAddress: channel.remoteAddress?.ipAddress,
                isTLS: encryption != nil,
                eventLoop: channel.eventLoop
            )
        )
        if let encryption {
            try pipeline.addHandler(NIOSSLServerHandler(context: encryption))
        }
        try pipeline.addHandler(HTTPServerWireHandler(connection: connection))
        lane.add(connection)
    }

    private static func encryption(_ configuration: TLSConfiguration) throws -> NIOSSLContext {
        var configuration = configuration
        switch configuration.minimumTLSVersion {
        case .tlsv1, .tlsv11: configuration.minimumTLSVersion = .tlsv12
        case .tlsv12, .tlsv13: break
        }
        if configuration.applicationProtocols.isEmpty {
            configuration.applicationProtocols = ["http/1.1"]
        }
        return try NIOSSLContext(configuration: configuration)
    }
}
