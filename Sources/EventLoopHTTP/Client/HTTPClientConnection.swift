import HTTPTypes
import NIOCore

/// One HTTP/1.1 connection of a pool: which answer it is reading, and whether it may serve again.
///
/// Everything here happens on the connection's event loop.
final class HTTPClientConnection {
    enum Phase {
        /// In the pool, or about to be. Next: `head`, `closed`.
        case idle
        /// The request is written; the head of the answer is arriving. Next: `body`, `settling`, `closed`.
        case head(HTTPClientExchange)
        /// The body of the answer is arriving. Next: `settling`, `closed`.
        case body(HTTPClientExchange, HTTPResponseHead, endsWithConnection: Bool)
        /// The answer is delivered; what was read with it is still being looked at. Next: `idle`, `closed`.
        case settling
        /// Over.
        case closed
    }

    let core: HTTPClientCore
    let lane: HTTPClientLane
    let timer: RearmingTimer
    private(set) var context: ChannelHandlerContext?

    var phase: Phase
    /// Bytes that have arrived and are not read yet.
    var pending = ByteBuffer()
    var scanner: HTTPHeadScanner
    /// The head so far, while it is incomplete.
    var partialHead = ByteBuffer()
    var bodyReader = HTTPBodyReader()
    var informationalHeads = 0
    var isReusable = true
    /// The tenant that has taken the connection's place in the pool; nil while it is idle.
    var taker: Int?
    /// Bytes counted of the answer that is arriving.
    var heldBytes = 0

    init(lane: HTTPClientLane) {
        self.core = lane.core
        self.lane = lane
        self.timer = RearmingTimer(eventLoop: lane.eventLoop)
        self.scanner = HTTPHeadScanner(limits: lane.core.scanLimits)
        self.phase = .idle
    }

    /// Whether a request may be written now.
    var isUsable: Bool {
        guard case .idle = self.phase, let context = self.context else { return false }
        return context.channel.isActive
    }

    func attach(_ context: ChannelHandlerContext) {
        self.context = context
        self.timer.start { [unowned self] in self.deadlinePassed() }
    }

    func detach() {
        self.context = nil
    }

    // MARK: Idling

    /// The connection waits in the pool.
    func rest() {
        self.timer.set(self.lane.eventLoop.now + self.core.idleTimeout)
    }

    // MARK: Ending

    /// Ends the exchange under way, if any, with an error, and the connection with it.
    func abort(_ code: HTTPClientError.Code, cause: (any Error)? = nil) {
        switch self.phase {
        case .idle, .settling:
            self.leave()
            self.context?.closeAtOnce()
        case .head(let exchange), .body(let exchange, _, _):
            self.leave()
            self.context?.closeAtOnce()
            exchange.finish(.failure(HTTPClientError(code: code, requestSent: true, cause: cause)))
        case .closed:
            break
        }
    }

    /// Ends a connection that serves no exchange, in good order.
    func close() {
        self.leave()
        self.context?.close(promise: nil)
    }

    /// Ends a connection the pool has no place for.
    func discard() {
        self.phase = .closed
        self.timer.stop()
        self.context?.close(promise: nil)
    }

    func transportFailed(_ error: any Error) {
        self.abort(.connectionClosed, cause: error)
    }

    func transportClosed() {
        if case .body(let exchange, let head, endsWithConnection: true) = self.phase {
            self.deliver(head, to: exchange)
            self.leave()
        } else {
            self.abort(.connectionClosed)
        }
    }

    /// Gives up the place in the pool.
    private func leave() {
        self.phase = .closed
        self.timer.stop()
        self.pending = ByteBuffer()
        self.partialHead = ByteBuffer()
        self.releaseAnswer()
        self.lane.ended(self)
    }

    private func deadlinePassed() {
        switch self.phase {
        case .idle: self.close()
        case .head, .body: self.abort(.deadlineExceeded)
        case .settling, .closed: break
        }
    }
}
