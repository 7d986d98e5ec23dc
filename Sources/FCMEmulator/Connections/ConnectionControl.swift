import NIOCore
import NIOHTTP2

/// A command to one of the emulator's HTTP/2 connections; sent as an outbound event.
enum ConnectionCommand: Sendable, Equatable {
    /// Announces with GOAWAY that no further stream is accepted, and closes once the open ones have ended.
    ///
    /// The stream to refuse, if there is one, is declared as not processed.
    case goAway(refusing: HTTP2StreamID?)
    case allow(streams: Int)
}

/// Governs one HTTP/2 connection: counts its streams, sends GOAWAY, announces limits, and closes when all is done.
///
/// It sits behind the HTTP/2 handler and executes each ``ConnectionCommand``. After GOAWAY and the end of the last
/// stream it sends a PING, and closes when the answer arrives. By then the client has read every response, and the
/// emulator all of the client's bytes; unread bytes would turn the close into a reset.
final class ConnectionControl: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame
    typealias InboundOut = HTTP2Frame
    typealias OutboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    struct Delegate: NIOHTTP2StreamDelegate {
        fileprivate let control: NIOLoopBound<ConnectionControl>

        func streamCreated(_ id: HTTP2StreamID, channel: any Channel) {
            self.control.value.streamCreated(id)
        }

        func streamClosed(_ id: HTTP2StreamID, channel: any Channel) {
            self.control.value.streamClosed(id)
        }
    }

    private let id: Int
    private let connections: Connections
    private let lateFrames: LateFrameFilter
    private var context: ChannelHandlerContext?
    private var streams: Set<HTTP2StreamID> = []
    private var highest = HTTP2StreamID.rootStream
    private var isGoingAway = false
    private var farewell: HTTP2PingData?
    private var isShuttingDown = false

    init(id: Int, connections: Connections, lateFrames: LateFrameFilter) {
        self.id = id
        self.connections = connections
        self.lateFrames = lateFrames
    }

    /// Returns the observer of the HTTP/2 handler's streams.
    func delegate(on eventLoop: any EventLoop) -> Delegate {
        Delegate(control: NIOLoopBound(self, eventLoop: eventLoop))
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        switch event as? ConnectionCommand {
        case .goAway(let refused)?:
            self.goAway(refusing: refused, context: context)
            promise?.succeed()
        case .allow(let streams)?:
            let settings = [HTTP2Setting(parameter: .maxConcurrentStreams, value: streams)]
            let frame = HTTP2Frame(streamID: .rootStream, payload: .settings(.settings(settings)))
            context.writeAndFlush(self.wrapOutboundOut(frame), promise: promise)
        case nil:
            context.triggerUserOutboundEvent(event, promise: promise)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent {
            self.isShuttingDown = true
            self.goAway(refusing: nil, context: context)
        } else if case .inputClosed? = event as? ChannelEvent {
            // Half-closed connections are allowed for HTTP/1.1. With HTTP/2, a client that stops writing is gone.
            context.close(promise: nil)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .ping(let data, ack: true) = self.unwrapInboundIn(data).payload, data == self.farewell {
            context.close(promise: nil)
        }
        context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The HTTP/2 handler has reported the error; a client that violates the protocol is disconnected.
        context.close(promise: nil)
    }

    /// Sends GOAWAY, the first time only.
    ///
    /// The last stream that GOAWAY announces excludes a refused stream if that is the newest. If a later stream exists,
    /// GOAWAY would declare it as not processed too, although it is. Then GOAWAY announces all streams, and the refused
    /// one is reset (RFC 9113, 8.7).
    private func goAway(refusing refused: HTTP2StreamID?, context: ChannelHandlerContext) {
        var last = self.highest
        if let refused, self.streams.contains(refused) {
            if refused == self.highest, !self.isGoingAway {
                last = refused == 1 ? .rootStream : HTTP2StreamID(Int(refused) - 2)
            } else {
                let reset = HTTP2Frame(streamID: refused, payload: .rstStream(.refusedStream))
                context.writeAndFlush(self.wrapOutboundOut(reset), promise: nil)
            }
        }
        guard !self.isGoingAway else { return self.closeIfDone() }
        self.isGoingAway = true
        self.connections.goesAway(self.id)
        self.lateFrames.drop(after: last)
        let announcement = HTTP2Frame.FramePayload.goAway(lastStreamID: last, errorCode: .noError, opaqueData: nil)
        context.writeAndFlush(
            self.wrapOutboundOut(HTTP2Frame(streamID: .rootStream, payload: announcement)),
            promise: nil
        )
        self.closeIfDone()
    }

    private func streamCreated(_ id: HTTP2StreamID) {
        self.streams.insert(id)
        self.highest = max(self.highest, id)
        self.connections.streamOpened(on: self.id)
    }

    private func streamClosed(_ id: HTTP2StreamID) {
        guard self.streams.remove(id) != nil else { return }
        self.connections.streamClosed(on: self.id)
        self.closeIfDone()
    }

    private func closeIfDone() {
        guard self.isGoingAway, self.streams.isEmpty, let context = self.context else { return }
        // A stream ends within the write of its last frame; that write must finish first.
        context.eventLoop.assumeIsolated()
            .execute {
                guard let context = self.context, self.streams.isEmpty else { return }
                if self.isShuttingDown {
                    context.flush()
                    context.close(promise: nil)
                } else if self.farewell == nil {
                    let ping = HTTP2PingData(withInteger: .random(in: .min ... .max))
                    self.farewell = ping
                    let frame = HTTP2Frame(streamID: .rootStream, payload: .ping(ping, ack: false))
                    context.writeAndFlush(self.wrapOutboundOut(frame), promise: nil)
                }
            }
    }
}

/// Drops a client's frames for streams above the last one that GOAWAY named.
///
/// A client that has not read GOAWAY yet still begins streams, whose frames must be ignored (RFC 9113, 6.8). The HTTP/2
/// handler behind would treat them as errors and abandon the streams that it should finish. No header block that
/// matters follows a dropped one, so the shared table of header compression may become outdated.
final class LateFrameFilter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private static let prefaceBytes = 24
    private static let frameHeaderBytes = 9
    /// The last stream that GOAWAY named; `nil` before the first GOAWAY.
    private var last: HTTP2StreamID?
    private var isBehindPreface = false
    private var unread: ByteBuffer?

    /// Drops all later streams from now on; a lower number replaces an earlier one.
    func drop(after last: HTTP2StreamID) {
        self.last = min(last, self.last ?? .maxID)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        if var unread = self.unread {
            unread.writeBuffer(&bytes)
            bytes = unread
        }
        while let frame = self.next(&bytes) {
            guard !self.isLate(frame) else { continue }
            context.fireChannelRead(self.wrapInboundOut(frame))
        }
        self.unread = bytes.readableBytes > 0 ? bytes : nil
    }

    /// Splits the connection's preface, or a whole frame, off the bytes.
    private func next(_ bytes: inout ByteBuffer) -> ByteBuffer? {
        guard self.isBehindPreface else {
            let preface = bytes.readSlice(length: Self.prefaceBytes)
            self.isBehindPreface = preface != nil
            return preface
        }
        let start = bytes.readerIndex
        guard let high: UInt8 = bytes.getInteger(at: start), let low: UInt16 = bytes.getInteger(at: start + 1) else {
            return nil
        }
        return bytes.readSlice(length: Self.frameHeaderBytes + Int(high) << 16 + Int(low))
    }

    private func isLate(_ frame: ByteBuffer) -> Bool {
        guard let last = self.last, let bits: UInt32 = frame.getInteger(at: frame.readerIndex + 5) else { return false }
        return Int(bits & 0x7FFF_FFFF) > Int(last)
    }
}
