package import Logging
package import NIOCore
import NIOPosix
package import NIOSSL
import Synchronization

/// An HTTP/1.1 server that keeps a request on its connection's event loop.
///
/// Each request runs in one task whose executor is the loop of its connection. The server bounds heads, bodies and
/// times. It refuses every request that could be read in two ways before a responder sees it.
package final class HTTPServer: Sendable {
    /// The configuration's durations in the loop's unit, converted once.
    struct Timeouts: Sendable {
        let head: TimeAmount
        let body: TimeAmount
        let writeStall: TimeAmount
        let keepAlive: TimeAmount
        let linger: TimeAmount
        let settling: TimeAmount
    }

    private struct State {
        var listener: HTTPListener?
        var encryption: NIOSSLContext?
        var isStarted = false
        var isStopped = false
    }

    let configuration: HTTPServerConfiguration
    let timeouts: Timeouts
    let scanLimits: HTTPHeadScanner.Limits
    let responder: any HTTPServerResponder
    let logger: Logger
    let bodies: HTTPBodyBudget
    private let connections: HTTPConnectionBudget
    private let draining = Atomic<Bool>(false)
    private let cutOff = Atomic<Int>(0)
    private let eventLoopGroup: any EventLoopGroup
    let loops: [ObjectIdentifier: HTTPServerLoop]
    private let state = Mutex(State())

    /// Distributes connections over the group's loops. Logs failures, start and stop at debug level.
    package init(
        configuration: HTTPServerConfiguration,
        responder: any HTTPServerResponder,
        eventLoopGroup: any EventLoopGroup,
        logger: Logger
    ) {
        self.configuration = configuration
        self.timeouts = Timeouts(
            head: TimeAmount(configuration.headTimeout),
            body: TimeAmount(configuration.bodyTimeout),
            writeStall: TimeAmount(configuration.writeStallTimeout),
            keepAlive: TimeAmount(configuration.keepAliveTimeout),
            linger: TimeAmount(configuration.lingerTimeout),
            settling: TimeAmount(configuration.settlingTime)
        )
        self.scanLimits = HTTPHeadScanner.Limits(
            maxHeadBytes: configuration.maxHeadBytes,
            // Room for the longest method and the version beside the target. The parser measures the target.
            maxStartLineBytes: configuration.maxURIBytes + 64,
            maxFieldBytes: configuration.maxFieldBytes,
            maxFields: configuration.maxFields
        )
        self.responder = responder
        self.logger = logger
        self.bodies = HTTPBodyBudget(limit: configuration.maxBufferedBytes)
        self.connections = HTTPConnectionBudget(limit: configuration.maxConnections)
        self.eventLoopGroup = eventLoopGroup
        var loops: [ObjectIdentifier: HTTPServerLoop] = [:]
        for eventLoop in eventLoopGroup.makeIterator() {
            loops[ObjectIdentifier(eventLoop)] = HTTPServerLoop(eventLoop: eventLoop, configuration: configuration)
        }
        self.loops = loops
    }

    package var localAddress: SocketAddress? { self.state.withLock { $0.listener?.channel.localAddress } }

    package var port: Int? { self.localAddress?.port }

    package var openConnections: Int { self.connections.open }

    /// Requests that a shutdown cut off.
    package var requestsCutOff: Int { self.cutOff.load(ordering: .relaxed) }

    /// True if every answer ends its connection.
    var isDraining: Bool { self.draining.load(ordering: .relaxed) }

    /// Binds the address and starts to accept connections.
    package func start() async throws {
        let configuration = self.configuration
        let encryption = try configuration.tls.map { try Self.encryption($0) }
        let isFirst = self.state.withLock { state in
            defer { state.isStarted = true }
            // A reload may have set another certificate before.
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
                        HTTPDescriptorReserveHandler(onClose: configuration.onClose, logger: self.logger)
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
            settlingTime: self.timeouts.settling,
            logger: self.logger
        )
        self.state.withLock { $0.listener = listener }
        self.logger.debug(
            "Listening.",
            metadata: [
                "listener": "\(configuration.name)", "address": "\(configuration.host)",
                "port": .stringConvertible(self.port ?? 0),
            ]
        )
    }

    /// Uses another certificate for connections accepted from now on. If it throws, the old one stays in use.
    package func reload(tls: TLSConfiguration) throws {
        let encryption = try Self.encryption(tls)
        self.state.withLock { $0.encryption = encryption }
    }

    /// Makes every later answer end its connection. New connections are still accepted.
    package func beginDraining() {
        self.draining.store(true, ordering: .relaxed)
    }

    /// Stops listening, closes idle connections, and waits for running requests.
    ///
    /// After the grace period, the remaining connections are closed, and their requests' tasks are cancelled.
    package func shutdown(grace: Duration) async {
        self.beginDraining()
        let listener = self.state.withLock { $0.listener }
        await listener?.close()
        self.connections.shut()
        let loops = self.loops.values
        for loop in loops { loop.closeIdle() }
        let expiry = self.eventLoopGroup.next()
            .scheduleTask(in: TimeAmount(grace)) {
                for loop in loops { loop.closeAll { self.cutOff.add($0, ordering: .relaxed) } }
            }
        await self.connections.waitUntilEmpty()
        expiry.cancel()
        // A forced shutdown is a second call, which waits above like the first. Only one of them logs the end.
        let isFirst = self.state.withLock { state in
            defer { state.isStopped = true }
            return !state.isStopped
        }
        guard isFirst else { return }
        self.logger.debug("Listener closed.", metadata: ["listener": "\(self.configuration.name)"])
        guard self.requestsCutOff > 0 else { return }
        self.logger.warning(
            "Requests were cut off, because the time to finish them was over.",
            metadata: ["requests": .stringConvertible(self.requestsCutOff)]
        )
    }

    // MARK: Connections

    /// Prepares an accepted channel, on its loop.
    private func admit(_ channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        let encryption = self.state.withLock { $0.encryption }
        guard let loop = self.loops[ObjectIdentifier(channel.eventLoop)] else {
            throw ChannelError.operationUnsupported
        }
        var admission = self.connections.admit()
        if case .full = admission, loop.evict() { admission = self.connections.admit(replacing: true) }
        switch admission {
        case .shut:
            throw ChannelError.alreadyClosed
        case .full:
            // A handshake is too expensive under this load, and without one no answer can be sent.
            guard encryption == nil else {
                self.configuration.onClose(.tooManyConnections)
                throw ChannelError.alreadyClosed
            }
            let request = HTTPRefusedRequest(remoteAddress: channel.remoteAddress?.ipAddress)
            let response = self.configuration.refusalResponse(.tooManyConnections, request)
            let date = loop.date(at: channel.eventLoop.now)
            try pipeline.addHandler(RejectHandler(response: response, date: date))
            return
        case .admitted:
            break
        }
        let connections = self.connections
        channel.closeFuture.whenComplete { _ in connections.leave() }
        if let encryption {
            try pipeline.addHandler(NIOSSLServerHandler(context: encryption))
        }
        let connection = HTTPServerConnection(
            server: self,
            loop: loop,
            info: HTTPServerRequest.ConnectionInfo(
                remoteAddress: channel.remoteAddress?.ipAddress,
                isTLS: encryption != nil,
                eventLoop: channel.eventLoop
            )
        )
        try pipeline.addHandler(connection)
        loop.add(connection)
    }

    /// Answers a connection for which there is no room, and closes it.
    private final class RejectHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let response: HTTPServerResponse
        private let date: [UInt8]

        init(response: HTTPServerResponse, date: [UInt8]) {
            self.response = response
            self.date = date
        }

        func channelActive(context: ChannelHandlerContext) {
            context.send(HTTPOutgoingResponse(response: self.response, connection: .close, date: self.date))
            context.close(promise: nil)
        }
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
