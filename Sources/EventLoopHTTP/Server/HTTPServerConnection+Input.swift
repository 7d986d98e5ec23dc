import HTTPTypes
import NIOCore

extension HTTPServerConnection {
    /// Takes bytes from the wire.
    func receive(_ bytes: ByteBuffer) {
        switch self.phase {
        case .closed:
            break
        case .lingering(let discardedBytes):
            self.phase = .lingering(discardedBytes: discardedBytes + bytes.readableBytes)
            if discardedBytes + bytes.readableBytes > HTTPServerCore.maxLingerBytes {
                self.cut(.flooded)
            }
        case .responding, .flushing:
            self.hold(bytes)
            if self.pending.readableBytes > HTTPServerCore.maxHeldBytes {
                self.cut(.flooded)
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

    /// Reads what has arrived, up to the end of one request.
    func advance() {
        // The loop below goes on with the next request once this one is answered.
        guard !self.isAdvancing else { return }
        self.isAdvancing = true
        defer { self.isAdvancing = false }
        receiving: while self.pending.readableBytes > 0 {
            switch self.phase {
            case .idle: self.beginHead()
            case .head: self.advanceHead()
            case .body: self.advanceBody()
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

    // MARK: Head

    private func beginHead() {
        self.phase = .head
        self.scanner = HTTPHeadScanner(limits: self.core.scanLimits)
        self.awaited = nil
    }

    private func advanceHead() {
        let arrived = self.pending
        switch self.scanner.scan(arrived.readableBytesUInt8Span) {
        case .tooLarge:
            self.refuse(.headerTooLarge)
        case .startLineTooLong:
            self.refuse(.uriTooLong)
        case .malformed:
            self.refuse(.badRequest(reason: "The head is malformed."))
        case .incomplete:
            self.head.appendBody(self.pending)
            self.pending = ByteBuffer()
        case .complete(let byteCount):
            guard let bytes = self.pending.readSlice(length: byteCount) else { return }
            self.head.appendBody(bytes)
            switch self.parser.parse(self.head) {
            case .refused(let refusal): self.refuse(refusal)
            case .accepted(let accepted): self.accept(accepted)
            }
        }
    }

    private func accept(_ accepted: HTTPAcceptedHead) {
        self.head = ByteBuffer()
        self.accepted = accepted
        guard accepted.framing != .none else {
            self.bodyReader = HTTPBodyReader()
            self.startResponding()
            return
        }
        let limit = self.core.configuration.bodyLimit(accepted.head)
        if case .length(let length) = accepted.framing, length > limit {
            self.refuse(.bodyTooLarge)
            return
        }
        if case .length(let length) = accepted.framing,
            !self.core.bodies.hasRoom(for: length - self.core.configuration.uncountedBodyBytes)
        {
            self.refuse(.tooManyBufferedBytes(path: accepted.head.pathBytes))
            return
        }
        self.phase = .body
        self.bodyReader = HTTPBodyReader(
            framing: accepted.framing,
            maxBodyBytes: limit,
            maxOverheadBytes: self.core.configuration.maxChunkOverheadBytes
        )
        if accepted.expectsContinue, self.pending.readableBytes == 0 {
            self.writeContinue()
        }
    }

    // MARK: Body

    private func advanceBody() {
        let step = self.bodyReader.read(from: &self.pending)
        guard self.gaugeBody() else {
            self.refuse(.tooManyBufferedBytes(path: self.accepted?.head.pathBytes ?? []))
            return
        }
        switch step {
        case .incomplete: break
        case .complete: self.startResponding()
        case .tooLarge: self.refuse(.bodyTooLarge)
        case .malformed: self.refuse(.badRequest(reason: "The body's framing is malformed."))
        }
    }

    /// Counts what has arrived of the body.
    ///
    /// - Returns: whether there is room for it.
    private func gaugeBody() -> Bool {
        let counted = self.bodyReader.body.readableBytes - self.core.configuration.uncountedBodyBytes
        let arrived = counted - self.gaugedBytes
        guard arrived > 0 else { return true }
        guard self.core.bodies.hold(arrived) else { return false }
        self.gaugedBytes += arrived
        return true
    }

    /// The body is gone, or was never whole.
    func releaseBody() {
        guard self.gaugedBytes > 0 else { return }
        self.core.bodies.release(self.gaugedBytes)
        self.gaugedBytes = 0
    }

    // MARK: Request

    private func startResponding() {
        guard let accepted = self.accepted else { return }
        self.phase = .responding
        self.awaited = nil
        self.timer.clear()
        let request = HTTPServerRequest(
            head: accepted.head,
            body: self.bodyReader.body,
            connection: self.info,
            lag: self.lane.noteWork()
        )
        self.bodyReader = HTTPBodyReader()
        let connection = NIOLoopBound(self, eventLoop: self.info.eventLoop)
        let responder = self.core.responder
        // Started here and now: only what has to wait is scheduled on the loop.
        self.task = Task.immediate(executorPreference: self.lane.executor) {
            let response = await responder.respond(to: request)
            connection.value.respond(response)
        }
    }
}
