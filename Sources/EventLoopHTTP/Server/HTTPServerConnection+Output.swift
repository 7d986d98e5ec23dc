import HTTPTypes
import NIOCore

extension HTTPServerConnection {
    /// Takes a responder's answer and sends it, at once or in its turn.
    func respond(_ response: HTTPServerResponse) {
        self.releaseBody()
        self.lane.noteWork()
        guard case .responding = self.phase else { return }
        self.task = nil
        if response.isPaced, self.lane.pace(self) {
            self.pacedResponse = response
        } else {
            self.answer(response)
        }
    }

    /// The turn of a paced answer has come.
    func answerPaced() {
        guard let response = self.pacedResponse else { return }
        self.pacedResponse = nil
        self.answer(response)
    }

    /// Sends an answer to the present request.
    private func answer(_ response: HTTPServerResponse) {
        guard case .responding = self.phase, let accepted = self.accepted else { return }
        let closes = response.closesConnection || !accepted.keepsAlive || self.core.isDraining
        self.send(response, omitsBody: accepted.head.method == .head, isHTTP10: accepted.isHTTP10, closes: closes)
    }

    /// Answers a request that is not understood or not wanted, and ends the connection: where the next request would
    /// start is unknown.
    func refuse(_ refusal: HTTPServerRefusal) {
        switch self.phase {
        case .idle, .head, .body: break
        case .responding, .flushing, .lingering, .closed: return
        }
        let request = HTTPRefusedRequest(remoteAddress: self.info.remoteAddress, head: self.accepted?.head)
        let omitsBody =
            self.accepted.map { $0.head.method == .head }
            ?? self.head.readableBytesView.starts(with: "HEAD ".utf8)
        self.timer.clear()
        self.head = ByteBuffer()
        self.bodyReader = HTTPBodyReader()
        self.releaseBody()
        self.send(
            self.core.configuration.refusalResponse(refusal, request),
            omitsBody: omitsBody,
            isHTTP10: false,
            closes: true
        )
    }

    /// Tells a waiting client to send its body (RFC 9110, section 10.1.1).
    func writeContinue() {
        self.context?
            .writeAndFlush(
                NIOAny(ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n")),
                promise: nil
            )
    }

    /// Bytes of answers that have not left yet.
    func bufferedBytes() -> Int {
        (try? self.context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    private func send(_ response: HTTPServerResponse, omitsBody: Bool, isHTTP10: Bool, closes: Bool) {
        guard let context = self.context else { return }
        let connection: HTTPResponseHeadWriter.Connection =
            closes ? .close : isHTTP10 ? .keepAlive : .unmentioned
        let now = context.eventLoop.now
        let writer = HTTPResponseHeadWriter(
            response: response,
            omitsBody: omitsBody,
            connection: connection,
            date: self.lane.date(at: now)
        )
        self.accepted = nil
        if writer.body.readableBytes <= ByteBuffer.coalescedBodyBytes {
            var bytes = context.channel.allocator.buffer(capacity: writer.headBytes + writer.body.readableBytes)
            writer.writeHead(to: &bytes)
            bytes.writeImmutableBuffer(writer.body)
            context.writeAndFlush(NIOAny(bytes), promise: nil)
        } else {
            var bytes = context.channel.allocator.buffer(capacity: writer.headBytes)
            writer.writeHead(to: &bytes)
            context.write(NIOAny(bytes), promise: nil)
            context.writeAndFlush(NIOAny(writer.body), promise: nil)
        }
        // The write may have found the peer gone.
        if case .closed = self.phase { return }
        if context.channel.isWritable {
            self.finish(closes: closes, at: now)
        } else {
            self.waitUntilFlushed(context, bufferedBytes: self.bufferedBytes(), closes: closes)
        }
    }

    /// The slow path: the peer does not read as fast as we write.
    private func waitUntilFlushed(_ context: ChannelHandlerContext, bufferedBytes: Int, closes: Bool) {
        self.phase = .flushing(bufferedBytes: bufferedBytes, closes: closes)
        self.timer.set(self.deadline(in: self.core.timeouts.writeStall))
        // Writes complete in order, so this empty one completes behind the answer.
        let flushed = context.eventLoop.makePromise(of: Void.self)
        flushed.futureResult.assumeIsolated()
            .whenSuccess {
                // A drain may have decided meanwhile that the connection ends here.
                guard case .flushing(_, let closes) = self.phase else { return }
                self.finish(closes: closes, at: context.eventLoop.now)
            }
        context.writeAndFlush(NIOAny(ByteBuffer()), promise: flushed)
    }

    /// The answer has left.
    private func finish(closes: Bool, at now: NIODeadline) {
        guard !closes else {
            self.linger()
            return
        }
        self.phase = .idle(since: now)
        self.timer.set(now + self.core.timeouts.keepAlive)
        if self.pending.readableBytes > 0 {
            self.advance()
        }
        self.resumeReading()
    }

    /// Ends our side and discards what still comes: closing outright while the peer sends would make its system throw
    /// the answer away (RFC 9112, section 9.6).
    private func linger() {
        self.phase = .lingering(discardedBytes: 0)
        self.pending = ByteBuffer()
        self.timer.set(self.deadline(in: self.core.timeouts.linger))
        self.context?.close(mode: .output, promise: nil)
        self.resumeReading()
    }
}
