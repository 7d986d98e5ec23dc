import HTTPTypes
import NIOCore
package import NIOSSL

/// Where a server listens, and what it puts up with.
package struct HTTPServerConfiguration: Sendable {
    /// What the log calls the server.
    package var name = "http"
    /// The address or name to bind.
    package var host: String
    /// The port to bind; 0 lets the system choose.
    package var port: Int
    /// How connections are encrypted; nil for plain text.
    package var tls: TLSConfiguration?
    /// Connections the system may hold before they are accepted.
    package var backlog: Int
    /// Open connections; beyond them, one that is idle is closed for the newest, or that is turned away with 503.
    package var maxConnections: Int
    /// The whole head of a request on the wire, in bytes.
    package var maxHeadBytes: Int
    /// One field line on the wire, in bytes.
    package var maxFieldBytes: Int
    /// Field lines of one request.
    package var maxFields: Int
    /// The request target, in bytes.
    package var maxURIBytes: Int
    /// The framing of a chunked body (sizes, extensions, trailers), in bytes, on top of the body itself.
    package var maxChunkOverheadBytes: Int
    /// The largest body a request may have, in bytes, by its head.
    package var bodyLimit: @Sendable (HTTPRequestHead) -> Int
    /// The bodies of all requests that are being received or answered, in bytes; what goes beyond is refused with 503.
    package var maxBufferedBytes: Int
    /// Bytes at the start of each body that do not count against ``maxBufferedBytes``: ordinary requests always fit,
    /// however much others send.
    package var uncountedBodyBytes: Int
    /// Whether requests are told how far their event loop is behind.
    package var measuresLag: Bool
    /// Paced answers of one event loop, in a second; see ``HTTPServerResponse/isPaced``.
    package var pacedAnswersPerSecond: Int
    /// How long a paced answer is held back at most.
    package var maxPacedDelay: Duration
    /// How long a head may take, from the request's first byte; on a fresh connection, from its acceptance.
    package var headTimeout: Duration
    /// How long a body may take, from the end of the head.
    package var bodyTimeout: Duration
    /// How long an answer may wait until a piece of it leaves: what is left of it, or at least 16 KiB.
    package var writeStallTimeout: Duration
    /// How long a connection may be idle between requests.
    package var keepAliveTimeout: Duration
    /// How long a connection has to have been idle before it may be closed for another: one in steady use never is.
    package var evictableAfter: Duration
    /// How long input is discarded behind a last answer, so that a peer still sending gets to read it.
    package var lingerTimeout: Duration
    /// How long a handshake that has begun may take once the server stops to listen, and then a connection's first bytes.
    package var settlingTime: Duration
    /// Renders the answer to a request the server itself refuses.
    package var refusalResponse: @Sendable (HTTPServerRefusal, HTTPRefusedRequest) -> HTTPServerResponse

    /// Hears of each connection that the server ended without an answer; called on the connection's loop.
    package var onCut: @Sendable (HTTPServerCut) -> Void
    /// The time since the beginning of 1970, for the field `Date`.
    package var wallClock: @Sendable () -> Duration

    /// Creates a configuration; each limit starts at the value of the reliability decisions, section 8.
    ///
    /// - Parameters:
    ///   - host: the address or name to bind.
    ///   - port: the port to bind; 0 lets the system choose.
    ///   - tls: how connections are encrypted; nil for plain text.
    package init(host: String = "127.0.0.1", port: Int = 0, tls: TLSConfiguration? = nil) {
        self.host = host
        self.port = port
        self.tls = tls
        self.backlog = 4096
        self.maxConnections = 16384
        self.maxHeadBytes = 16 * 1024
        self.maxFieldBytes = 8 * 1024
        self.maxFields = 64
        self.maxURIBytes = 4096
        self.maxChunkOverheadBytes = 16 * 1024
        self.bodyLimit = { _ in 64 * 1024 }
        self.maxBufferedBytes = .max
        self.uncountedBodyBytes = 0
        self.measuresLag = false
        self.pacedAnswersPerSecond = 1000
        self.maxPacedDelay = .milliseconds(500)
        self.headTimeout = .seconds(5)
        self.bodyTimeout = .seconds(10)
        self.writeStallTimeout = .seconds(10)
        self.keepAliveTimeout = .seconds(75)
        self.evictableAfter = .seconds(1)
        self.lingerTimeout = .seconds(2)
        self.settlingTime = .milliseconds(200)
        self.refusalResponse = { refusal, _ in Self.plainText(refusal) }
        self.onCut = { _ in }
        self.wallClock = SystemTime.sinceEpoch
    }

    /// Answers a refusal with its sentence.
    private static func plainText(_ refusal: HTTPServerRefusal) -> HTTPServerResponse {
        HTTPServerResponse(
            status: refusal.status,
            headers: [.contentType: "text/plain; charset=utf-8"],
            body: ByteBuffer(string: refusal.reason + "\n")
        )
    }
}
