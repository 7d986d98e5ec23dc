package import NIOCore

/// A request that passed the server's checks, with its whole body.
package struct HTTPServerRequest: Sendable {
    /// Method, path and fields.
    package var head: HTTPRequestHead
    /// The body with its transfer coding removed.
    package var body: ByteBuffer
    /// The connection it came in on.
    package var connection: HTTPConnectionInfo

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - head: method, path and fields.
    ///   - body: the whole body.
    ///   - connection: the connection it came in on.
    package init(head: HTTPRequestHead, body: ByteBuffer, connection: HTTPConnectionInfo) {
        self.head = head
        self.body = body
        self.connection = connection
    }
}
