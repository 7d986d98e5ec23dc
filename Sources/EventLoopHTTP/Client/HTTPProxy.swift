import NIOCore
import NIOExtras
import NIOHTTP1

/// A proxy that opens tunnels to origins by `CONNECT` (RFC 9110, 9.3.6). A tunnel carries the origin's own TLS.
package struct HTTPProxy: Sendable {
    package let host: String
    package let port: Int
    /// Returns the value of `Proxy-Authorization`; `nil` for a proxy without credentials.
    private let authorization: (@Sendable () -> String)?
    /// The origins that are connected to directly: host names, which stand for their subdomains too, and addresses.
    private let direct: [String]

    package init(host: String, port: Int, direct: [String] = [], authorization: (@Sendable () -> String)? = nil) {
        (self.host, self.port, self.authorization) = (host, port, authorization)
        self.direct = direct.map { name in
            String(name.lowercased().drop { $0 == "." || $0 == "[" }.prefix { $0 != "]" })
        }
    }

    /// True if connections to an origin use the proxy.
    func serves(_ origin: HTTPOrigin) -> Bool {
        !self.direct.contains { origin.host == $0 || origin.host.hasSuffix(".\($0)") }
    }

    /// Opens a tunnel to an origin over a connection to the proxy. The channel then carries the tunnel's bytes.
    func openTunnel(to origin: HTTPOrigin, over channel: any Channel, until deadline: NIODeadline) -> EventLoopFuture<
        Void
    > {
        let opened = channel.eventLoop.makePromise(of: Void.self)
        let isAddress = origin.host.utf8.contains(UInt8(ascii: ":"))
        let host = isAddress ? "[\(origin.host)]" : origin.host
        var fields: HTTPHeaders = ["Host": "\(host):\(origin.port)"]
        if let authorization = self.authorization { fields.add(name: "Proxy-Authorization", value: authorization()) }
        let pipeline = channel.pipeline.syncOperations
        let encoder = HTTPRequestEncoder()
        // The origin's first bytes follow the proxy's answer only after the client's own.
        let decoder = ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes))
        let connecting = NIOHTTP1ProxyConnectHandler(
            targetHost: host,
            targetPort: origin.port,
            headers: fields,
            deadline: deadline,
            promise: opened
        )
        do {
            try pipeline.addHandlers(encoder, decoder, connecting)
        } catch {
            opened.fail(error)
        }
        let codecs = NIOLoopBound((encoder, decoder), eventLoop: channel.eventLoop)
        return opened.futureResult.flatMap {
            let pipeline = channel.pipeline.syncOperations
            return pipeline.removeHandler(codecs.value.1)
                .flatMap { channel.pipeline.syncOperations.removeHandler(codecs.value.0) }
        }
    }

    /// The reason for a failure on the way to a tunnel.
    static func code(for error: any Error) -> HTTPClientError.Code {
        error as? NIOHTTP1ProxyConnectHandler.Error == .proxyAuthenticationRequired()
            ? .proxyUnauthorized : .proxyFailed
    }
}
