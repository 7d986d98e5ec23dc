import NIOCore

/// One HTTP/1.1 connection of a pool. It reads one answer at a time, and decides if it may serve another request.
final class HTTP1ClientConnection: HTTPClientConnection, ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Phase {
        /// In the pool, or about to join it. Next: `head`, `closed`.
        case idle
        /// The request is written; the head of the answer is arriving. Next: `body`, `settling`, `closed`.
        case head(HTTPClientExchange)
        /// The body of the answer is arriving. Next: `settling`, `closed`.
        case body(HTTPClientExchange, HTTPClientResponse.Head, endsWithConnection: Bool)
        /// The answer is delivered. Bytes that were read with it are still being checked. Next: `idle`, `closed`.
        case settling
        case closed
    }

    private var phase = Phase.idle
    private var pending = ByteBuffer()
    private var scanner: HTTPHeadScanner
    private var partialHead = ByteBuffer()
    private var bodyReader = HTTPBodyReader()
    private var informationalHeads = 0
    private var isReusable = true
    /// The tenant of the exchange that occupies the connection's place.
    private var tenant: Int?
    private var heldBytes = 0

    init(loop: HTTPClientLoop) {
        self.scanner = HTTPHeadScanner(limits: loop.core.scanLimits)
        super.init(loop: loop, places: 1, maxConnections: loop.core.configuration.maxConnectionsPerLoop)
    }

    // MARK: Events of the channel

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.abort(.connectionClosed, cause: error)
    }

    // MARK: In the pool

    override var isUsable: Bool {
        guard case .idle = self.phase, let context = self.context else { return false }
        return context.channel.isActive
    }

    override var tenants: [Int] { self.tenant.map { [$0] } ?? [] }

    override func joined() {
        self.timer.set(self.loop.eventLoop.now + self.core.idleTimeout)
    }

    override func start(_ exchange: HTTPClientExchange) -> Bool {
        guard exchange.run(on: self) else { return false }
        self.tenant = exchange.request.tenant
        self.phase = .head(exchange)
        self.scanner = HTTPHeadScanner(limits: self.core.scanLimits)
        self.informationalHeads = 0
        self.isReusable = true
        self.timer.set(exchange.deadline)
        self.context?.send(HTTPOutgoingRequest(request: exchange.request, authority: self.core.authority))
        return true
    }

    override func cancel(_ exchange: HTTPClientExchange, _ code: HTTPClientError.Code) {
        self.abort(code)
    }

    /// Ends the current exchange, if any, with an error, and closes the connection.
    override func abort(_ code: HTTPClientError.Code, cause: (any Error)? = nil) {
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

    override func closeIfIdle() {
        if case .idle = self.phase { self.close() }
    }

    private func close() {
        self.leave()
        self.context?.close(promise: nil)
    }

    override func transportClosed() {
        if case .body(let exchange, let head, endsWithConnection: true) = self.phase {
            self.deliver(head, to: exchange)
            self.leave()
        } else {
            self.abort(.connectionClosed)
        }
    }

    private func leave() {
        self.phase = .closed
        self.timer.stop()
        self.pending = ByteBuffer()
        self.partialHead = ByteBuffer()
        self.releaseAnswer()
        self.loop.ended(self)
    }

    override func wake() {
        switch self.phase {
        case .idle: self.close()
        case .head, .body: self.abort(.deadlineExceeded)
        case .settling, .closed: break
        }
    }

    // MARK: Reading

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = self.unwrapInboundIn(data)
        let byteCount = bytes.readableBytes
        switch self.phase {
        case .head, .body:
            self.pending.gather(bytes)
            self.advance()
            self.hold(byteCount)
        case .settling:
            self.isReusable = false
        case .idle:
            // Unrequested bytes would be taken for the answer to the next request.
            self.abort(.invalidResponse)
        case .closed:
            break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        defer { context.fireChannelReadComplete() }
        guard case .settling = self.phase else { return }
        guard self.isReusable, self.context?.channel.isActive == true else {
            self.close()
            return
        }
        self.phase = .idle
        self.joined()
        guard let tenant = self.tenant else { return }
        self.tenant = nil
        self.loop.released(self, of: tenant)
    }

    private func deliver(_ head: HTTPClientResponse.Head, to exchange: HTTPClientExchange) {
        let response = HTTPClientResponse(head, body: self.bodyReader.body)
        self.bodyReader = HTTPBodyReader()
        self.releaseAnswer()
        self.phase = .settling
        self.timer.clear()
        exchange.finish(.success(response))
    }

    /// Counts bytes that have just arrived, unless they complete the answer.
    private func hold(_ byteCount: Int) {
        switch self.phase {
        case .head, .body:
            guard self.core.hold(byteCount) else {
                self.abort(.responseTooLarge)
                return
            }
            self.heldBytes += byteCount
        case .idle, .settling, .closed:
            break
        }
    }

    private func releaseAnswer() {
        self.core.release(self.heldBytes)
        self.heldBytes = 0
    }

    private func advance() {
        reading: while self.pending.readableBytes > 0 {
            switch self.phase {
            case .head(let exchange):
                self.advanceHead(of: exchange)
            case .body(let exchange, let head, _):
                self.advanceBody(of: exchange, head)
            case .settling:
                // The peer sent more bytes than the answer has.
                self.isReusable = false
                break reading
            case .idle, .closed:
                break reading
            }
        }
        self.pending = ByteBuffer()
    }

    private func advanceHead(of exchange: HTTPClientExchange) {
        let arrived = self.pending
        switch self.scanner.scan(arrived.readableBytesUInt8Span) {
        case .tooLarge, .startLineTooLong:
            self.abort(.responseTooLarge)
        case .malformed:
            self.abort(.invalidResponse)
        case .incomplete:
            self.partialHead.gather(self.pending)
            self.pending = ByteBuffer()
        case .complete(let byteCount):
            guard let bytes = self.pending.readSlice(length: byteCount) else { return }
            self.partialHead.gather(bytes)
            let head = self.partialHead
            self.partialHead = ByteBuffer()
            do throws(HTTPClientError.Code) {
                try self.accept(head, for: exchange)
            } catch {
                self.abort(error)
            }
        }
    }

    private func accept(_ head: ByteBuffer, for exchange: HTTPClientExchange) throws(HTTPClientError.Code) {
        let limit = self.core.maxBodyBytes(for: exchange.request)
        guard
            let accepted = try HTTPHeadParser.response(head, to: exchange.request.method, maxBodyBytes: limit)
        else {
            self.informationalHeads += 1
            guard self.informationalHeads <= HTTPClientCore.maxInformationalHeads else { throw .invalidResponse }
            self.scanner = HTTPHeadScanner(limits: self.core.scanLimits)
            return
        }
        // If the answer precedes the end of its request, the rest of the request is still to be sent.
        self.isReusable = accepted.keepsAlive && (self.context?.channel.isWritable ?? true)
        if accepted.framing == .none {
            self.deliver(accepted.head, to: exchange)
            return
        }
        self.bodyReader = HTTPBodyReader(
            framing: accepted.framing,
            maxBodyBytes: limit,
            maxOverheadBytes: limit + 16 * 1024
        )
        self.phase = .body(exchange, accepted.head, endsWithConnection: accepted.framing == .untilClose)
    }

    private func advanceBody(of exchange: HTTPClientExchange, _ head: HTTPClientResponse.Head) {
        switch self.bodyReader.read(from: &self.pending) {
        case .incomplete: break
        case .complete: self.deliver(head, to: exchange)
        case .tooLarge: self.abort(.responseTooLarge)
        case .malformed: self.abort(.invalidResponse)
        }
    }
}
