package import HTTPTypes
package import NIOCore

/// Answers a server's requests.
package protocol HTTPServerResponder: Sendable {
    /// Runs on the connection's event loop and must not block it. The task is cancelled when the connection closes.
    func respond(to request: HTTPServerRequest) async -> HTTPServerResponse
}

/// A request that passed the server's checks, with its whole body.
package struct HTTPServerRequest: Sendable {
    /// The connection of a request. A class, so that each request holds one reference, and not a copy of each part.
    package final class ConnectionInfo: Sendable {
        /// The peer's IP address as text, without the port; nil if the peer has none.
        package let remoteAddress: String?
        package let isTLS: Bool
        /// The names in the client's verified certificate: DNS names in lower case, and URIs. Read once after the
        /// handshake; empty without a certificate.
        package let clientNames: [String]
        /// The loop of the connection and its requests' tasks.
        package let eventLoop: any EventLoop

        package init(remoteAddress: String?, isTLS: Bool, clientNames: [String] = [], eventLoop: any EventLoop) {
            self.remoteAddress = remoteAddress
            self.isTLS = isTLS
            self.clientNames = clientNames
            self.eventLoop = eventLoop
        }
    }

    package var head: HTTPRequestHead
    package var body: ByteBuffer
    package var connection: ConnectionInfo
    /// The event loop's lag, if it has been behind for some time. Zero if it keeps up, or is not measured.
    package var lag: Duration

    package init(head: HTTPRequestHead, body: ByteBuffer, connection: ConnectionInfo, lag: Duration = .zero) {
        self.head = head
        self.body = body
        self.connection = connection
        self.lag = lag
    }
}

/// A responder's answer, with its whole body.
package struct HTTPServerResponse: Sendable {
    /// The final status; an informational one is answered as 500.
    package var status: HTTPResponse.Status
    /// The fields, except those that frame the message (such as `Content-Length` and `Connection`).
    package var headers: HTTPHeaderLines
    /// Not sent with 204 and 304, or in answer to `HEAD`.
    package var body: ByteBuffer
    package var closesConnection: Bool
    /// True for an answer that must not take too much of the server's time, such as a refusal under overload. If such
    /// answers are too frequent, each one and its connection are delayed for a moment.
    package var isPaced = false
    /// A name of the reason, for the responder's own log. Not sent.
    package var code: String?

    package init(
        status: HTTPResponse.Status,
        headers: HTTPHeaderLines = [:],
        body: ByteBuffer = ByteBuffer(),
        closesConnection: Bool = false
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.closesConnection = closesConnection
    }
}
