import HTTPTypes
import Logging
import NIOCore
import NIOSSL
import NIOTLS

/// One connection of a server: the last handler of its pipeline. It reads requests one by one from the byte stream, and
/// has each answered before it reads the next.
///
/// Requests are bounded in size and time as they arrive. While a request is answered, reads are withheld if bytes of
/// later requests wait. Everything here runs on the connection's event loop.
final class HTTPServerConnection: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer

    private enum Phase {
        /// Between requests: no byte of the next one has arrived. Next: `head`, `closed`.
        case idle(since: NIODeadline)
        /// A head is arriving; a fresh connection starts here. Next: `body`, `responding`, `lingering`, `closed`.
        case head
        /// A body is arriving. Next: `responding`, `lingering`, `closed`.
        case body
        /// A task produces the answer. Next: `idle`, `flushing`, `lingering`, `closed`.
        case responding
        /// The rest of the answer waits for the peer to read. Next: `idle`, `lingering`, `closed`.
        case flushing(bufferedBytes: Int, closes: Bool)
        /// The last answer has left. Input is discarded until the peer closes. Next: `closed`.
        case lingering(discardedBytes: Int)
        case closed
    }

    private enum AwaitedPart {
        case head
        case body
    }

    /// The connection is closed after this many bytes are discarded behind a last answer.
    private static let maxLingerBytes = 1024 * 1024
    /// The most bytes of later requests held while one is answered. Only a closing peer can reach this.
    private static let maxHeldBytes = 512 * 1024
    /// Bytes of an answer that must leave within the stall timeout, unless fewer remain. So a peer that reads a byte
    /// now and then can't hold a connection for ever.
    private static let minFlushedBytes = 16 * 1024

    private let server: HTTPServer
    private let loop: HTTPServerLoop
    private var info: HTTPServerRequest.ConnectionInfo
    private let timer: RearmingTimer
    private var context: ChannelHandlerContext?

    private var phase = Phase.head
    private var pending = ByteBuffer()
    /// True while pending bytes are being read. A responder that does not suspend answers during this reading.
    private var isAdvancing = false
    private var isReadWithheld = false
    private var scanner: HTTPHeadScanner
    private var head = ByteBuffer()
    private var bodyReader = HTTPBodyReader()
    private var accepted: HTTPHeadParser.AcceptedRequest?
    private var task: Task<Void, Never>?
    /// Bytes of the current request's body that the server's budget counts.
    private var countedBytes = 0
    private var pacedResponse: HTTPServerResponse?
    private var awaited: AwaitedPart?
    /// True if bytes may leave: in plain text always, and with TLS only after the handshake.
    private var isSecured: Bool

    init(server: HTTPServer, loop: HTTPServerLoop, info: HTTPServerRequest.ConnectionInfo) {
        self.server = server
        self.loop = loop
        self.info = info
        self.timer = RearmingTimer(eventLoop: info.eventLoop)
        self.scanner = HTTPHeadScanner(limits: server.scanLimits)
        self.isSecured = !info.isTLS
    }

    // MARK: Events of the channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { self.opened() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.closed()
        self.context = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        self.opened()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.closed()
        context.fireChannelInactive()
    }

    func read(context: ChannelHandlerContext) {
        if self.mayRead() { context.read() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(.handshakeCompleted) = event as? TLSUserEvent {
            self.secured(by: try? context.pipeline.syncOperations.nioSSL_peerCertificate())
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.server.logger.debug("Connection failed.", metadata: ["error": "\(error)"])
        self.abort()
    }

    // MARK: Life

    /// The connection is accepted. The first head's deadline starts here.
    private func opened() {
        self.timer.start { [unowned self] in self.deadlinePassed() }
        self.awaited = .head
        self.timer.set(self.deadline(in: self.server.timeouts.head))
    }

    /// The connection has ended. The channel's end and the pipeline's both call this, in any order.
    private func closed() {
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
        self.loop.remove(self)
    }

    /// The TLS handshake has ended: bytes may leave, and the client has the names in its certificate, if it sent one.
    ///
    /// A resumed session has the certificate of its first handshake, which TLS does not verify again. If the
    /// certificate has expired, the connection is closed.
    private func secured(by certificate: NIOSSLCertificate?) {
        self.isSecured = true
        guard let certificate else { return }
        guard Int64(certificate.notValidAfter) >= self.server.configuration.wallClock().components.seconds else {
            self.abort()
            return
        }
        self.info = HTTPServerRequest.ConnectionInfo(
            remoteAddress: self.info.remoteAddress,
            isTLS: self.info.isTLS,
            clientNames: Self.names(in: certificate),
            eventLoop: self.info.eventLoop
        )
    }

    var isAnswering: Bool {
        switch self.phase {
        case .responding, .flushing: true
        case .idle, .head, .body, .lingering, .closed: false
        }
    }

    /// The start of the wait for the next request; nil in any other phase, including the first head.
    var idleSince: NIODeadline? {
        if case .idle(let since) = self.phase { since } else { nil }
    }

    func closeIfIdle() {
        switch self.phase {
        case .idle: self.closeIdle()
        case .head where self.scanner.isUntouched: self.closeUnlessUsed()
        case .flushing(let bufferedBytes, _): self.phase = .flushing(bufferedBytes: bufferedBytes, closes: true)
        case .head, .body, .responding, .lingering, .closed: break
        }
    }

    /// Closes a fresh connection after the settling time, unless its first request arrives: it may be in transit.
    private func closeUnlessUsed() {
        self.info.eventLoop.assumeIsolated()
            .scheduleTask(in: self.server.timeouts.settling) {
                guard case .head = self.phase, self.scanner.isUntouched else { return }
                self.abort()
            }
    }

    /// Closes a connection between requests. A request that still arrives, as it may while TLS ends, is discarded.
    private func closeIdle() {
        self.phase = .lingering(discardedBytes: 0)
        self.timer.set(self.deadline(in: self.server.timeouts.linger))
        self.context?.close(promise: nil)
    }

    /// Closes the connection at once, without waiting for the peer's end of TLS. Reports a reason, if there is one.
    func abort(_ reason: HTTPServerCloseReason? = nil) {
        if let reason { self.server.configuration.onClose(reason) }
        guard let context = self.context else { return }
        if self.info.isTLS,
            let encryption = try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
        {
            encryption.close(promise: nil)
        } else {
            context.close(promise: nil)
        }
    }

    /// The DNS names, in lower case, and the URIs among the subject alternative names (RFC 5280, section 4.2.1.6).
    ///
    /// A name is left out if it has the form of the other kind, or bytes outside 0x21 to 0x7E. A DNS name must not pass
    /// for a URI. The subject's common name is ignored.
    private static func names(in certificate: NIOSSLCertificate) -> [String] {
        certificate._subjectAlternativeNames()
            .compactMap { name in
                let text = String(decoding: name.contents, as: UTF8.self)
                guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
                let hasScheme = text.utf8.contains(UInt8(ascii: ":"))
                switch name.nameType {
                case .dnsName where !hasScheme: return text.lowercased()
                case .uri where hasScheme: return text
                default: return nil
                }
            }
    }

    // MARK: Reading

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = self.unwrapInboundIn(data)
        switch self.phase {
        case .closed:
            break
        case .lingering(let discardedBytes):
            self.phase = .lingering(discardedBytes: discardedBytes + bytes.readableBytes)
            if discardedBytes + bytes.readableBytes > Self.maxLingerBytes { self.abort(.flooded) }
        case .responding, .flushing:
            self.pending.gather(bytes)
            if self.pending.readableBytes > Self.maxHeldBytes { self.abort(.flooded) }
        case .idle, .head, .body:
            self.pending.gather(bytes)
            self.advance()
        }
    }

    /// Returns true if the transport may read. If not, ``resumeReading()`` reads later.
    ///
    /// One read stays outstanding while a request is answered. Withholding it costs two system calls for each request,
    /// and would hide that the peer has gone.
    private func mayRead() -> Bool {
        switch self.phase {
        case .responding, .flushing:
            self.isReadWithheld = self.pending.readableBytes > 0
            return !self.isReadWithheld
        case .idle, .head, .body, .lingering, .closed:
            return true
        }
    }

    private func resumeReading() {
        guard self.isReadWithheld, self.mayRead() else { return }
        self.isReadWithheld = false
        self.context?.read()
    }

    private func advance() {
        // The loop below continues with the next request after this one is answered.
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
            self.await(.head, for: self.server.timeouts.head)
        case .body:
            self.await(.body, for: self.server.timeouts.body)
        case .responding, .flushing:
            guard self.pending.readableBytes == 0 else { return }
        case .idle, .lingering, .closed:
            break
        }
        // Dropped rather than emptied: an idle connection should hold no read buffer.
        self.pending = ByteBuffer()
    }

    /// Sets the deadline of an unfinished part of a request once. Later fragments of the part do not move it.
    private func await(_ part: AwaitedPart, for amount: TimeAmount) {
        guard self.awaited != part else { return }
        self.awaited = part
        self.timer.set(self.deadline(in: amount))
    }

    private func beginHead() {
        self.phase = .head
        self.scanner = HTTPHeadScanner(limits: self.server.scanLimits)
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
            self.head.gather(self.pending)
            self.pending = ByteBuffer()
        case .complete(let byteCount):
            guard let bytes = self.pending.readSlice(length: byteCount) else { return }
            self.head.gather(bytes)
            do throws(HTTPServerRefusal) {
                let maxURIBytes = self.server.configuration.maxURIBytes
                self.accept(try HTTPHeadParser.request(self.head, maxURIBytes: maxURIBytes))
            } catch {
                self.refuse(error)
            }
        }
    }

    private func accept(_ accepted: HTTPHeadParser.AcceptedRequest) {
        self.head = ByteBuffer()
        self.accepted = accepted
        guard accepted.framing != .none else {
            self.bodyReader = HTTPBodyReader()
            self.startResponding()
            return
        }
        var limit = self.server.configuration.leastBodyLimit
        if accepted.framing.mayExceed(limit) { limit = self.server.configuration.bodyLimit(accepted.head) }
        if case .length(let length) = accepted.framing {
            guard length <= limit else {
                self.refuse(.bodyTooLarge)
                return
            }
            guard self.server.bodies.hasRoom(for: length - self.server.configuration.uncountedBodyBytes) else {
                self.refuse(.tooManyBufferedBytes(path: accepted.head.pathBytes))
                return
            }
        }
        self.phase = .body
        self.bodyReader = HTTPBodyReader(
            framing: accepted.framing,
            maxBodyBytes: limit,
            maxOverheadBytes: self.server.configuration.maxChunkOverheadBytes
        )
        // Tells a waiting client to send its body (RFC 9110, section 10.1.1).
        if accepted.expectsContinue, self.pending.readableBytes == 0 {
            self.context?
                .writeAndFlush(
                    NIOAny(ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n")),
                    promise: nil
                )
        }
    }

    private func advanceBody() {
        let step = self.bodyReader.read(from: &self.pending)
        guard self.countBody() else {
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

    /// Counts the bytes of the body that have arrived. Returns false if there is no room for them.
    private func countBody() -> Bool {
        let counted = self.bodyReader.body.readableBytes - self.server.configuration.uncountedBodyBytes
        let arrived = counted - self.countedBytes
        guard arrived > 0 else { return true }
        guard self.server.bodies.hold(arrived) else { return false }
        self.countedBytes += arrived
        return true
    }

    private func releaseBody() {
        guard self.countedBytes > 0 else { return }
        self.server.bodies.release(self.countedBytes)
        self.countedBytes = 0
    }

    private func startResponding() {
        guard let accepted = self.accepted else { return }
        self.phase = .responding
        self.awaited = nil
        self.timer.clear()
        let request = HTTPServerRequest(
            head: accepted.head,
            body: self.bodyReader.body,
            connection: self.info,
            lag: self.loop.noteWork()
        )
        self.bodyReader = HTTPBodyReader()
        let connection = NIOLoopBound(self, eventLoop: self.info.eventLoop)
        let responder = self.server.responder
        // Starts immediately. Only code after a suspension is scheduled on the loop.
        self.task = Task.immediate(executorPreference: self.loop.executor) {
            let response = await responder.respond(to: request)
            connection.value.respond(response)
        }
    }

    // MARK: Answering

    private func respond(_ response: HTTPServerResponse) {
        self.releaseBody()
        self.loop.noteWork()
        guard case .responding = self.phase else { return }
        self.task = nil
        if response.isPaced, self.loop.pace(self) {
            self.pacedResponse = response
        } else {
            self.answer(response)
        }
    }

    func answerPaced() {
        guard let response = self.pacedResponse else { return }
        self.pacedResponse = nil
        self.answer(response)
    }

    private func answer(_ response: HTTPServerResponse) {
        guard case .responding = self.phase, let accepted = self.accepted else { return }
        let closes = response.closesConnection || !accepted.keepsAlive || self.server.isDraining
        self.send(response, omitsBody: accepted.head.method == .head, isHTTP10: accepted.isHTTP10, closes: closes)
    }

    /// Answers a request that is not understood or not wanted, and ends the connection, because the start of the next
    /// request is unknown.
    private func refuse(_ refusal: HTTPServerRefusal) {
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
            self.server.configuration.refusalResponse(refusal, request),
            omitsBody: omitsBody,
            isHTTP10: false,
            closes: true
        )
    }

    private func bufferedBytes() -> Int {
        (try? self.context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    private func send(_ response: HTTPServerResponse, omitsBody: Bool, isHTTP10: Bool, closes: Bool) {
        guard let context = self.context else { return }
        let now = context.eventLoop.now
        let message = HTTPOutgoingResponse(
            response: response,
            omitsBody: omitsBody,
            connection: closes ? .close : isHTTP10 ? .keepAlive : .unmentioned,
            date: self.loop.date(at: now)
        )
        self.accepted = nil
        context.send(message)
        // The write may have found that the peer has closed.
        if case .closed = self.phase { return }
        if context.channel.isWritable {
            self.finish(closes: closes, at: now)
        } else {
            self.waitUntilFlushed(context, bufferedBytes: self.bufferedBytes(), closes: closes)
        }
    }

    private func waitUntilFlushed(_ context: ChannelHandlerContext, bufferedBytes: Int, closes: Bool) {
        self.phase = .flushing(bufferedBytes: bufferedBytes, closes: closes)
        self.timer.set(self.deadline(in: self.server.timeouts.writeStall))
        // Writes complete in order, so this empty one completes after the answer.
        let flushed = context.eventLoop.makePromise(of: Void.self)
        flushed.futureResult.assumeIsolated()
            .whenSuccess {
                // A drain may have decided meanwhile to end the connection.
                guard case .flushing(_, let closes) = self.phase else { return }
                self.finish(closes: closes, at: context.eventLoop.now)
            }
        context.writeAndFlush(NIOAny(ByteBuffer()), promise: flushed)
    }

    private func finish(closes: Bool, at now: NIODeadline) {
        guard !closes else {
            self.linger()
            return
        }
        self.phase = .idle(since: now)
        self.timer.set(now + self.server.timeouts.keepAlive)
        if self.pending.readableBytes > 0 { self.advance() }
        self.resumeReading()
    }

    /// Closes our side and discards further input. Closing outright while the peer sends would make its system discard
    /// the answer (RFC 9112, section 9.6).
    private func linger() {
        self.phase = .lingering(discardedBytes: 0)
        self.pending = ByteBuffer()
        self.timer.set(self.deadline(in: self.server.timeouts.linger))
        self.context?.close(mode: .output, promise: nil)
        self.resumeReading()
    }

    // MARK: Deadlines

    private func deadline(in amount: TimeAmount) -> NIODeadline {
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
            guard bufferedBytes - left >= Self.minFlushedBytes else {
                self.abort(.writeStalled)
                return
            }
            self.phase = .flushing(bufferedBytes: left, closes: closes)
            self.timer.set(self.deadline(in: self.server.timeouts.writeStall))
        case .head:
            self.abort(.handshakeTimeout)
        case .lingering:
            self.abort()
        case .responding, .closed:
            break
        }
    }
}
