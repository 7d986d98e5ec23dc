import NIOCore
import NIOHTTP2
import NIOSSL
import NIOTLS

/// Waits until a connection is encrypted and both sides have agreed on a protocol, and makes way for its handlers.
///
/// It stays until somebody has asked for the outcome.
final class HTTPClientNegotiationHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private enum Phase {
        /// The handshake is under way. Next: `greeting`, `over`.
        case shakingHands
        /// The peer's first HTTP/2 settings are awaited. Next: `over`.
        case greeting(HTTP2ClientConnection)
        /// The connection is ready, or never will be.
        case over(Result<HTTPClientTransport, HTTPClientError>)
    }

    /// When an HTTP/2 connection stops taking frames, in bytes that the system has not taken yet.
    private static let http2WaterMark = ChannelOptions.Types.WriteBufferWaterMark(low: 64 * 1024, high: 512 * 1024)

    private let lane: HTTPClientLane
    private var phase = Phase.shakingHands
    private var context: ChannelHandlerContext?
    private var timeout: Scheduled<Void>?
    private var onOpened: HTTPClientConnector.Completion?

    init(lane: HTTPClientLane) {
        self.lane = lane
    }

    /// Reports once the connection is ready or has failed, and leaves the pipeline then.
    func whenOpened(until deadline: NIODeadline, _ onOpened: @escaping HTTPClientConnector.Completion) {
        self.onOpened = onOpened
        self.timeout = self.lane.eventLoop.assumeIsolated()
            .scheduleTask(deadline: deadline) { self.fail(.connectTimeout, cause: nil) }
        self.report()
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.fail(.connectFailed, cause: nil)
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.fail(.connectFailed, cause: nil)
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .shakingHands = self.phase,
            case .some(.handshakeCompleted(let negotiated)) = event as? TLSUserEvent
        else {
            context.fireUserInboundEventTriggered(event)
            return
        }
        self.install(negotiated.map(HTTPClientProtocol.init(rawValue:)) ?? .http1, context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch self.phase {
        case .shakingHands: self.fail(Self.code(for: error), cause: error)
        case .greeting, .over: context.fireErrorCaught(error)
        }
    }

    /// A peer that hangs up amid the handshake has found fault with nothing: by another connection it may go well.
    private static func code(for error: any Error) -> HTTPClientError.Code {
        if error is IOError { return .connectFailed }
        let end = NIOSSLError.handshakeFailed(.sslError([.eofDuringHandshake]))
        return error as? NIOSSLError == end ? .connectFailed : .tlsFailed
    }

    private func install(_ negotiated: HTTPClientProtocol?, _ context: ChannelHandlerContext) {
        let pipeline = context.pipeline.syncOperations
        do {
            switch negotiated {
            case .http1:
                let connection = HTTPClientConnection(lane: self.lane)
                try pipeline.addHandler(HTTPClientWireHandler(connection: connection))
                self.end(.success(.http1(connection)))
            case .http2:
                try context.channel.syncOptions?.setOption(.writeBufferWaterMark, value: Self.http2WaterMark)
                let connection = HTTP2ClientConnection(lane: self.lane)
                self.phase = .greeting(connection)
                connection.whenGreeted { self.end($0.map { .http2($0) }) }
                try pipeline.addHandler(HTTP2WriteGatherer())
                try pipeline.addHandler(self.lane.core.http2.makeFrameHandler())
                try pipeline.addHandler(HTTP2ClientHandler(connection: connection))
            case nil:
                self.fail(.tlsFailed, cause: HTTP2ClientFault.noProtocol)
            }
        } catch {
            self.fail(.connectFailed, cause: error)
        }
    }

    private func fail(_ code: HTTPClientError.Code, cause: (any Error)?) {
        switch self.phase {
        case .shakingHands:
            // The end of the transport is no reason of its own.
            self.phase = .over(.failure(HTTPClientError(code: code, requestSent: false, cause: cause)))
            self.context?.closeAtOnce()
            self.report()
        case .greeting(let connection):
            connection.abort(code, cause: cause)
        case .over:
            break
        }
    }

    private func end(_ outcome: Result<HTTPClientTransport, HTTPClientError>) {
        if case .over = self.phase { return }
        self.phase = .over(outcome)
        self.report()
    }

    private func report() {
        guard case .over(let outcome) = self.phase, let onOpened = self.onOpened else { return }
        self.onOpened = nil
        self.timeout?.cancel()
        if let context = self.context {
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        }
        onOpened(outcome)
    }
}
