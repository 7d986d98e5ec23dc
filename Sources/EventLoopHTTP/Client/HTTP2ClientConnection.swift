import NIOCore
import NIOHTTP2

/// One HTTP/2 connection of a pool, with its streams.
///
/// Streams have no channels. An exchange needs one write, a few frames back and no back-pressure of its own, since
/// answers are bounded. A dictionary of streams takes two allocations for an exchange. A child channel would take a
/// pipeline, several promises and a few dozen events.
final class HTTP2ClientConnection: HTTPClientConnection, ChannelInboundHandler {
    /// The cause of an exchange's failure on an HTTP/2 connection, for the log.
    enum Fault: Error, Equatable {
        /// The peer ended the stream with this code.
        case reset(HTTP2ErrorCode)
        /// The stream broke the protocol, and this side ended it with this code.
        case violation(HTTP2ErrorCode)
        /// Every connection refused the exchange.
        case refused
        case silent
        /// The peer chose a protocol that was not offered.
        case noProtocol
    }

    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    private enum Phase {
        /// The peer's settings have not arrived. Next: `serving`, `closed`.
        case greeting
        /// Takes exchanges. Next: `draining`, `closed`.
        case serving
        /// Takes no more exchanges, and ends with its last one. Next: `closed`.
        case draining
        case closed
    }

    private final class Stream {
        let id: HTTP2StreamID
        let exchange: HTTPClientExchange
        var reader: HTTP2ResponseReader
        /// True if the caller has its answer. The stream remains until the request is written or given up.
        var isAnswered = false
        var heldBytes = 0

        init(id: HTTP2StreamID, exchange: HTTPClientExchange, limits: HTTP2ResponseReader.Limits) {
            self.id = id
            self.exchange = exchange
            self.reader = HTTP2ResponseReader(limits: limits)
        }
    }

    /// The connection is replaced after this many malformed answers.
    static let maxMalformedAnswers = 100
    /// Stream identifiers are not reused (RFC 9113, section 5.1.1).
    private static let lastUsableID = HTTP2StreamID(Int32.max - 2)

    private var phase = Phase.greeting
    private var onGreeted: ((Result<HTTPClientConnection, HTTPClientError>) -> Void)?
    private var streams: [HTTP2StreamID: Stream] = [:]
    private var nextStreamID = HTTP2StreamID(1)
    private var headWriter: HTTP2RequestHeadWriter
    private var liveness: HTTP2Liveness
    /// The timer's next expiry. There may be nothing to do then.
    private var wakesAt = NIODeadline.distantFuture
    private var isFlushScheduled = false
    /// The number of streams whose answer is complete and whose request is not.
    private var answeredEarly = 0
    private var malformedAnswers = 0
    /// The last stream that the peer promises to process.
    private var lastAccepted = HTTP2StreamID.maxID
    /// The last stream that the peer reset.
    private var lastReset: HTTP2StreamID?
    /// True while this side resets a stream.
    private var isResetting = false
    /// True if the next reported error concerns only a stream that has been dealt with.
    private var expectsStreamError = false

    init(loop: HTTPClientLoop) {
        self.headWriter = HTTP2RequestHeadWriter(
            scheme: HTTPOrigin.Scheme.https.rawValue,
            authority: loop.core.authority
        )
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
        let growth = HTTP2ClientSettings.connectionWindowBytes - HTTP2ClientSettings.initialConnectionWindowBytes
        self.write(.rootStream, .windowUpdate(windowSizeIncrement: growth))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // Each exchange brings five events, and a failing cast costs as much as a successful one.
        let kind: Any.Type = type(of: event)
        if kind == NIOHTTP2WindowUpdatedEvent.self, let event = event as? NIOHTTP2WindowUpdatedEvent {
            if let bytes = event.inboundWindowSize {
                self.windowChanged(of: event.streamID, to: bytes)
            }
        } else if kind == StreamClosedEvent.self, let event = event as? StreamClosedEvent {
            self.streamClosed(event.streamID, event.reason)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
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

    override var tenants: [Int] { self.streams.values.map(\.exchange.request.tenant) }

    override func start(_ exchange: HTTPClientExchange) -> Bool {
        let id = self.nextStreamID
        guard exchange.run(on: self) else { return false }
        self.nextStreamID = id.advanced(by: 2)
        let isFirst = self.streams.isEmpty
        var limits = self.core.http2.responseLimits
        limits.maxBodyBytes = self.core.maxBodyBytes(for: exchange.request)
        self.streams[id] = Stream(id: id, exchange: exchange, limits: limits)
        let body = exchange.request.body
        let hasBody = body.readableBytes > 0
        let block = self.headWriter.block(for: exchange.request)
        self.write(id, .headers(.init(headers: block, endStream: !hasBody)))
        if hasBody {
            self.write(id, .data(.init(data: .byteBuffer(body), endStream: true)))
        }
        if isFirst {
            self.liveness.becameBusy()
            self.rearm()
        } else if exchange.deadline < self.wakesAt {
            self.wake(at: exchange.deadline)
        }
        if self.nextStreamID > Self.lastUsableID {
            self.drain()
        }
        return true
    }

    override func cancel(_ exchange: HTTPClientExchange, _ code: HTTPClientError.Code) {
        guard let stream = self.streams.values.first(where: { $0.exchange === exchange }) else { return }
        self.reset(stream, .cancel, code)
    }

    private func reset(
        _ stream: Stream,
        _ reason: HTTP2ErrorCode,
        _ code: HTTPClientError.Code,
        cause: (any Error)? = nil
    ) {
        guard self.forget(stream) else { return }
        self.isResetting = true
        self.write(stream.id, .rstStream(reason))
        self.isResetting = false
        stream.exchange.finish(.failure(HTTPClientError(code: code, requestSent: true, cause: cause)))
        self.released(stream)
    }

    /// Removes a stream. Returns false if it was removed before.
    private func forget(_ stream: Stream) -> Bool {
        guard self.streams.removeValue(forKey: stream.id) != nil else { return false }
        self.core.release(stream.heldBytes)
        if stream.isAnswered {
            self.answeredEarly -= 1
        }
        if self.streams.isEmpty {
            self.liveness.becameIdle(at: self.loop.eventLoop.now)
        }
        return true
    }

    private func released(_ stream: Stream) {
        if case .serving = self.phase {
            self.loop.released(self, of: stream.exchange.request.tenant)
        }
        self.streamsChanged()
    }

    private func streamsChanged() {
        guard self.streams.isEmpty else { return }
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
        if self.streams.isEmpty {
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
            let streams = self.streams
            self.leave()
            self.streams = [:]
            self.context?.closeAtOnce()
            for stream in streams.values {
                self.core.release(stream.heldBytes)
                stream.exchange.finish(.failure(HTTPClientError(code: code, requestSent: true, cause: cause)))
            }
        }
    }

    private func close() {
        self.write(.rootStream, .goAway(lastStreamID: .rootStream, errorCode: .noError, opaqueData: nil))
        self.context?.flush()
        self.leave()
        self.context?.close(promise: nil)
    }

    private func leave() {
        self.phase = .closed
        self.timer.stop()
        self.loop.ended(self)
    }

    // MARK: Frames

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = self.unwrapInboundIn(data)
        self.expectsStreamError = false
        switch frame.payload {
        case .headers(let headers):
            guard let stream = self.streams[frame.streamID], !stream.isAnswered else { return }
            self.advance(stream, stream.reader.read(headers.headers, endsStream: headers.endStream))
        case .data(let data):
            guard let stream = self.streams[frame.streamID], !stream.isAnswered,
                case .byteBuffer(let bytes) = data.data
            else { return }
            self.advance(stream, stream.reader.read(bytes, endsStream: data.endStream))
        case .rstStream(let code):
            self.wasReset(frame.streamID, code)
        case .goAway(let last, _, _):
            self.goAway(after: last)
        case .settings(.settings(let settings)):
            self.apply(settings)
        case .settings(.ack), .ping, .windowUpdate, .priority, .pushPromise, .alternativeService, .origin:
            // The frame handler has done all that is necessary.
            break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        defer { context.fireChannelReadComplete() }
        self.expectsStreamError = false
        if self.liveness.heard(at: self.loop.eventLoop.now) { self.rearm() }
        guard self.answeredEarly > 0 else { return }
        // The rest of these requests is no longer needed.
        for stream in self.streams.values where stream.isAnswered {
            guard self.forget(stream) else { continue }
            self.isResetting = true
            self.write(stream.id, .rstStream(.cancel))
            self.isResetting = false
            self.released(stream)
        }
    }

    /// Restores a receive window that is half used up.
    private func windowChanged(of id: HTTP2StreamID, to bytes: Int) {
        let whole: Int
        if id == .rootStream {
            whole = HTTP2ClientSettings.connectionWindowBytes
        } else {
            guard let stream = self.streams[id], !stream.isAnswered else { return }
            whole = self.core.http2.streamWindowBytes
        }
        guard bytes < whole / 2, case .some = self.context else { return }
        switch self.phase {
        case .serving, .draining: self.write(id, .windowUpdate(windowSizeIncrement: whole - bytes))
        case .greeting, .closed: break
        }
    }

    /// The frame handler has closed a stream.
    ///
    /// An answered stream ends here. Any other stream was in error: the frame handler did not forward its frame, has
    /// reset it, and reports the error next.
    private func streamClosed(_ id: HTTP2StreamID, _ reason: HTTP2ErrorCode?) {
        if let reason, !self.isResetting, id != self.lastReset, id <= self.lastAccepted {
            self.expectsStreamError = true
            guard let stream = self.streams[id], self.forget(stream) else { return }
            self.fail(stream, .invalidResponse, Fault.violation(reason))
        } else if let stream = self.streams[id], stream.isAnswered, self.forget(stream) {
            self.released(stream)
        }
    }

    /// A stream or the connection has failed.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if self.expectsStreamError {
            self.expectsStreamError = false
        } else if let error = error as? NIOHTTP2Errors.StreamError {
            if let stream = self.streams[error.streamID], self.forget(stream) {
                self.fail(stream, .connectionClosed, error)
            }
        } else if error is NIOHTTP2Errors.CreatedStreamAfterGoaway, self.lastAccepted != .maxID {
            // The frame handler had buffered this request, which moved to another connection when the peer sent GOAWAY.
        } else {
            self.abort(.connectionClosed, cause: error)
        }
    }

    private func advance(_ stream: Stream, _ step: HTTP2ResponseReader.Step) {
        switch step {
        case .incomplete:
            let added = stream.reader.heldBytes - stream.heldBytes
            guard added == 0 || self.core.hold(added) else {
                self.reset(stream, .cancel, .responseTooLarge)
                return
            }
            stream.heldBytes += added
        case .complete(let response):
            // The frame handler closes the stream right after this frame, unless the request is not written yet.
            stream.isAnswered = true
            self.answeredEarly += 1
            stream.exchange.finish(.success(response))
        case .tooLarge:
            self.reset(stream, .cancel, .responseTooLarge)
        case .malformed:
            let cause = Fault.violation(.protocolError)
            self.reset(stream, .protocolError, .invalidResponse, cause: cause)
            self.malformedAnswers += 1
            if self.malformedAnswers >= Self.maxMalformedAnswers { self.drain() }
        }
    }

    private func wasReset(_ id: HTTP2StreamID, _ code: HTTP2ErrorCode) {
        self.lastReset = id
        guard let stream = self.streams[id], self.forget(stream) else { return }
        if stream.isAnswered {
            self.released(stream)
        } else if code == .refusedStream, !stream.reader.hasBegun {
            // Another exchange gets the place first, because the peer has just refused this one.
            self.released(stream)
            self.loop.retry(stream.exchange, refusedBy: self)
        } else {
            self.fail(stream, .connectionClosed, Fault.reset(code))
        }
    }

    /// The peer processes no later stream than this one (RFC 9113, section 6.8), so later ones are safe to repeat.
    private func goAway(after last: HTTP2StreamID) {
        self.lastAccepted = min(self.lastAccepted, last)
        let refused = self.streams.values
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

    private func apply(_ settings: HTTP2Settings) {
        let allowed = settings.last(where: { $0.parameter == .maxConcurrentStreams })?.value
        let limit = allowed.map { self.core.http2.streams(allowed: $0) } ?? self.places.limit
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

    private func fail(_ stream: Stream, _ code: HTTPClientError.Code, _ cause: any Error) {
        stream.exchange.finish(.failure(HTTPClientError(code: code, requestSent: true, cause: cause)))
        self.released(stream)
    }

    // MARK: Writing

    /// Writes a frame. All frames of one turn of the loop are flushed together.
    private func write(_ stream: HTTP2StreamID, _ payload: HTTP2Frame.FramePayload) {
        guard let context = self.context else { return }
        context.write(NIOAny(HTTP2Frame(streamID: stream, payload: payload)), promise: nil)
        guard !self.isFlushScheduled else { return }
        self.isFlushScheduled = true
        context.eventLoop.assumeIsolated()
            .execute {
                self.isFlushScheduled = false
                self.context?.flush()
            }
    }

    // MARK: Timing

    override func wake() {
        self.wakesAt = .distantFuture
        let now = self.loop.eventLoop.now
        for stream in self.streams.values where stream.exchange.deadline <= now {
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
            let deadline = self.streams.values.lazy.map(\.exchange.deadline).min() ?? .distantFuture
            self.wake(at: min(until, deadline))
        case .ping:
            self.liveness.pinged(at: now)
            self.write(.rootStream, .ping(HTTP2PingData(withInteger: now.uptimeNanoseconds), ack: false))
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
