import NIOCore
import NIOTLS

/// Finds out which HTTP a new connection speaks, has its pipeline configured and removes itself.
///
/// With TLS the handshake's ALPN decides. Without, the first bytes do: HTTP/2 begins with a preface that is no HTTP/1.1
/// request (RFC 9113, 3.4).
final class ProtocolChoice<Connection: Sendable>: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let isSecure: Bool
    private let configure: (Connections.HTTPVersion) -> EventLoopFuture<Connection>
    private let promise: EventLoopPromise<Connection>
    private var received = ByteBuffer()

    /// Creates the handler of one connection.
    ///
    /// - Parameters:
    ///   - isSecure: whether there will be a TLS handshake.
    ///   - eventLoop: the connection's.
    ///   - configure: adds the handlers of a protocol behind this one, before it returns.
    init(
        isSecure: Bool,
        eventLoop: any EventLoop,
        configure: @escaping (Connections.HTTPVersion) -> EventLoopFuture<Connection>
    ) {
        self.isSecure = isSecure
        self.configure = configure
        self.promise = eventLoop.makePromise()
    }

    /// What was configured; fails when the connection ends before.
    var connection: EventLoopFuture<Connection> { self.promise.futureResult }

    func handlerRemoved(context: ChannelHandlerContext) {
        // Without effect once the protocol was chosen.
        self.promise.fail(ChannelError.eof)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var part = self.unwrapInboundIn(data)
        self.received.writeBuffer(&part)
        guard !self.isSecure else { return }
        let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8
        if self.received.readableBytesView.starts(with: preface) {
            self.choose(.http2, context: context)
        } else if !preface.starts(with: self.received.readableBytesView) {
            self.choose(.http1, context: context)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if self.isSecure, case .handshakeCompleted(let negotiated)? = event as? TLSUserEvent {
            self.choose(negotiated == Connections.HTTPVersion.http2.rawValue ? .http2 : .http1, context: context)
        } else if event is ChannelShouldQuiesceEvent || event as? ChannelEvent == .inputClosed {
            context.close(promise: nil)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.promise.fail(error)
        context.close(promise: nil)
    }

    private func choose(_ version: Connections.HTTPVersion, context: ChannelHandlerContext) {
        let connection = self.configure(version)
        connection.cascade(to: self.promise)
        connection.assumeIsolated()
            .whenComplete { result in
                guard case .success = result else { return context.close(promise: nil) }
                if self.received.readableBytes > 0 {
                    context.fireChannelRead(self.wrapInboundOut(self.received))
                    context.fireChannelReadComplete()
                }
                context.pipeline.syncOperations.removeHandler(self, promise: nil)
            }
    }
}
