import Logging
import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS

/// The verification of `https` origins, prepared once for all pools that share it.
///
/// Its initialiser reads the system's trust roots, which takes tens of milliseconds. Don't call it on an event loop.
package final class HTTPClientEncryption: Sendable {
    fileprivate let context: NIOSSLContext
    fileprivate let offersHTTP2: Bool

    package init(_ configuration: HTTPClientConfiguration) throws {
        var tls = configuration.tls ?? TLSConfiguration.makeClientConfiguration()
        switch tls.minimumTLSVersion {
        case .tlsv1, .tlsv11: tls.minimumTLSVersion = .tlsv12
        case .tlsv12, .tlsv13: break
        }
        if tls.applicationProtocols.isEmpty {
            let protocols = configuration.protocols.isEmpty ? [.http1] : configuration.protocols
            tls.applicationProtocols = protocols.map(\.rawValue)
        }
        self.context = try NIOSSLContext(configuration: tls)
        self.offersHTTP2 = tls.applicationProtocols.contains(HTTPClientProtocol.http2.rawValue)
    }
}

/// The state that all connections of one pool share, and how they are opened.
final class HTTPClientCore: Sendable {
    /// Interim answers before a final one.
    static let maxInformationalHeads = 8

    let authority: String
    let configuration: HTTPClientConfiguration
    let idleTimeout: TimeAmount
    let connectTimeout: TimeAmount
    let scanLimits: HTTPHeadScanner.Limits
    /// Bounds the incomplete answers of this origin.
    private let collecting: HTTPBodyBudget
    let http2: HTTP2Session.Settings
    let logger: Logger
    private let origin: HTTPOrigin
    /// The origin's host as an address, or nil. An address is not resolved, and no server name is sent.
    private let address: SocketAddress?
    private let proxy: HTTPProxy?
    private let encryption: NIOSSLContext?
    /// True if a connection may use HTTP/2. The first connection decides it.
    let offersHTTP2: Bool

    init(
        origin: HTTPOrigin,
        configuration: HTTPClientConfiguration,
        encryption: HTTPClientEncryption?,
        logger: Logger
    ) {
        self.origin = origin
        self.address = try? SocketAddress(ipAddress: origin.host, port: origin.port)
        self.proxy = configuration.proxy.flatMap { $0.serves(origin) ? $0 : nil }
        self.encryption = encryption?.context
        self.offersHTTP2 = encryption?.offersHTTP2 ?? false
        self.authority = origin.authority
        self.configuration = configuration
        self.idleTimeout = TimeAmount(configuration.idleTimeout)
        self.connectTimeout = TimeAmount(configuration.connectTimeout)
        self.scanLimits = HTTPHeadScanner.Limits(
            maxHeadBytes: configuration.maxResponseHeadBytes,
            maxStartLineBytes: configuration.maxResponseHeadBytes,
            maxFieldBytes: configuration.maxResponseHeadBytes,
            maxFields: configuration.maxResponseFields
        )
        self.collecting = HTTPBodyBudget(limit: configuration.collecting.limit / 2)
        self.http2 = HTTP2Session.Settings(configuration)
        self.logger = logger
    }

    func maxBodyBytes(for request: HTTPClientRequest) -> Int {
        min(request.maxResponseBodyBytes, self.configuration.maxResponseBodyBytes)
    }

    /// Counts bytes of an incomplete answer. Returns false, and counts nothing, if they exceed a limit.
    func hold(_ byteCount: Int) -> Bool {
        guard self.collecting.hold(byteCount) else { return false }
        guard self.configuration.collecting.hold(byteCount) else {
            self.collecting.release(byteCount)
            return false
        }
        return true
    }

    func release(_ byteCount: Int) {
        guard byteCount > 0 else { return }
        self.collecting.release(byteCount)
        self.configuration.collecting.release(byteCount)
    }

    // MARK: Opening

    typealias Completion = (Result<HTTPClientConnection, HTTPClientError>) -> Void

    /// Opens a connection on a loop. Reports there when it is ready or has failed.
    func connect(on loop: HTTPClientLoop, then completion: @escaping Completion) {
        let connections = self.configuration.connections
        guard connections.admit() == .admitted else {
            Self.fail(HTTPClientError(code: .poolExhausted, requestSent: false), on: loop, completion)
            return
        }
        let deadline = loop.eventLoop.now + self.connectTimeout
        let encryption = self.encryption
        let serverName = self.address == nil ? self.origin.host : nil
        let install: @Sendable (any Channel) throws -> Void = { channel in
            let pipeline = channel.pipeline.syncOperations
            if let encryption {
                try pipeline.addHandler(NIOSSLClientHandler(context: encryption, serverHostname: serverName))
                try pipeline.addHandler(Negotiation(loop: loop))
            } else {
                try pipeline.addHandler(HTTP1ClientConnection(loop: loop))
            }
        }
        let proxy = self.proxy
        let bootstrap = ClientBootstrap(group: loop.eventLoop)
            .connectTimeout(self.connectTimeout)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.writeBufferWaterMark, value: .unwritableUntilFlushed)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { if proxy == nil { try install(channel) } }
            }
        let connecting =
            if let proxy {
                bootstrap.connect(host: proxy.host, port: proxy.port)
            } else if let address = self.address {
                bootstrap.connect(to: address)
            } else {
                bootstrap.connect(host: self.origin.host, port: self.origin.port)
            }
        connecting.whenComplete { result in
            switch result {
            case .success(let channel): channel.closeFuture.whenComplete { _ in connections.leave() }
            case .failure: connections.leave()
            }
        }
        let opening =
            proxy.map { proxy in
                connecting.flatMap { [origin] channel in
                    proxy.openTunnel(to: origin, over: channel, until: deadline)
                        .flatMapThrowing {
                            try install(channel)
                            return channel
                        }
                }
            } ?? connecting
        // The proxy may leave a connection open that carries no tunnel.
        opening.whenFailure { _ in connecting.whenSuccess { $0.close(promise: nil) } }
        opening.assumeIsolated()
            .whenComplete { result in
                do {
                    let pipeline = try result.get().pipeline.syncOperations
                    if encryption == nil {
                        completion(.success(try pipeline.handler(type: HTTP1ClientConnection.self)))
                    } else {
                        let negotiation = try pipeline.handler(type: Negotiation.self)
                        negotiation.whenOpened(until: deadline, completion)
                    }
                } catch {
                    let code = proxy == nil ? Self.code(for: error) : HTTPProxy.code(for: error)
                    Self.fail(HTTPClientError(code: code, requestSent: false, cause: error), on: loop, completion)
                }
            }
    }

    /// Reports a failure in a later turn: the loop may open another connection, which may fail at once too.
    private static func fail(_ failure: HTTPClientError, on loop: HTTPClientLoop, _ completion: @escaping Completion) {
        loop.eventLoop.assumeIsolated().execute { completion(.failure(failure)) }
    }

    private static func code(for error: any Error) -> HTTPClientError.Code {
        if case .some(.connectTimeout) = error as? ChannelError {
            return .connectTimeout
        }
        return error is NIOSSLError ? .tlsFailed : .connectFailed
    }
}

extension HTTPClientCore {
    /// Waits until a connection is encrypted and a protocol is negotiated, then installs the protocol's handlers.
    ///
    /// It remains in the pipeline until the outcome has been reported.
    final class Negotiation: ChannelInboundHandler, RemovableChannelHandler {
        typealias InboundIn = ByteBuffer
        typealias InboundOut = ByteBuffer

        private enum Phase {
            /// The TLS handshake is in progress. Next: `greeting`, `over`.
            case shakingHands
            /// The connection waits for the peer's first HTTP/2 settings. Next: `over`.
            case greeting(HTTP2ClientConnection)
            /// The connection is ready, or has failed.
            case over(Result<HTTPClientConnection, HTTPClientError>)
        }

        /// An HTTP/2 connection writes no more while the system has yet to take this many bytes.
        private static let http2WaterMark = ChannelOptions.Types.WriteBufferWaterMark(low: 64 * 1024, high: 512 * 1024)

        private let loop: HTTPClientLoop
        private var phase = Phase.shakingHands
        private var context: ChannelHandlerContext?
        private var timeout: Scheduled<Void>?
        private var onOpened: HTTPClientCore.Completion?

        init(loop: HTTPClientLoop) {
            self.loop = loop
        }

        /// Reports when the connection is ready or has failed, and then leaves the pipeline.
        func whenOpened(until deadline: NIODeadline, _ onOpened: @escaping HTTPClientCore.Completion) {
            self.onOpened = onOpened
            self.timeout = self.loop.eventLoop.assumeIsolated()
                .scheduleTask(deadline: deadline) { self.fail(.connectTimeout, cause: nil) }
            self.report()
        }

        func handlerAdded(context: ChannelHandlerContext) {
            self.context = context
        }

        func handlerRemoved(context: ChannelHandlerContext) {
            self.fail(.connectFailed, cause: nil)
            self.context = nil
        }

        func channelInactive(context: ChannelHandlerContext) {
            self.fail(.connectFailed, cause: nil)
            context.fireChannelInactive()
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            guard case .shakingHands = self.phase,
                case .some(.handshakeCompleted(let negotiated)) = event as? TLSUserEvent
            else {
                context.fireUserInboundEventTriggered(event)
                return
            }
            self.install(negotiated.map(HTTPClientProtocol.init(rawValue:)) ?? .http1, context)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            switch self.phase {
            case .shakingHands: self.fail(Self.code(for: error), cause: error)
            case .greeting, .over: context.fireErrorCaught(error)
            }
        }

        /// A peer that closes amid the handshake has not objected to anything. Another connection may succeed.
        private static func code(for error: any Error) -> HTTPClientError.Code {
            if error is IOError { return .connectFailed }
            let end = NIOSSLError.handshakeFailed(.sslError([.eofDuringHandshake]))
            return error as? NIOSSLError == end ? .connectFailed : .tlsFailed
        }

        private func install(_ negotiated: HTTPClientProtocol?, _ context: ChannelHandlerContext) {
            let pipeline = context.pipeline.syncOperations
            do {
                switch negotiated {
                case .http1:
                    let connection = HTTP1ClientConnection(loop: self.loop)
                    try pipeline.addHandler(connection)
                    self.end(.success(connection))
                case .http2:
                    try context.channel.syncOptions?.setOption(.writeBufferWaterMark, value: Self.http2WaterMark)
                    let connection = HTTP2ClientConnection(loop: self.loop)
                    self.phase = .greeting(connection)
                    connection.whenGreeted { self.end($0) }
                    try pipeline.addHandler(connection)
                case nil:
                    self.fail(.tlsFailed, cause: HTTP2ClientConnection.Fault.noProtocol)
                }
            } catch {
                self.fail(.connectFailed, cause: error)
            }
        }

        private func fail(_ code: HTTPClientError.Code, cause: (any Error)?) {
            switch self.phase {
            case .shakingHands:
                // Set before closing, so that the transport's end does not replace the reason of the failure.
                self.phase = .over(.failure(HTTPClientError(code: code, requestSent: false, cause: cause)))
                self.context?.closeAtOnce()
                self.report()
            case .greeting(let connection):
                connection.abort(code, cause: cause)
            case .over:
                break
            }
        }

        private func end(_ outcome: Result<HTTPClientConnection, HTTPClientError>) {
            if case .over = self.phase { return }
            self.phase = .over(outcome)
            self.report()
        }

        private func report() {
            guard case .over(let outcome) = self.phase, let onOpened = self.onOpened else { return }
            self.onOpened = nil
            self.timeout?.cancel()
            if let context = self.context {
                context.pipeline.syncOperations.removeHandler(self, promise: nil)
            }
            onOpened(outcome)
        }
    }
}
