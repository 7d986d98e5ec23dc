import NIOCore
import NIOPosix
import NIOSSL

/// Opens connections to one origin.
struct HTTPClientConnector: Sendable {
    typealias Completion = (Result<HTTPClientConnection, HTTPClientError>) -> Void

    private let origin: HTTPOrigin
    /// The origin's address when its host is one: nothing is resolved then, and no server name is sent.
    private let address: SocketAddress?
    private let encryption: NIOSSLContext?

    init(origin: HTTPOrigin, tls: TLSConfiguration?) throws {
        self.origin = origin
        self.address = try? SocketAddress(ipAddress: origin.host, port: origin.port)
        switch origin.scheme {
        case .http:
            self.encryption = nil
        case .https:
            var tls = tls ?? TLSConfiguration.makeClientConfiguration()
            switch tls.minimumTLSVersion {
            case .tlsv1, .tlsv11: tls.minimumTLSVersion = .tlsv12
            case .tlsv12, .tlsv13: break
            }
            if tls.applicationProtocols.isEmpty {
                tls.applicationProtocols = ["http/1.1"]
            }
            self.encryption = try NIOSSLContext(configuration: tls)
        }
    }

    /// Opens a connection on a lane's loop, and reports there once it is ready or has failed.
    func open(for lane: HTTPClientLane, then completion: @escaping Completion) {
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
                    let connection = HTTPClientConnection(lane: lane, isEncrypted: encryption != nil)
                    if let encryption {
                        try pipeline.addHandler(NIOSSLClientHandler(context: encryption, serverHostname: serverName))
                    }
                    try pipeline.addHandler(HTTPClientWireHandler(connection: connection))
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
                switch result.flatMap({ channel in Result { try Self.connection(of: channel) } }) {
                case .success(let connection):
                    connection.whenOpened(until: deadline, completion)
                case .failure(let error):
                    completion(.failure(HTTPClientError(code: Self.code(for: error), requestSent: false, cause: error)))
                }
            }
    }

    private static func connection(of channel: any Channel) throws -> HTTPClientConnection {
        try channel.pipeline.syncOperations.handler(type: HTTPClientWireHandler.self).connection
    }

    private static func code(for error: any Error) -> HTTPClientError.Code {
        if case .some(.connectTimeout) = error as? ChannelError {
            return .connectTimeout
        }
        return error is NIOSSLError ? .tlsFailed : .connectFailed
    }
}
