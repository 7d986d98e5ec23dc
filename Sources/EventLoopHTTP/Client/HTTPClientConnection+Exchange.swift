import HTTPTypes
import NIOCore
import NIOHTTP1

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
        self.parsed = HTTPParsedMessage()
        self.informationalHeads = 0
        self.isReusable = true
        self.timer.set(exchange.deadline)
        self.decoder.write(data: .head(writer.parserHead()))
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
        switch self.phase {
        case .head, .body:
            if self.pending.readableBytes == 0 {
                self.pending = bytes
            } else {
                self.pending.writeImmutableBuffer(bytes)
            }
            self.advance()
        case .settling:
            self.isReusable = false
        case .idle:
            // Bytes nobody asked for would be taken for the answer to the next request.
            self.abort(.invalidResponse)
        case .opening, .closed:
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
    func deliver(_ response: HTTPClientResponse, to exchange: HTTPClientExchange) {
        var response = response
        response.body = self.parsed.body
        self.parsed = HTTPParsedMessage()
        self.phase = .settling
        self.timer.clear()
        exchange.finish(.success(response))
    }

    private func advance() {
        reading: while self.pending.readableBytes > 0 {
            switch self.phase {
            case .head(let exchange):
                self.advanceHead(of: exchange)
            case .body(let exchange, let response, let cutter, let endsWithConnection):
                self.advanceBody(of: exchange, response, cutter, endsWithConnection: endsWithConnection)
            case .settling:
                // More bytes than the answer has.
                self.isReusable = false
                break reading
            case .opening, .idle, .closed:
                break reading
            }
        }
        self.pending = ByteBuffer()
    }

    private func advanceHead(of exchange: HTTPClientExchange) {
        let step = self.scanner.scan(self.pending.readableBytesUInt8Span)
        let byteCount: Int
        switch step {
        case .tooLarge, .startLineTooLong:
            self.abort(.responseTooLarge)
            return
        case .incomplete:
            byteCount = self.pending.readableBytes
        case .complete(let count):
            byteCount = count
        }
        guard let bytes = self.pending.readSlice(length: byteCount) else { return }
        self.context?.fireChannelRead(NIOAny(bytes))
        if let error = self.parsed.error {
            self.abort(.invalidResponse, cause: error)
            return
        }
        guard let head = self.parsed.head else {
            if step != .incomplete {
                self.abort(.invalidResponse)
            }
            return
        }
        guard step != .incomplete else {
            self.abort(.invalidResponse)
            return
        }
        self.accept(head, for: exchange)
    }

    private func accept(_ head: HTTPResponseHead, for exchange: HTTPClientExchange) {
        switch self.core.check.check(head, method: exchange.request.method) {
        case .refused(let code):
            self.abort(code)
        case .informational:
            self.informationalHeads += 1
            guard self.informationalHeads <= HTTPClientCore.maxInformationalHeads else {
                self.abort(.invalidResponse)
                return
            }
            self.parsed.head = nil
            self.scanner = HTTPHeadScanner(limits: self.core.scanLimits)
        case .accepted(let response, let framing, let keepsAlive):
            // An answer that overtakes its request leaves the rest of the request on the wire.
            self.isReusable = keepsAlive && self.isFlushed
            guard self.parsed.isComplete == (framing == .none) else {
                self.abort(.invalidResponse)
                return
            }
            if framing == .none {
                self.deliver(response, to: exchange)
                return
            }
            let limit = self.core.configuration.maxResponseBodyBytes
            self.phase = .body(
                exchange,
                response,
                HTTPBodyCutter(framing: framing, maxBodyBytes: limit, maxOverheadBytes: limit + 16 * 1024),
                endsWithConnection: framing == .untilClose
            )
        }
    }

    private func advanceBody(
        of exchange: HTTPClientExchange,
        _ response: HTTPClientResponse,
        _ cutter: HTTPBodyCutter,
        endsWithConnection: Bool
    ) {
        var cutter = cutter
        let cut = cutter.cut(from: &self.pending)
        switch cut {
        case .tooLarge:
            self.abort(.responseTooLarge)
        case .malformed:
            self.abort(.invalidResponse)
        case .part(let bytes), .last(let bytes):
            self.phase = .body(exchange, response, cutter, endsWithConnection: endsWithConnection)
            self.context?.fireChannelRead(NIOAny(bytes))
            let isLast = if case .last = cut { true } else { false }
            if let error = self.parsed.error {
                self.abort(.invalidResponse, cause: error)
            } else if self.parsed.isComplete != isLast {
                self.abort(.invalidResponse)
            } else if isLast {
                self.deliver(response, to: exchange)
            }
        }
    }

    /// Whether every byte of the request has left.
    private var isFlushed: Bool {
        ((try? self.context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0) == 0
    }
}
