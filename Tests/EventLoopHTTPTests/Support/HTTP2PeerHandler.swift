import NIOCore
import NIOHPACK
import NIOHTTP2

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

    func perform(_ reply: HTTP2Peer.Reply, for request: HTTP2Peer.Request) {
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
        self.context?.flush()
    }

    private func complete(_ stream: HTTP2StreamID) {
        guard let request = self.arriving.removeValue(forKey: stream) else { return }
        self.record.add(request)
        self.perform(self.reply(request), for: request)
        self.record.requested.increment()
    }

    private func write(_ stream: HTTP2StreamID, _ payload: HTTP2Frame.FramePayload) {
        self.context?.write(self.wrapOutboundOut(HTTP2Frame(streamID: stream, payload: payload)), promise: nil)
    }
}
