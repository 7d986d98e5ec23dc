import HTTPTypes
import Logging
import NIOCore
import NIOSSL

/// One connection of a server: which request it is at, and how long that may take.
///
/// Requests are taken off the byte stream one by one; what follows a request waits unread until the request is answered. Everything here happens on the connection's event loop.
final class HTTPServerConnection {
    enum Phase {
        /// Between requests, no byte of the next has come. Next: `head`, `closed`.
        case idle(since: NIODeadline)
        /// A head is arriving; a fresh connection starts here. Next: `body`, `responding`, `lingering`, `closed`.
        case head
        /// A body is arriving. Next: `responding`, `lingering`, `closed`.
        case body
        /// A task makes the answer. Next: `idle`, `flushing`, `lingering`, `closed`.
        case responding
        /// The peer has to read before the rest of the answer can leave. Next: `idle`, `lingering`, `closed`.
        case flushing(bufferedBytes: Int, closes: Bool)
        /// The last answer has left; input is discarded until the peer closes. Next: `closed`.
        case lingering(discardedBytes: Int)
        /// Over.
        case closed
    }

    /// The part of a request whose deadline is running.
    enum AwaitedPart {
        case head
        case body
    }

    let core: HTTPServerCore
    let lane: HTTPServerLane
    private(set) var info: HTTPConnectionInfo
    let parser: HTTPRequestHeadParser
    let timer: RearmingTimer
    /// The wire handler's context while it is in the pipeline.
    private(set) var context: ChannelHandlerContext?

    var phase = Phase.head
    /// Bytes that have arrived and are not read yet.
    var pending = ByteBuffer()
    /// Whether pending bytes are being read: an answer made without a pause then comes back while that is going on.
    var isAdvancing = false
    var isReadWithheld = false
    var scanner: HTTPHeadScanner
    /// The head so far, while it is incomplete or being judged.
    var head = ByteBuffer()
    var bodyReader = HTTPBodyReader()
    var accepted: HTTPAcceptedHead?
    var task: Task<Void, Never>?
    /// Bytes of the present request's body that the server's gauge counts.
    var gaugedBytes = 0
    /// An answer that waits for its turn.
    var pacedResponse: HTTPServerResponse?
    var awaited: AwaitedPart?
    /// Whether bytes may leave: always in plain text, after the handshake with TLS.
    var isSecured: Bool

    init(core: HTTPServerCore, lane: HTTPServerLane, info: HTTPConnectionInfo) {
        self.core = core
        self.lane = lane
        self.info = info
        self.parser = HTTPRequestHeadParser(
            maxURIBytes: core.configuration.maxURIBytes,
            scheme: info.isTLS ? "https" : "http"
        )
        self.timer = RearmingTimer(eventLoop: info.eventLoop)
        self.scanner = HTTPHeadScanner(limits: core.scanLimits)
        self.isSecured = !info.isTLS
    }

    // MARK: Life

    func attach(_ context: ChannelHandlerContext) {
        self.context = context
    }

    func detach() {
        self.context = nil
    }

    /// The connection is accepted: the first head's deadline runs from here.
    func opened() {
        self.timer.start { [unowned self] in self.deadlinePassed() }
        self.awaited = .head
        self.timer.set(self.deadline(in: self.core.timeouts.head))
    }

    /// The connection is gone, whoever closed it; heard of once from the channel and once from the pipeline.
    func closed() {
        switch self.phase {
        case .closed: return
        case .responding: break  // The request keeps its body until its task has ended.
        case .idle, .head, .body, .flushing, .lingering: self.releaseBody()
        }
        self.phase = .closed
        self.pacedResponse = nil
        self.timer.stop()
        self.task?.cancel()
        self.task = nil
        self.pending = ByteBuffer()
        self.head = ByteBuffer()
        self.lane.remove(self)
    }

    /// The handshake of TLS is over: bytes may leave, and the client is who its certificate says, if it gave one.
    ///
    /// A resumed session has the certificate of its first handshake, which nobody has looked at since: one that has
    /// expired meanwhile ends the connection.
    func secured(by certificate: NIOSSLCertificate?) {
        self.isSecured = true
        guard let certificate else { return }
        guard Int64(certificate.notValidAfter) >= self.core.configuration.wallClock().components.seconds else {
            self.abort()
            return
        }
        self.info.clientNames = HTTPClientNames.names(in: certificate)
    }

    func transportFailed(_ error: any Error) {
        self.core.logger.debug("Connection failed.", metadata: ["error": "\(error)"])
        self.abort()
    }

    /// Whether somebody waits for the rest of an answer.
    var isAnswering: Bool {
        switch self.phase {
        case .responding, .flushing: true
        case .idle, .head, .body, .lingering, .closed: false
        }
    }

    /// Since when the connection has waited for its next request; nil while it does anything else, its first head included.
    var idleSince: NIODeadline? {
        if case .idle(let since) = self.phase { since } else { nil }
    }

    /// Closes the connection unless a request is being received or answered.
    func closeIfIdle() {
        switch self.phase {
        case .idle: self.closeIdle()
        case .head where self.scanner.isUntouched: self.closeUnlessUsed()
        case .flushing(let bufferedBytes, _): self.phase = .flushing(bufferedBytes: bufferedBytes, closes: true)
        case .head, .body, .responding, .lingering, .closed: break
        }
    }

    /// Closes a fresh connection whose first request does not come at once: it may be on its way.
    private func closeUnlessUsed() {
        self.info.eventLoop.assumeIsolated()
            .scheduleTask(in: self.core.timeouts.settling) {
                guard case .head = self.phase, self.scanner.isUntouched else { return }
                self.abort()
            }
    }

    /// Ends a connection between requests; what still comes, as it may while TLS ends, is a request that nobody takes.
    private func closeIdle() {
        self.phase = .lingering(discardedBytes: 0)
        self.timer.set(self.deadline(in: self.core.timeouts.linger))
        self.context?.close(promise: nil)
    }

    /// Closes the connection at once, without asking the peer to agree on the end of TLS.
    func abort() {
        guard let context = self.context else { return }
        if self.info.isTLS,
            let encryption = try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
        {
            encryption.close(promise: nil)
        } else {
            context.close(promise: nil)
        }
    }

    /// Closes the connection at once and tells why.
    func cut(_ reason: HTTPServerCut) {
        self.core.configuration.onCut(reason)
        self.abort()
    }

    // MARK: Deadlines

    func deadline(in amount: TimeAmount) -> NIODeadline {
        self.info.eventLoop.now + amount
    }

    private func deadlinePassed() {
        switch self.phase {
        case .idle:
            self.closeIdle()
        case .head where self.isSecured:
            self.refuse(.headTimeout)
        case .body:
            self.refuse(.bodyTimeout)
        case .flushing(let bufferedBytes, let closes):
            let left = self.bufferedBytes()
            guard bufferedBytes - left >= HTTPServerCore.minFlushedBytes else {
                self.cut(.writeStalled)
                return
            }
            self.phase = .flushing(bufferedBytes: left, closes: closes)
            self.timer.set(self.deadline(in: self.core.timeouts.writeStall))
        case .head:
            self.cut(.handshakeTimeout)
        case .lingering:
            self.abort()
        case .responding, .closed:
            break
        }
    }
}
