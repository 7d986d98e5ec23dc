package import NIOCore

/// What a responder may know about the connection a request came in on.
package struct HTTPConnectionInfo: Sendable {
    /// The peer's IP address as text, without the port; nil when the peer has none.
    package let remoteAddress: String?
    /// Whether the connection is encrypted by this server.
    package let isTLS: Bool
    /// The loop the connection lives on, and its requests' tasks with it.
    package let eventLoop: any EventLoop

    /// Describes a connection.
    ///
    /// - Parameters:
    ///   - remoteAddress: the peer's IP address as text, without the port.
    ///   - isTLS: whether the connection is encrypted by this server.
    ///   - eventLoop: the loop the connection lives on.
    package init(remoteAddress: String?, isTLS: Bool, eventLoop: any EventLoop) {
        self.remoteAddress = remoteAddress
        self.isTLS = isTLS
        self.eventLoop = eventLoop
    }
}
