package import NIOCore

/// A request that passed the server's checks, with its whole body.
package struct HTTPServerRequest: Sendable {
    /// Method, path and fields.
    package var head: HTTPRequestHead
    /// The body with its transfer coding removed.
    package var body: ByteBuffer
    /// The connection it came in on.
    package var connection: HTTPConnectionInfo
    /// By how much its event loop has been behind for some time; zero while it keeps up, or is not asked to tell.
    package var lag: Duration

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - head: method, path and fields.
    ///   - body: the whole body.
    ///   - connection: the connection it came in on.
    ///   - lag: by how much its event loop has been behind for some time.
    package init(head: HTTPRequestHead, body: ByteBuffer, connection: HTTPConnectionInfo, lag: Duration = .zero) {
        self.head = head
        self.body = body
        self.connection = connection
        self.lag = lag
    }
}
