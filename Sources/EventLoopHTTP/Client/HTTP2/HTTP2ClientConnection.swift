import NIOCore
import NIOHTTP2

/// One HTTP/2 connection of a pool, with the streams it carries.
///
/// Everything here happens on the connection's event loop. How many streams it may carry is the lane's business
/// (``HTTP2PoolState``); what arrives for them is in the extensions.
final class HTTP2ClientConnection {
    enum Phase {
        /// The peer's settings have not arrived. Next: `serving`, `closed`.
        case greeting
        /// Takes exchanges. Next: `draining`, `closed`.
        case serving
        /// Takes no more exchanges, and ends with its last one. Next: `closed`.
        case draining
        /// Over.
        case closed
    }

    let core: HTTPClientCore
    let lane: HTTPClientLane
    private let timer: RearmingTimer
    private(set) var context: ChannelHandlerContext?
    private(set) var phase = Phase.greeting
    private var onGreeted: ((Result<HTTP2ClientConnection, HTTPClientError>) -> Void)?

    var streams: [HTTP2StreamID: HTTP2ClientStream] = [:]
    private var nextStreamID = HTTP2StreamID(1)
    private var headWriter: HTTP2RequestHeadWriter
    private var liveness: HTTP2Liveness
    /// When the timer goes off next; there may be nothing to do then.
    private var wakesAt = NIODeadline.distantFuture
    private var isFlushScheduled = false

    /// How many streams the peer allows and we want.
    var streamLimit: Int
    /// Streams whose answer is complete and whose request is not.
    var answeredEarly = 0
    /// The last stream the peer promises to look at.
    var lastAccepted = HTTP2StreamID.maxID
    /// The stream the peer reset last.
    var lastReset: HTTP2StreamID?
    /// Whether a stream is being reset from here.
    var isResetting = false
    /// Whether an error that is about to be reported concerns a stream only, which has been dealt with.
    var expectsStreamError = false

    init(lane: HTTPClientLane) {
        self.core = lane.core
        self.lane = lane
        self.timer = RearmingTimer(eventLoop: lane.eventLoop)
        self.headWriter = HTTP2RequestHeadWriter(
            scheme: HTTPOrigin.Scheme.https.rawValue,
            authority: lane.core.authority
        )
        self.liveness = Self.freshLiveness(lane)
        self.streamLimit = lane.core.http2.streams(allowed: nil)
    }

    private static func freshLiveness(_ lane: HTTPClientLane) -> HTTP2Liveness {
        HTTP2Liveness(
            limits: lane.core.http2.livenessLimits,
            now: lane.eventLoop.now,
            chance: Double.random(in: 0...1)
        )
    }

    /// Whether an exchange may start now.
    var isUsable: Bool {
        guard case .serving = self.phase, let context = self.context else { return false }
        return context.channel.isActive
    }

    // MARK: Opening

    func attach(_ context: ChannelHandlerContext) {
        self.context = context
        self.timer.start { [unowned self] in self.wake() }
        let growth = HTTP2ClientSettings.connectionWindowBytes - HTTP2ClientSettings.initialConnectionWindowBytes
        self.write(.rootStream, .windowUpdate(windowSizeIncrement: growth))
    }

    func detach() {
        self.context = nil
    }

    /// Reports once the peer's settings have arrived, or never will.
    func whenGreeted(_ onGreeted: @escaping (Result<HTTP2ClientConnection, HTTPClientError>) -> Void) {
        self.onGreeted = onGreeted
    }

    /// The peer's first settings are there.
    func greeted() {
        guard case .greeting = self.phase else { return }
        self.phase = .serving
        // The time the peer took until now does not count as idle.
        self.liveness = Self.freshLiveness(self.lane)
        self.rearm()
        self.reportGreeted(.success(self))
    }

    private func reportGreeted(_ result: Result<HTTP2ClientConnection, HTTPClientError>) {
        let onGreeted = self.onGreeted
        self.onGreeted = nil
        onGreeted?(result)
    }

    // MARK: Exchanges

    /// Sends the request of an exchange on a stream of its own.
    ///
    /// - Returns: false if the exchange is over already.
    func start(_ exchange: HTTPClientExchange) -> Bool {
        let id = self.nextStreamID
        guard exchange.run(on: .http2(self, id)) else { return false }
        self.nextStreamID = id.advanced(by: 2)
        let isFirst = self.streams.isEmpty
        var limits = self.core.http2.responseLimits
        limits.maxBodyBytes = self.core.maxBodyBytes(for: exchange.request)
        self.streams[id] = HTTP2ClientStream(id: id, exchange: exchange, limits: limits)
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

    /// Ends an exchange its caller no longer waits for; the other streams go on.
    func cancel(_ id: HTTP2StreamID, _ code: HTTPClientError.Code) {
        guard let stream = self.streams[id] else { return }
        self.reset(stream, .cancel, code)
    }

    /// Ends a stream from here.
    func reset(
        _ stream: HTTP2ClientStream,
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

    /// Takes a stream out of the books.
    ///
    /// - Returns: false if it is not in them.
    func forget(_ stream: HTTP2ClientStream) -> Bool {
        guard self.streams.removeValue(forKey: stream.id) != nil else { return false }
        self.core.release(stream.heldBytes)
        if stream.isAnswered {
            self.answeredEarly -= 1
        }
        if self.streams.isEmpty {
            self.liveness.becameIdle(at: self.lane.eventLoop.now)
        }
        return true
    }

    /// The place of a stream that was forgotten is free.
    func released(_ stream: HTTP2ClientStream) {
        if case .serving = self.phase {
            self.lane.streamEnded(on: self, of: stream.exchange)
        }
        self.streamsChanged()
    }

    /// Streams have ended.
    func streamsChanged() {
        guard self.streams.isEmpty else { return }
        if case .draining = self.phase {
            self.close()
        } else if case .serving = self.phase {
            self.rearm()
        }
    }

    // MARK: Ending

    /// Takes no more exchanges, and closes once those under way are over.
    func drain() {
        guard case .serving = self.phase else { return }
        self.phase = .draining
        self.lane.retire(self)
        if self.streams.isEmpty {
            self.close()
        }
    }

    /// Ends every exchange with an error, and the connection with them.
    func abort(_ code: HTTPClientError.Code, cause: (any Error)? = nil) {
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

    /// The transport has ended, or is about to.
    func transportClosed() {
        self.abort(.connectionClosed)
    }

    /// Ends a connection without exchanges, in good order.
    private func close() {
        self.write(.rootStream, .goAway(lastStreamID: .rootStream, errorCode: .noError, opaqueData: nil))
        self.context?.flush()
        self.leave()
        self.context?.close(promise: nil)
    }

    /// Gives up the place in the pool.
    private func leave() {
        self.phase = .closed
        self.timer.stop()
        self.lane.ended(self)
    }

    // MARK: Writing

    /// Writes a frame; all frames of a turn of the loop leave together.
    func write(_ stream: HTTP2StreamID, _ payload: HTTP2Frame.FramePayload) {
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

    /// Notes that the peer is there.
    func heard() {
        if self.liveness.heard(at: self.lane.eventLoop.now) {
            self.rearm()
        }
    }

    private func wake() {
        self.wakesAt = .distantFuture
        let now = self.lane.eventLoop.now
        for stream in self.streams.values where stream.exchange.deadline <= now {
            self.reset(stream, .cancel, .deadlineExceeded)
        }
        self.rearm()
    }

    /// Does what is due, and sets the timer for what is due next.
    private func rearm() {
        let now = self.lane.eventLoop.now
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
            self.abort(.connectionClosed, cause: HTTP2ClientFault.silent)
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

    /// Identifiers are not used again (RFC 9113, section 5.1.1).
    private static let lastUsableID = HTTP2StreamID(Int32.max - 2)
}
