import HTTPTypes
import NIOCore
import NIOHTTP1

extension HTTPServerConnection {
    /// Takes bytes from the wire.
    func receive(_ bytes: ByteBuffer) {
        switch self.phase {
        case .closed:
            break
        case .lingering(let discardedBytes):
            self.phase = .lingering(discardedBytes: discardedBytes + bytes.readableBytes)
            if discardedBytes + bytes.readableBytes > HTTPServerCore.maxLingerBytes {
                self.abort()
            }
        case .responding, .flushing:
            self.hold(bytes)
            if self.pending.readableBytes > HTTPServerCore.maxHeldBytes {
                self.abort()
            }
        case .idle, .head, .body:
            self.hold(bytes)
            self.advance()
        }
    }

    /// Whether the transport may read; if not, it is told later.
    ///
    /// One read ahead is left standing while a request is answered: withholding it costs two system calls a request
    /// and would hide that the peer has gone.
    func mayRead() -> Bool {
        switch self.phase {
        case .responding, .flushing:
            self.isReadWithheld = self.pending.readableBytes > 0
            return !self.isReadWithheld
        case .idle, .head, .body, .lingering, .closed:
            return true
        }
    }

    func resumeReading() {
        guard self.isReadWithheld, self.mayRead() else { return }
        self.isReadWithheld = false
        self.context?.read()
    }

    /// Feeds what has arrived to the parser, up to the end of one request.
    func advance() {
        receiving: while self.pending.readableBytes > 0 {
            switch self.phase {
            case .idle: self.beginHead()
            case .head: self.advanceHead()
            case .body(let cutter): self.advanceBody(cutter)
            case .responding, .flushing, .lingering, .closed: break receiving
            }
        }
        switch self.phase {
        case .head:
            self.await(.head, for: self.core.timeouts.head)
        case .body:
            self.await(.body, for: self.core.timeouts.body)
        case .responding, .flushing:
            guard self.pending.readableBytes == 0 else { return }
        case .idle, .lingering, .closed:
            break
        }
        // Dropped rather than emptied: an idle connection should hold no read buffer.
        self.pending = ByteBuffer()
    }

    /// Sets the deadline of an unfinished part of a request once; later fragments of the part do not move it.
    private func await(_ part: AwaitedPart, for amount: TimeAmount) {
        guard self.awaited != part else { return }
        self.awaited = part
        self.timer.set(self.deadline(in: amount))
    }

    private func hold(_ bytes: ByteBuffer) {
        if self.pending.readableBytes == 0 {
            self.pending = bytes
        } else {
            self.pending.writeImmutableBuffer(bytes)
        }
    }

    /// Hands bytes to the parser, which answers by filling `parsed` before this returns.
    private func feed(_ bytes: ByteBuffer) {
        self.context?.fireChannelRead(NIOAny(bytes))
    }

    // MARK: Head

    private func beginHead() {
        self.phase = .head
        self.scanner = HTTPHeadScanner(limits: self.core.scanLimits)
        self.awaited = nil
    }

    private func advanceHead() {
        switch self.scanner.scan(self.pending.readableBytesUInt8Span) {
        case .tooLarge:
            self.refuse(.headerTooLarge)
        case .startLineTooLong:
            self.refuse(.uriTooLong)
        case .incomplete:
            let bytes = self.pending
            self.pending.moveReaderIndex(to: self.pending.writerIndex)
            self.feed(bytes)
            if let error = self.parsed.error {
                self.refuse(Self.refusal(for: error))
            } else if self.parsed.head != nil {
                self.refuse(.badRequest(reason: "The head's end is ambiguous."))
            }
        case .complete(let byteCount):
            guard let bytes = self.pending.readSlice(length: byteCount) else { return }
            self.feed(bytes)
            if let error = self.parsed.error {
                self.refuse(Self.refusal(for: error))
            } else if let head = self.parsed.head {
                self.accept(head)
            } else {
                self.refuse(.badRequest(reason: "The head's end is ambiguous."))
            }
        }
    }

    private func accept(_ head: HTTPRequestHead) {
        let accepted: HTTPAcceptedHead
        switch self.check.check(head) {
        case .refused(let refusal):
            self.refuse(refusal)
            return
        case .accepted(let value):
            accepted = value
        }
        self.accepted = accepted
        guard accepted.framing != .none else {
            if self.parsed.isComplete {
                self.startResponding()
            } else {
                self.refuse(.badRequest(reason: "The body's end is ambiguous."))
            }
            return
        }
        guard !self.parsed.isComplete else {
            self.refuse(.badRequest(reason: "The body's end is ambiguous."))
            return
        }
        let limit = self.core.configuration.bodyLimit(accepted.request)
        if case .length(let length) = accepted.framing, length > limit {
            self.refuse(.bodyTooLarge)
            return
        }
        self.phase = .body(
            HTTPBodyCutter(
                framing: accepted.framing,
                maxBodyBytes: limit,
                maxOverheadBytes: self.core.configuration.maxChunkOverheadBytes
            )
        )
        if accepted.expectsContinue, self.pending.readableBytes == 0 {
            self.writeContinue()
        }
    }

    // MARK: Body

    private func advanceBody(_ cutter: HTTPBodyCutter) {
        var cutter = cutter
        let cut = cutter.cut(from: &self.pending)
        switch cut {
        case .tooLarge:
            self.refuse(.bodyTooLarge)
        case .malformed:
            self.refuse(.badRequest(reason: "The body's framing is malformed."))
        case .part(let bytes), .last(let bytes):
            self.phase = .body(cutter)
            self.feed(bytes)
            let isLast = if case .last = cut { true } else { false }
            if let error = self.parsed.error {
                self.refuse(Self.refusal(for: error))
            } else if self.parsed.isComplete != isLast {
                self.refuse(.badRequest(reason: "The body's end is ambiguous."))
            } else if isLast {
                self.startResponding()
            }
        }
    }

    // MARK: Request

    private func startResponding() {
        guard let accepted = self.accepted else { return }
        self.phase = .responding
        self.awaited = nil
        self.timer.clear()
        let request = HTTPServerRequest(head: accepted.request, body: self.parsed.body, connection: self.info)
        self.parsed = HTTPParsedMessage()
        let connection = NIOLoopBound(self, eventLoop: self.info.eventLoop)
        let responder = self.core.responder
        self.task = Task(executorPreference: self.lane.executor) {
            let response = await responder.respond(to: request)
            connection.value.respond(response)
        }
    }

    private static func refusal(for error: any Error) -> HTTPServerRefusal {
        switch error as? HTTPParserError {
        case .headerOverflow: .headerTooLarge
        case .invalidVersion: .httpVersionNotSupported
        case .some, .none: .badRequest(reason: "The request is malformed.")
        }
    }
}
