package import HTTPTypes
package import NIOCore

/// Answers the requests a server received.
package protocol HTTPServerResponder: Sendable {
    /// Runs on the connection's event loop and must not block it. The task is cancelled when the connection closes.
    func respond(to request: HTTPServerRequest) async -> HTTPServerResponse
}

/// A request that passed the server's checks, with its whole body.
package struct HTTPServerRequest: Sendable {
    package var head: HTTPRequestHead
    package var body: ByteBuffer
    package var connection: HTTPConnectionInfo
    /// By how much its event loop has been behind for some time; zero while it keeps up, or is not asked to tell.
    package var lag: Duration

    package init(head: HTTPRequestHead, body: ByteBuffer, connection: HTTPConnectionInfo, lag: Duration = .zero) {
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
    /// The fields, except those that frame the message (`Content-Length`, `Connection` and their kin).
    package var headers: HTTPHeaderLines
    /// Not sent in answer to `HEAD`, nor with 204 and 304.
    package var body: ByteBuffer
    package var closesConnection: Bool
    /// Whether this is one of the answers that a server must not spend too much of its time on, such as refusals under
    /// overload: when they come too fast, each is held back for a moment, and its connection with it.
    package var isPaced = false
    /// A name for why the answer is as it is, for the responder's own log; not sent.
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

/// The connection a request came in on.
package struct HTTPConnectionInfo: Sendable {
    /// The peer's IP address as text, without the port; nil when the peer has none.
    package let remoteAddress: String?
    package let isTLS: Bool
    /// The names in the client's verified certificate, read once, when the handshake is over: DNS names in lower case and
    /// URIs; empty without a certificate.
    package internal(set) var clientNames: [String]
    /// The loop the connection lives on, and its requests' tasks with it.
    package let eventLoop: any EventLoop

    package init(remoteAddress: String?, isTLS: Bool, clientNames: [String] = [], eventLoop: any EventLoop) {
        self.remoteAddress = remoteAddress
        self.isTLS = isTLS
        self.clientNames = clientNames
        self.eventLoop = eventLoop
    }
}
