import HTTPTypes
import NIOCore

extension HTTPClientConnection {
    /// Writes the request of an exchange this connection serves from now on.
    func send(_ exchange: HTTPClientExchange) {
        guard let context = self.context else {
            self.phase = .head(exchange)
            self.abort(.connectionClosed)
            return
        }
        let request = exchange.request
        let writer = HTTPRequestHeadWriter(request: request, authority: self.core.authority)
        self.phase = .head(exchange)
        self.scanner = HTTPHeadScanner(limits: self.core.scanLimits)
        self.informationalHeads = 0
        self.isReusable = true
        self.timer.set(exchange.deadline)
        if request.body.readableBytes <= ByteBuffer.coalescedBodyBytes {
            var bytes = context.channel.allocator.buffer(capacity: writer.headBytes + request.body.readableBytes)
            writer.writeHead(to: &bytes)
            bytes.writeImmutableBuffer(request.body)
            context.writeAndFlush(NIOAny(bytes), promise: nil)
        } else {
            var bytes = context.channel.allocator.buffer(capacity: writer.headBytes)
            writer.writeHead(to: &bytes)
            context.write(NIOAny(bytes), promise: nil)
            context.writeAndFlush(NIOAny(request.body), promise: nil)
        }
    }

    /// Takes bytes from the wire.
    func receive(_ bytes: ByteBuffer) {
        let byteCount = bytes.readableBytes
        switch self.phase {
        case .head, .body:
            if self.pending.readableBytes == 0 {
                self.pending = bytes
            } else {
                self.pending.writeImmutableBuffer(bytes)
            }
            self.advance()
            self.hold(byteCount)
        case .settling:
            self.isReusable = false
        case .idle:
            // Bytes nobody asked for would be taken for the answer to the next request.
            self.abort(.invalidResponse)
        case .closed:
            break
        }
    }

    /// The transport has handed over everything it read at once.
    func readCompleted() {
        guard case .settling = self.phase else { return }
        guard self.isReusable, self.context?.channel.isActive == true else {
            self.close()
            return
        }
        self.phase = .idle
        self.lane.settle(self)
    }

    /// Hands the answer to the caller.
    func deliver(_ head: HTTPResponseHead, to exchange: HTTPClientExchange) {
        let response = HTTPClientResponse(
            status: HTTPResponse.Status(code: head.status),
            fields: head.fields,
            body: self.bodyReader.body
        )
        self.bodyReader = HTTPBodyReader()
        self.releaseAnswer()
        self.phase = .settling
        self.timer.clear()
        exchange.finish(.success(response))
    }

    /// Counts bytes that have just arrived, if the answer is not complete with them.
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

    /// Nothing is held of an answer any more.
    func releaseAnswer() {
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
                // More bytes than the answer has.
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
            self.partialHead.appendBody(self.pending)
            self.pending = ByteBuffer()
        case .complete(let byteCount):
            guard let bytes = self.pending.readSlice(length: byteCount) else { return }
            self.partialHead.appendBody(bytes)
            let head = self.partialHead
            self.partialHead = ByteBuffer()
            self.accept(head, for: exchange)
        }
    }

    private func accept(_ head: ByteBuffer, for exchange: HTTPClientExchange) {
        let limit = self.core.maxBodyBytes(for: exchange.request)
        switch HTTPResponseHeadParser(maxBodyBytes: limit).parse(head, method: exchange.request.method) {
        case .refused(let code):
            self.abort(code)
        case .informational:
            self.informationalHeads += 1
            guard self.informationalHeads <= HTTPClientCore.maxInformationalHeads else {
                self.abort(.invalidResponse)
                return
            }
            self.scanner = HTTPHeadScanner(limits: self.core.scanLimits)
        case .accepted(let response, let framing, let keepsAlive):
            // An answer that overtakes its request leaves the rest of the request on the wire.
            self.isReusable = keepsAlive && self.isFlushed
            if framing == .none {
                self.deliver(response, to: exchange)
                return
            }
            self.bodyReader = HTTPBodyReader(
                framing: framing,
                maxBodyBytes: limit,
                maxOverheadBytes: limit + 16 * 1024
            )
            self.phase = .body(exchange, response, endsWithConnection: framing == .untilClose)
        }
    }

    private func advanceBody(of exchange: HTTPClientExchange, _ head: HTTPResponseHead) {
        switch self.bodyReader.read(from: &self.pending) {
        case .incomplete: break
        case .complete: self.deliver(head, to: exchange)
        case .tooLarge: self.abort(.responseTooLarge)
        case .malformed: self.abort(.invalidResponse)
        }
    }

    /// Whether every byte of the request has left.
    private var isFlushed: Bool {
        self.context?.channel.isWritable ?? true
    }
}
