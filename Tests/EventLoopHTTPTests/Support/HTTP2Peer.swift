import EventLoopHTTP
import GatewayTestKit
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL
import Synchronization

/// An HTTP/2 server over TLS that handles each request as the test specifies.
final class HTTP2Peer: Sendable {
    /// A complete request.
    struct Request: Sendable {
        /// The connection's number, from 1.
        var connection: Int
        var stream: HTTP2StreamID
        var head: HPACKHeaders
        var bodyBytes: Int

        var path: String { self.head.first(name: ":path") ?? "" }
    }

    /// An action on a request or its stream.
    enum Reply: Sendable {
        case answer(status: Int = 200, fields: [(String, String)] = [], body: String = "ok")
        /// Starts a response and never ends its body.
        case begin(fields: [(String, String)] = [], body: String)
        case reset(HTTP2ErrorCode)
        case goAway(last: HTTP2StreamID)
        case settings([HTTP2Setting])
        case close
        /// Reads nothing more, so that even pings stay unanswered.
        case stopReading
        /// Keeps the request for `release`.
        case hold
    }

    private let listener: any Channel
    let record: HTTP2PeerRecord
    private let pools = Mutex<[HTTPClientPool]>([])

    var port: Int { self.listener.localAddress?.port ?? 0 }

    private init(listener: any Channel, record: HTTP2PeerRecord) {
        self.listener = listener
        self.record = record
    }

    /// Starts a server that calls `reply` for each request.
    ///
    /// If it answers early, it calls `reply` after the head and ignores the body.
    static func start(
        settings: [HTTP2Setting] = [HTTP2Setting(parameter: .maxConcurrentStreams, value: 100)],
        answersEarly: Bool = false,
        _ reply: @escaping @Sendable (Request) -> Reply = { _ in .answer() }
    ) async throws -> HTTP2Peer {
        let record = HTTP2PeerRecord()
        var tls = try TestCertificate.server()
        tls.applicationProtocols = ["h2"]
        let encryption = try NIOSSLContext(configuration: tls)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let number = record.add(channel)
                    let handler = HTTP2PeerHandler(
                        number: number,
                        record: record,
                        answersEarly: answersEarly,
                        limit: settings.last { $0.parameter == .maxConcurrentStreams }?.value ?? .max,
                        reply: reply
                    )
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: encryption))
                    try pipeline.addHandler(
                        NIOHTTP2Handler(
                            mode: .server,
                            initialSettings: settings,
                            headerBlockValidation: .disabled,
                            contentLengthValidation: .disabled
                        )
                    )
                    try pipeline.addHandler(handler)
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        return HTTP2Peer(listener: listener, record: record)
    }

    /// Returns a pool for this peer that `stop` shuts down.
    func pool(configure: (inout HTTPClientConfiguration) -> Void = { _ in }) throws -> HTTPClientPool {
        let pool = try HTTPClientPool.make("https://localhost:\(self.port)", configure: configure)
        self.pools.withLock { $0.append(pool) }
        return pool
    }

    /// Replies to all held requests.
    func release(_ reply: @escaping @Sendable (Request) -> Reply = { _ in .answer() }) {
        for request in self.record.takeHeld() {
            self.perform(reply(request), for: request)
        }
    }

    /// Performs an action on a request's connection or stream.
    func perform(_ reply: Reply, for request: Request) {
        self.perform([(reply, request)])
    }

    /// Performs actions on one connection. What they write leaves together.
    func perform(_ actions: [(Reply, Request)]) {
        guard let connection = actions.first?.1.connection else { return }
        let channel = self.record.channel(connection)
        channel.eventLoop.execute {
            let handler = try? channel.pipeline.syncOperations.handler(type: HTTP2PeerHandler.self)
            handler?.perform(actions)
        }
    }

    func stop() async {
        for pool in self.pools.withLock({ $0 }) { await pool.shutdown() }
        try? await self.listener.close()
        for channel in self.record.allChannels {
            try? await channel.close()
        }
    }
}

/// One connection of an HTTP/2 peer.
final class HTTP2PeerHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    private let number: Int
    private let record: HTTP2PeerRecord
    private let answersEarly: Bool
    private let reply: (HTTP2Peer.Request) -> HTTP2Peer.Reply
    private var context: ChannelHandlerContext?
    private var arriving: [HTTP2StreamID: HTTP2Peer.Request] = [:]
    private var streams: Set<HTTP2StreamID> = []
    private var limit: Int
    private var pendingLimits: [Int]

    init(
        number: Int,
        record: HTTP2PeerRecord,
        answersEarly: Bool,
        limit: Int,
        reply: @escaping (HTTP2Peer.Request) -> HTTP2Peer.Reply
    ) {
        self.number = number
        self.record = record
        self.answersEarly = answersEarly
        self.limit = limit
        self.pendingLimits = [limit]
        self.reply = reply
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.record.closed.increment()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = self.unwrapInboundIn(data)
        switch frame.payload {
        case .headers(let headers):
            self.arriving[frame.streamID] = HTTP2Peer.Request(
                connection: self.number,
                stream: frame.streamID,
                head: headers.headers,
                bodyBytes: 0
            )
            if headers.endStream || self.answersEarly { self.complete(frame.streamID) }
        case .data(let data):
            let bytes = data.data.readableBytes
            self.arriving[frame.streamID]?.bodyBytes += bytes
            guard !self.answersEarly else { return }
            if bytes > 0 {
                self.write(.rootStream, .windowUpdate(windowSizeIncrement: bytes))
                if !data.endStream { self.write(frame.streamID, .windowUpdate(windowSizeIncrement: bytes)) }
            }
            if data.endStream { self.complete(frame.streamID) }
        case .rstStream(let code):
            self.record.add(code)
        case .settings(.ack):
            self.limit = self.pendingLimits.removeFirst()
            self.record.acknowledged.increment()
        case .ping(_, ack: false):
            self.record.pinged.increment()
        default:
            break
        }
        context.flush()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? NIOHTTP2StreamCreatedEvent {
            self.streams.insert(event.streamID)
            self.record.count(streams: self.streams.count, limit: self.limit)
        } else if let event = event as? StreamClosedEvent {
            self.streams.remove(event.streamID)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func perform(_ actions: [(HTTP2Peer.Reply, HTTP2Peer.Request)]) {
        for (reply, request) in actions { self.write(reply, for: request) }
        self.context?.flush()
    }

    private func write(_ reply: HTTP2Peer.Reply, for request: HTTP2Peer.Request) {
        switch reply {
        case .answer(let status, let fields, let body):
            let head = HPACKHeaders([(":status", String(status))] + fields)
            self.write(request.stream, .headers(.init(headers: head, endStream: body.isEmpty)))
            if !body.isEmpty {
                self.write(request.stream, .data(.init(data: .byteBuffer(ByteBuffer(string: body)), endStream: true)))
            }
        case .begin(let fields, let body):
            self.write(request.stream, .headers(.init(headers: HPACKHeaders([(":status", "200")] + fields))))
            self.write(request.stream, .data(.init(data: .byteBuffer(ByteBuffer(string: body)))))
        case .reset(let code):
            self.write(request.stream, .rstStream(code))
        case .goAway(let last):
            self.write(.rootStream, .goAway(lastStreamID: last, errorCode: .noError, opaqueData: nil))
        case .settings(let settings):
            self.pendingLimits.append(
                settings.last { $0.parameter == .maxConcurrentStreams }?.value ?? self.limit
            )
            self.write(.rootStream, .settings(.settings(settings)))
        case .close:
            self.context?.close(promise: nil)
        case .stopReading:
            try? self.context?.channel.syncOptions?.setOption(.autoRead, value: false)
        case .hold:
            self.record.hold(request)
        }
    }

    private func complete(_ stream: HTTP2StreamID) {
        guard let request = self.arriving.removeValue(forKey: stream) else { return }
        self.record.add(request)
        self.perform([(self.reply(request), request)])
        self.record.requested.increment()
    }

    private func write(_ stream: HTTP2StreamID, _ payload: HTTP2Frame.FramePayload) {
        self.context?.write(self.wrapOutboundOut(HTTP2Frame(streamID: stream, payload: payload)), promise: nil)
    }
}

/// The events an HTTP/2 peer has seen.
final class HTTP2PeerRecord: Sendable {
    private struct State {
        var channels: [any Channel] = []
        var requests: [HTTP2Peer.Request] = []
        var held: [HTTP2Peer.Request] = []
        var resets: [HTTP2ErrorCode] = []
        var mostStreams = 0
        var excesses = 0
    }

    let accepted = EventCounter()
    let requested = EventCounter()
    let closed = EventCounter()
    let reset = EventCounter()
    /// Acknowledged SETTINGS frames, including the first.
    let acknowledged = EventCounter()
    let pinged = EventCounter()
    private let state = Mutex(State())

    /// The complete requests, in order.
    var requests: [HTTP2Peer.Request] { self.state.withLock { $0.requests } }
    /// The error codes of streams that the client reset.
    var resets: [HTTP2ErrorCode] { self.state.withLock { $0.resets } }
    /// The highest number of open streams on a connection.
    var mostStreams: Int { self.state.withLock { $0.mostStreams } }
    /// The number of streams opened beyond an acknowledged limit.
    var excesses: Int { self.state.withLock { $0.excesses } }
    var allChannels: [any Channel] { self.state.withLock { $0.channels } }

    func add(_ channel: any Channel) -> Int {
        self.accepted.increment()
        return self.state.withLock {
            $0.channels.append(channel)
            return $0.channels.count
        }
    }

    func channel(_ number: Int) -> any Channel {
        self.state.withLock { $0.channels[number - 1] }
    }

    func add(_ request: HTTP2Peer.Request) {
        self.state.withLock { $0.requests.append(request) }
    }

    func hold(_ request: HTTP2Peer.Request) {
        self.state.withLock { $0.held.append(request) }
    }

    func takeHeld() -> [HTTP2Peer.Request] {
        self.state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
    }

    func add(_ code: HTTP2ErrorCode) {
        self.state.withLock { $0.resets.append(code) }
        self.reset.increment()
    }

    func count(streams: Int, limit: Int) {
        self.state.withLock {
            $0.mostStreams = max($0.mostStreams, streams)
            $0.excesses += streams > limit ? 1 : 0
        }
    }
}
