import NIOCore
import NIOPosix
import NIOSSL

/// How `https` origins are verified, made ready once for all pools that share it.
///
/// Making it reads the system's trust roots, which takes tens of milliseconds: not for an event loop.
package final class HTTPClientEncryption: Sendable {
    fileprivate let context: NIOSSLContext
    /// What connections are taken to speak before there has been one.
    fileprivate let expectedProtocol: HTTPClientProtocol

    /// Makes a configuration's TLS ready.
    ///
    /// - Throws: what is wrong with it.
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
        let offersHTTP2 = tls.applicationProtocols.contains(HTTPClientProtocol.http2.rawValue)
        self.expectedProtocol = offersHTTP2 ? .http2 : .http1
    }
}

/// Opens connections to one origin.
struct HTTPClientConnector: Sendable {
    typealias Completion = (Result<HTTPClientTransport, HTTPClientError>) -> Void

    private let origin: HTTPOrigin
    /// The origin's address when its host is one: nothing is resolved then, and no server name is sent.
    private let address: SocketAddress?
    private let encryption: NIOSSLContext?
    /// What connections are taken to speak before there has been one.
    let expectedProtocol: HTTPClientProtocol

    /// - Parameters:
    ///   - origin: where connections lead.
    ///   - encryption: how an `https` origin is verified; unused for any other.
    init(origin: HTTPOrigin, encryption: HTTPClientEncryption?) {
        self.origin = origin
        self.address = try? SocketAddress(ipAddress: origin.host, port: origin.port)
        self.encryption = encryption?.context
        self.expectedProtocol = encryption?.expectedProtocol ?? .http1
    }

    /// Opens a connection on a lane's loop, and reports there once it is ready or has failed.
    func open(for lane: HTTPClientLane, then completion: @escaping Completion) {
        let connections = lane.core.configuration.connections
        guard connections.admit() == .admitted else {
            Self.fail(HTTPClientError(code: .poolExhausted, requestSent: false), on: lane, completion)
            return
        }
        let deadline = lane.eventLoop.now + lane.core.connectTimeout
        let encryption = self.encryption
        let serverName = self.address == nil ? self.origin.host : nil
        let bootstrap = ClientBootstrap(group: lane.eventLoop)
            .connectTimeout(lane.core.connectTimeout)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.writeBufferWaterMark, value: .unwritableUntilFlushed)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let encryption {
                        try pipeline.addHandler(NIOSSLClientHandler(context: encryption, serverHostname: serverName))
                        try pipeline.addHandler(HTTPClientNegotiationHandler(lane: lane))
                    } else {
                        try pipeline.addHandler(HTTPClientWireHandler(connection: HTTPClientConnection(lane: lane)))
                    }
                }
            }
        let connecting =
            if let address = self.address {
                bootstrap.connect(to: address)
            } else {
                bootstrap.connect(host: self.origin.host, port: self.origin.port)
            }
        connecting.assumeIsolated()
            .whenComplete { result in
                switch result {
                case .success(let channel): channel.closeFuture.whenComplete { _ in connections.leave() }
                case .failure: connections.leave()
                }
                do {
                    let pipeline = try result.get().pipeline.syncOperations
                    if encryption == nil {
                        let connection = try pipeline.handler(type: HTTPClientWireHandler.self).connection
                        completion(.success(.http1(connection)))
                    } else {
                        let negotiation = try pipeline.handler(type: HTTPClientNegotiationHandler.self)
                        negotiation.whenOpened(until: deadline, completion)
                    }
                } catch {
                    let failure = HTTPClientError(code: Self.code(for: error), requestSent: false, cause: error)
                    Self.fail(failure, on: lane, completion)
                }
            }
    }

    /// Reports a failure, never at once: who is told may open another, which may fail at once as well.
    private static func fail(
        _ failure: HTTPClientError,
        on lane: HTTPClientLane,
        _ completion: @escaping Completion
    ) {
        lane.eventLoop.assumeIsolated().execute { completion(.failure(failure)) }
    }

    private static func code(for error: any Error) -> HTTPClientError.Code {
        if case .some(.connectTimeout) = error as? ChannelError {
            return .connectTimeout
        }
        return error is NIOSSLError ? .tlsFailed : .connectFailed
    }
}
