import HTTPTypes
import NIOCore
package import NIOSSL

/// A server's address and limits.
package struct HTTPServerConfiguration: Sendable {
    package var name = "http"
    package var host: String
    /// The port to bind; 0 lets the system choose.
    package var port: Int
    /// The connections' encryption; nil for plain text.
    package var tls: TLSConfiguration?
    package var backlog = 4096
    /// Open connections. Beyond them, an idle one is closed for the newest, or the newest is turned away with 503.
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
    /// No head's limit is smaller, in bytes. A body of at most this length is read without a look at its head.
    package var leastBodyLimit = 0
    /// The bodies of all requests that are being received or answered, in bytes. Bodies beyond that are refused with
    /// 503.
    package var maxBufferedBytes = Int.max
    /// Bytes at the start of each body that don't count against ``maxBufferedBytes``. Ordinary requests therefore
    /// always fit, regardless of other requests.
    package var uncountedBodyBytes = 0
    /// True if requests carry the lag of their event loop.
    package var measuresLag = false
    /// Paced answers per second on one event loop; see ``HTTPServerResponse/isPaced``.
    package var pacedAnswersPerSecond = 1000
    /// The longest delay of a paced answer.
    package var maxPacedDelay = Duration.milliseconds(500)
    /// The time for a head, from the request's first byte. On a fresh connection, from its acceptance.
    package var headTimeout = Duration.seconds(5)
    /// The time for a body, from the end of the head.
    package var bodyTimeout = Duration.seconds(10)
    /// The time within which a piece of an answer must leave: all that remains, or at least 16 KiB.
    package var writeStallTimeout = Duration.seconds(10)
    /// The longest idle time of a connection between requests.
    package var keepAliveTimeout = Duration.seconds(75)
    /// The idle time after which a connection may be closed for another. A connection in steady use never idles as
    /// long.
    package var evictableAfter = Duration.seconds(1)
    /// The time for which input is discarded after a last answer, so that a peer that still sends can read the answer.
    package var lingerTimeout = Duration.seconds(2)
    /// The time for a handshake that has begun when the server stops listening. A connection then has this time again
    /// for its first bytes.
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
    /// Called on the connection's loop for each connection that the server ends without an answer.
    package var onClose: @Sendable (HTTPServerCloseReason) -> Void = { _ in }
    /// The time since the start of 1970, for the field `Date`.
    package var wallClock: @Sendable () -> Duration = SystemTime.sinceEpoch

    package init(host: String = "127.0.0.1", port: Int = 0, tls: TLSConfiguration? = nil) {
        self.host = host
        self.port = port
        self.tls = tls
    }
}
