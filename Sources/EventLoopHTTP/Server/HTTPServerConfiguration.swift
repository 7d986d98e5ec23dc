import HTTPTypes
import NIOCore
package import NIOSSL

/// Where a server listens, and its limits, which start at the values of the reliability decisions, section 8.
package struct HTTPServerConfiguration: Sendable {
    package var name = "http"
    package var host: String
    /// The port to bind; 0 lets the system choose.
    package var port: Int
    /// How connections are encrypted; nil for plain text.
    package var tls: TLSConfiguration?
    package var backlog = 4096
    /// Open connections; beyond them, one that is idle is closed for the newest, or that is turned away with 503.
    package var maxConnections = 16384
    /// The whole head of a request on the wire, in bytes.
    package var maxHeadBytes = 16 * 1024
    /// One field line on the wire, in bytes.
    package var maxFieldBytes = 8 * 1024
    package var maxFields = 64
    /// The request target, in bytes.
    package var maxURIBytes = 4096
    /// The framing of a chunked body (sizes, extensions, trailers), in bytes, on top of the body itself.
    package var maxChunkOverheadBytes = 16 * 1024
    /// The largest body a request may have, in bytes, by its head.
    package var bodyLimit: @Sendable (HTTPRequestHead) -> Int = { _ in 64 * 1024 }
    /// The bodies of all requests that are being received or answered, in bytes; what goes beyond is refused with 503.
    package var maxBufferedBytes = Int.max
    /// Bytes at the start of each body that do not count against ``maxBufferedBytes``: ordinary requests always fit,
    /// however much others send.
    package var uncountedBodyBytes = 0
    /// Whether requests are told how far their event loop is behind.
    package var measuresLag = false
    /// Paced answers of one event loop, in a second; see ``HTTPServerResponse/isPaced``.
    package var pacedAnswersPerSecond = 1000
    /// How long a paced answer is held back at most.
    package var maxPacedDelay = Duration.milliseconds(500)
    /// How long a head may take, from the request's first byte; on a fresh connection, from its acceptance.
    package var headTimeout = Duration.seconds(5)
    /// How long a body may take, from the end of the head.
    package var bodyTimeout = Duration.seconds(10)
    /// How long an answer may wait until a piece of it leaves: what is left of it, or at least 16 KiB.
    package var writeStallTimeout = Duration.seconds(10)
    /// How long a connection may be idle between requests.
    package var keepAliveTimeout = Duration.seconds(75)
    /// How long a connection has to have been idle before it may be closed for another: one in steady use never is.
    package var evictableAfter = Duration.seconds(1)
    /// How long input is discarded behind a last answer, so that a peer still sending gets to read it.
    package var lingerTimeout = Duration.seconds(2)
    /// How long a handshake that has begun may take once the server stops to listen, and then a connection's first bytes.
    package var settlingTime = Duration.milliseconds(200)
    /// Renders the answer to a request the server itself refuses.
    package var refusalResponse: @Sendable (HTTPServerRefusal, HTTPRefusedRequest) -> HTTPServerResponse = {
        refusal,
        _ in
        HTTPServerResponse(
            status: refusal.status,
            headers: [.contentType: "text/plain; charset=utf-8"],
            body: ByteBuffer(string: refusal.reason + "\n")
        )
    }
    /// Called for each connection that the server ends without an answer, on the connection's loop.
    package var onClose: @Sendable (HTTPServerCloseReason) -> Void = { _ in }
    /// The time since the beginning of 1970, for the field `Date`.
    package var wallClock: @Sendable () -> Duration = SystemTime.sinceEpoch

    package init(host: String = "127.0.0.1", port: Int = 0, tls: TLSConfiguration? = nil) {
        self.host = host
        self.port = port
        self.tls = tls
    }
}
