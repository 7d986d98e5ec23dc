import HTTPTypes
import NIOCore
import NIOSSL

/// One connection of a pool: which answer it is reading, and whether it may serve again.
///
/// Everything here happens on the connection's event loop.
final class HTTPClientConnection {
    enum Phase {
        /// Being encrypted. Next: `idle`, `closed`.
        case opening
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
    let isEncrypted: Bool
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
    private var openingError: (any Error)?
    private var onOpened: ((Result<HTTPClientConnection, HTTPClientError>) -> Void)?

    init(lane: HTTPClientLane, isEncrypted: Bool) {
        self.core = lane.core
        self.lane = lane
        self.isEncrypted = isEncrypted
        self.timer = RearmingTimer(eventLoop: lane.eventLoop)
        self.scanner = HTTPHeadScanner(limits: lane.core.scanLimits)
        self.phase = isEncrypted ? .opening : .idle
    }

    /// Whether a request may be written now.
    var isUsable: Bool {
        guard case .idle = self.phase, let context = self.context else { return false }
        return context.channel.isActive
    }

    // MARK: Opening

    func attach(_ context: ChannelHandlerContext) {
        self.context = context
        self.timer.start { [unowned self] in self.deadlinePassed() }
    }

    func detach() {
        self.context = nil
    }

    /// Reports once the connection is ready or has failed.
    func whenOpened(
        until deadline: NIODeadline,
        _ onOpened: @escaping (Result<HTTPClientConnection, HTTPClientError>) -> Void
    ) {
        switch self.phase {
        case .opening:
            self.onOpened = onOpened
            self.timer.set(deadline)
        case .closed:
            onOpened(.failure(HTTPClientError(code: .tlsFailed, requestSent: false, cause: self.openingError)))
        case .idle, .head, .body, .settling:
            onOpened(.success(self))
        }
    }

    /// The handshake is done.
    func opened() {
        guard case .opening = self.phase else { return }
        self.phase = .idle
        self.timer.clear()
        self.reportOpened(.success(self))
    }

    private func failOpening(_ code: HTTPClientError.Code, cause: (any Error)?) {
        self.phase = .closed
        self.openingError = cause
        self.timer.stop()
        self.closeNow()
        self.reportOpened(.failure(HTTPClientError(code: code, requestSent: false, cause: cause)))
    }

    private func reportOpened(_ result: Result<HTTPClientConnection, HTTPClientError>) {
        let onOpened = self.onOpened
        self.onOpened = nil
        onOpened?(result)
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
        case .opening:
            self.failOpening(code, cause: cause)
        case .idle, .settling:
            self.leave()
            self.closeNow()
        case .head(let exchange), .body(let exchange, _, _):
            self.leave()
            self.closeNow()
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

    func transportFailed(_ error: any Error) {
        if case .opening = self.phase {
            self.failOpening(.tlsFailed, cause: error)
        } else {
            self.abort(.connectionClosed, cause: error)
        }
    }

    func transportClosed() {
        if case .body(let exchange, let head, endsWithConnection: true) = self.phase {
            self.deliver(head, to: exchange)
            self.leave()
        } else if case .opening = self.phase {
            self.failOpening(.tlsFailed, cause: nil)
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
        self.lane.ended(self)
    }

    /// Closes the transport without asking the peer to agree on the end of TLS.
    private func closeNow() {
        guard let context = self.context else { return }
        if self.isEncrypted,
            let encryption = try? context.pipeline.syncOperations.context(handlerType: NIOSSLClientHandler.self)
        {
            encryption.close(promise: nil)
        } else {
            context.close(promise: nil)
        }
    }

    private func deadlinePassed() {
        switch self.phase {
        case .opening: self.failOpening(.connectTimeout, cause: nil)
        case .idle: self.close()
        case .head, .body: self.abort(.deadlineExceeded)
        case .settling, .closed: break
        }
    }
}
