import NIOCore

/// One HTTP/2 connection of a pool, with its streams.
///
/// Streams have no channels. An exchange needs one write, a few frames back and no back-pressure of its own, since
/// answers are bounded. So a stream is an object in the dictionary of an ``HTTP2Session``. A child channel would take a
/// pipeline, several promises and a few dozen events.
final class HTTP2ClientConnection: HTTPClientConnection, ChannelInboundHandler {
    /// The cause of an exchange's failure on an HTTP/2 connection, for the log.
    enum Fault: Error, Equatable {
        /// The peer ended the stream with this code.
        case reset(HTTP2Session.ErrorCode)
        /// The stream broke the protocol, and this side ended it with this code.
        case violation(HTTP2Session.ErrorCode)
        /// The peer broke the protocol of the whole connection.
        case connection(String)
        /// Every connection refused the exchange.
        case refused
        case silent
        /// The peer chose a protocol that was not offered.
        case noProtocol
    }

    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Phase {
        /// The peer's settings have not arrived. Next: `serving`, `closed`.
        case greeting
        /// Takes exchanges. Next: `draining`, `closed`.
        case serving
        /// Takes no more exchanges, and ends with its last one. Next: `closed`.
        case draining
        case closed
    }

    /// The connection is replaced after this many malformed answers.
    static let maxMalformedAnswers = 100

    private let session: HTTP2Session
    private var phase = Phase.greeting
    private var onGreeted: ((Result<HTTPClientConnection, HTTPClientError>) -> Void)?
    private var liveness: HTTP2Liveness
    /// The timer's next expiry. There may be nothing to do then.
    private var wakesAt = NIODeadline.distantFuture
    private var isFlushScheduled = false
    /// The number of streams whose answer is complete and whose request is not.
    private var answeredEarly = 0
    private var malformedAnswers = 0

    init(loop: HTTPClientLoop) {
        self.session = HTTP2Session(settings: loop.core.http2, authority: loop.core.authority)
        self.liveness = Self.freshLiveness(loop)
        super
            .init(
                loop: loop,
                places: loop.core.http2.streams(allowed: nil),
                maxConnections: loop.core.configuration.http2.maxConnectionsPerLoop
            )
    }

    private static func freshLiveness(_ loop: HTTPClientLoop) -> HTTP2Liveness {
        HTTP2Liveness(limits: loop.core.http2.livenessLimits, now: loop.eventLoop.now, chance: .random(in: 0...1))
    }

    override var isUsable: Bool {
        guard case .serving = self.phase, let context = self.context else { return false }
        return context.channel.isActive
    }

    // MARK: Opening

    override func handlerAdded(context: ChannelHandlerContext) {
        super.handlerAdded(context: context)
        self.scheduleFlush()
    }

    /// Reports when the peer's settings have arrived, or when the connection has failed.
    func whenGreeted(_ onGreeted: @escaping (Result<HTTPClientConnection, HTTPClientError>) -> Void) {
        self.onGreeted = onGreeted
    }

    private func greeted() {
        guard case .greeting = self.phase else { return }
        self.phase = .serving
        // The time until the peer's settings does not count as idle.
        self.liveness = Self.freshLiveness(self.loop)
        self.rearm()
        self.reportGreeted(.success(self))
    }

    private func reportGreeted(_ result: Result<HTTPClientConnection, HTTPClientError>) {
        let onGreeted = self.onGreeted
        self.onGreeted = nil
        onGreeted?(result)
    }

    // MARK: Exchanges

    override var tenants: [Int] { self.session.streams.values.map(\.exchange.request.tenant) }

    override func start(_ exchange: HTTPClientExchange) -> Bool {
        guard exchange.run(on: self) else { return false }
        let isFirst = self.session.streams.isEmpty
        var limits = self.core.http2.responseLimits
        limits.maxBodyBytes = self.core.maxBodyBytes(for: exchange.request)
        guard self.session.start(exchange, limits) != nil else {
            exchange.finish(.failure(HTTPClientError(code: .connectionClosed, requestSent: false)))
            return false
        }
        self.scheduleFlush()
        if isFirst {
            self.liveness.becameBusy()
            self.rearm()
        } else if exchange.deadline < self.wakesAt {
            self.wake(at: exchange.deadline)
        }
        if self.session.hasUsedAllIDs {
            self.drain()
        }
        return true
    }

    override func cancel(_ exchange: HTTPClientExchange, _ code: HTTPClientError.Code) {
        guard let stream = self.session.streams.values.first(where: { $0.exchange === exchange }) else { return }
        self.reset(stream, .cancel, code)
    }

    private func reset(
        _ stream: HTTP2Session.Stream,
        _ reason: HTTP2Session.ErrorCode,
        _ code: HTTPClientError.Code,
        cause: (any Error)? = nil
    ) {
        guard self.forget(stream) else { return }
        let requestSent = self.session.mayHaveSent(stream)
        self.session.reset(stream, reason)
        self.scheduleFlush()
        stream.exchange.finish(.failure(HTTPClientError(code: code, requestSent: requestSent, cause: cause)))
        self.released(stream)
    }

    /// Removes a stream. Returns false if it was removed before.
    private func forget(_ stream: HTTP2Session.Stream) -> Bool {
        guard self.session.forget(stream) else { return false }
        self.core.release(stream.countedBytes)
        if stream.isAnswered {
            self.answeredEarly -= 1
        }
        if self.session.streams.isEmpty {
            self.liveness.becameIdle(at: self.loop.eventLoop.now)
        }
        return true
    }

    private func released(_ stream: HTTP2Session.Stream) {
        if case .serving = self.phase {
            self.loop.released(self, of: stream.exchange.request.tenant)
        }
        self.streamsChanged()
    }

    private func streamsChanged() {
        guard self.session.streams.isEmpty else { return }
        if case .draining = self.phase {
            self.close()
        } else if case .serving = self.phase {
            self.rearm()
        }
    }

    // MARK: Ending

    override func closeIfIdle() {
        self.drain()
    }

    /// Takes no more exchanges, and closes after the current ones have ended.
    private func drain() {
        guard case .serving = self.phase else { return }
        self.phase = .draining
        self.loop.retire(self)
        if self.session.streams.isEmpty {
            self.close()
        }
    }

    override func abort(_ code: HTTPClientError.Code, cause: (any Error)? = nil) {
        switch self.phase {
        case .closed:
            return
        case .greeting:
            self.leave()
            self.context?.closeAtOnce()
            self.reportGreeted(.failure(HTTPClientError(code: code, requestSent: false, cause: cause)))
        case .serving, .draining:
            let streams = self.session.streams
            self.leave()
            self.session.forgetAll()
            self.context?.closeAtOnce()
            for stream in streams.values {
                self.core.release(stream.countedBytes)
                let requestSent = self.session.mayHaveSent(stream)
                stream.exchange.finish(.failure(HTTPClientError(code: code, requestSent: requestSent, cause: cause)))
            }
        }
    }

    private func close() {
        self.session.goAway()
        _ = self.writeOutput()
        self.leave()
        self.context?.close(promise: nil)
    }

    private func leave() {
        self.phase = .closed
        self.timer.stop()
        self.loop.ended(self)
    }

    // MARK: Reading

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !self.isClosed else { return }
        let mayContinue = self.session.receive(self.unwrapInboundIn(data))
        self.handleEvents()
        self.endIfOver(mayContinue: mayContinue)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        defer { context.fireChannelReadComplete() }
        guard !self.isClosed else { return }
        if self.liveness.heard(at: self.loop.eventLoop.now) { self.rearm() }
        // Settings, pings and windows are answered even if no request follows.
        if self.session.wantsToWrite { self.scheduleFlush() }
        guard self.answeredEarly > 0 else { return }
        // The rest of these requests is no longer needed.
        for stream in self.session.streams.values where stream.isAnswered {
            guard self.forget(stream) else { continue }
            self.session.reset(stream, .cancel)
            self.released(stream)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable, !self.isClosed, self.session.wantsToWrite { self.scheduleFlush() }
        context.fireChannelWritabilityChanged()
    }

    private var isClosed: Bool {
        if case .closed = self.phase { true } else { false }
    }

    private func handleEvents() {
        for event in self.session.takeEvents() {
            // An event may have ended the connection.
            guard !self.isClosed else { return }
            switch event {
            case .settings(let maxStreams): self.apply(maxStreams: maxStreams)
            case .arrived(let stream): self.count(stream)
            case .answered(let stream, let response): self.answered(stream, response)
            case .tooLarge(let stream): self.reset(stream, .cancel, .responseTooLarge)
            case .malformed(let stream): self.malformed(stream)
            case .reset(let stream, let code): self.wasReset(stream, code)
            case .violated(let stream, let code):
                guard self.forget(stream) else { continue }
                self.fail(stream, .invalidResponse, Fault.violation(code))
            case .closed(let stream):
                guard self.forget(stream) else { continue }
                self.released(stream)
            case .goAway(let lastStream): self.goAway(after: lastStream)
            case .unsent(let stream): self.retry(stream)
            }
        }
    }

    /// Ends a connection whose peer broke the protocol, after the last frames have been written.
    private func endIfOver(mayContinue: Bool) {
        guard !self.isClosed, !mayContinue || self.session.isOver else { return }
        _ = self.writeOutput()
        self.abort(.connectionClosed, cause: self.session.violation.map { Fault.connection($0) })
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.abort(.connectionClosed, cause: error)
    }

    /// Counts what has arrived of an incomplete answer.
    private func count(_ stream: HTTP2Session.Stream) {
        // A later event of the same read ends the stream.
        guard stream.isRead else { return }
        let added = stream.heldBytes - stream.countedBytes
        guard added == 0 || self.core.hold(added) else {
            self.reset(stream, .cancel, .responseTooLarge)
            return
        }
        stream.countedBytes += added
    }

    private func answered(_ stream: HTTP2Session.Stream, _ response: HTTPClientResponse) {
        // The stream is closed next, unless the request is not written yet.
        stream.isAnswered = true
        self.answeredEarly += 1
        stream.exchange.finish(.success(response))
    }

    private func malformed(_ stream: HTTP2Session.Stream) {
        self.reset(stream, .protocolError, .invalidResponse, cause: Fault.violation(.protocolError))
        self.malformedAnswers += 1
        if self.malformedAnswers >= Self.maxMalformedAnswers { self.drain() }
    }

    private func wasReset(_ stream: HTTP2Session.Stream, _ code: HTTP2Session.ErrorCode) {
        guard self.forget(stream) else { return }
        if stream.isAnswered {
            self.released(stream)
        } else if code == .refusedStream, !stream.hasBegunAnswer {
            // Another exchange gets the place first, because the peer has just refused this one.
            self.released(stream)
            self.loop.retry(stream.exchange, refusedBy: self)
        } else {
            self.fail(stream, .connectionClosed, Fault.reset(code))
        }
    }

    /// Repeats an exchange whose request was not sent.
    private func retry(_ stream: HTTP2Session.Stream) {
        guard self.session.streams[stream.id] === stream else { return }
        // Runs first, so that all places are released.
        self.drain()
        guard self.forget(stream) else { return }
        self.streamsChanged()
        self.loop.retry(stream.exchange, refusedBy: self)
    }

    /// The peer processes no later stream than this one (RFC 9113, section 6.8), so later ones are safe to repeat.
    private func goAway(after last: Int32) {
        let refused = self.session.streams.values
            .filter { $0.id > last && !$0.isAnswered }
            .sorted { $0.id < $1.id }
        // Runs first, so that all places are released.
        self.drain()
        for stream in refused {
            _ = self.forget(stream)
        }
        self.streamsChanged()
        for stream in refused {
            self.loop.retry(stream.exchange, refusedBy: self)
        }
    }

    private func apply(maxStreams: Int?) {
        let limit = maxStreams.map { self.core.http2.streams(allowed: $0) } ?? self.places.limit
        switch self.phase {
        case .greeting:
            self.places.limit = limit
            self.greeted()
        case .serving:
            self.loop.setLimit(limit, of: self)
        case .draining, .closed:
            break
        }
    }

    private func fail(_ stream: HTTP2Session.Stream, _ code: HTTPClientError.Code, _ cause: any Error) {
        stream.exchange.finish(.failure(HTTPClientError(code: code, requestSent: true, cause: cause)))
        self.released(stream)
    }

    // MARK: Writing

    /// Writes what the session has to say at the end of the loop's turn. All frames of one turn leave together.
    private func scheduleFlush() {
        guard !self.isFlushScheduled, let context = self.context else { return }
        self.isFlushScheduled = true
        context.eventLoop.assumeIsolated()
            .execute {
                self.isFlushScheduled = false
                // A peer that does not read gets no more until it does.
                guard !self.isClosed, self.context?.channel.isWritable == true else { return }
                let mayContinue = self.writeOutput()
                self.handleEvents()
                self.endIfOver(mayContinue: mayContinue)
            }
    }

    /// Writes what the session has to say. Returns false if the connection must end.
    private func writeOutput() -> Bool {
        guard let context = self.context else { return true }
        var output = ByteBuffer()
        let mayContinue = self.session.write(to: &output)
        if output.readableBytes > 0 { context.writeAndFlush(self.wrapOutboundOut(output), promise: nil) }
        return mayContinue
    }

    // MARK: Timing

    override func wake() {
        self.wakesAt = .distantFuture
        let now = self.loop.eventLoop.now
        for stream in self.session.streams.values where stream.exchange.deadline <= now {
            self.reset(stream, .cancel, .deadlineExceeded)
        }
        self.rearm()
    }

    /// Does what is due, and sets the timer for the next due time.
    private func rearm() {
        let now = self.loop.eventLoop.now
        let verdict: HTTP2Liveness.Verdict
        switch self.phase {
        case .serving: verdict = self.liveness.verdict(at: now)
        case .draining: verdict = self.liveness.verdictWhileDraining(at: now)
        case .greeting, .closed: return
        }
        switch verdict {
        case .fine(let until):
            let deadline = self.session.streams.values.lazy.map(\.exchange.deadline).min() ?? .distantFuture
            self.wake(at: min(until, deadline))
        case .ping:
            self.liveness.pinged(at: now)
            self.session.ping()
            self.scheduleFlush()
            self.rearm()
        case .dead:
            self.abort(.connectionClosed, cause: Fault.silent)
        case .idle:
            self.drain()
        case .retire:
            self.drain()
            self.rearm()
        }
    }

    private func wake(at deadline: NIODeadline) {
        self.wakesAt = deadline
        self.timer.set(deadline)
    }
}
