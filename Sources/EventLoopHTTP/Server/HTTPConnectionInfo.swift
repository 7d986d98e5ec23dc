package import NIOCore

/// What a responder may know about the connection a request came in on.
package struct HTTPConnectionInfo: Sendable {
    /// The peer's IP address as text, without the port; nil when the peer has none.
    package let remoteAddress: String?
    /// Whether the connection is encrypted by this server.
    package let isTLS: Bool
    /// The names in the client's verified certificate, read once, when the handshake is over: DNS names in lower case and
    /// URIs; empty without a certificate.
    package internal(set) var clientNames: [String]
    /// The loop the connection lives on, and its requests' tasks with it.
    package let eventLoop: any EventLoop

    /// Describes a connection.
    ///
    /// - Parameters:
    ///   - remoteAddress: the peer's IP address as text, without the port.
    ///   - isTLS: whether the connection is encrypted by this server.
    ///   - clientNames: the names in the client's verified certificate.
    ///   - eventLoop: the loop the connection lives on.
    package init(remoteAddress: String?, isTLS: Bool, clientNames: [String] = [], eventLoop: any EventLoop) {
        self.remoteAddress = remoteAddress
        self.isTLS = isTLS
        self.clientNames = clientNames
        self.eventLoop = eventLoop
    }
}
