import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP2
import NIOSSL
import NIOTLS

/// Serves a connection with HTTP/2 or HTTP/1.1, with TLS or without, as its client chooses.
///
/// Hummingbird's own HTTP/2 channel can neither limit the streams nor send GOAWAY on demand, and the emulator is needed
/// for both. Requests and responses remain Hummingbird's.
struct EmulatorChannel: ServerChildChannel {
    typealias Stream = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    enum Connection: Sendable {
        case http1(HTTP1Channel, HTTP1Channel.Value)
        case http2(NIOHTTP2Handler.AsyncStreamMultiplexer<Stream>)
    }

    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let connection: EventLoopFuture<Connection>
    }

    let responder: HTTPChannelHandler.Responder
    let emulator: FCMEmulator
    /// Keys and certificate; nil for no TLS.
    let tls: NIOSSLContext?
    /// Largest request body, in bytes.
    let maxBodyBytes: Int

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(SocketReset())
            if let tls = self.tls {
                try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
            }
            let choice = ProtocolChoice(isSecure: self.tls != nil, eventLoop: channel.eventLoop) { version in
                switch version {
                case .http1: self.configureHTTP1(channel, logger: logger)
                case .http2: channel.eventLoop.makeCompletedFuture { try self.configureHTTP2(channel) }
                }
            }
            try channel.pipeline.syncOperations.addHandler(choice)
            return Value(channel: channel, connection: choice.connection)
        }
    }

    func handle(value: Value, logger: Logger) async {
        do {
            switch try await value.connection.get() {
            case .http1(let http1, let connection):
                await http1.handle(value: connection, logger: logger)
            case .http2(let multiplexer):
                try await withThrowingDiscardingTaskGroup { group in
                    for try await stream in multiplexer.inbound {
                        group.addTask { await self.serve(stream, logger: logger) }
                    }
                }
            }
        } catch {
            logger.debug("connection ended early", metadata: ["error": "\(error)"])
        }
    }

    private func configureHTTP1(_ channel: any Channel, logger: Logger) -> EventLoopFuture<Connection> {
        let id = self.emulator.connections.accept(channel, version: .http1)
        let origin = RequestOrigin(connectionID: id, connection: channel, stream: nil)
        let configuration = HTTP1Channel.Configuration(additionalChannelHandlers: [PeerWatch(origin: origin)])
        let http1 = HTTP1Channel(responder: self.responder, configuration: configuration)
        return http1.setup(channel: channel, logger: logger).map { .http1(http1, $0) }
    }

    private func configureHTTP2(_ channel: any Channel) throws -> Connection {
        let id = self.emulator.connections.accept(channel, version: .http2)
        let lateFrames = LateFrameFilter()
        try channel.pipeline.syncOperations.addHandler(lateFrames)
        let control = ConnectionControl(id: id, connections: self.emulator.connections, lateFrames: lateFrames)
        let multiplexer = try channel.pipeline.syncOperations.configureAsyncHTTP2Pipeline(
            mode: .server,
            streamDelegate: control.delegate(on: channel.eventLoop),
            configuration: self.http2Configuration
        ) { stream in
            stream.eventLoop.makeCompletedFuture { try self.configure(stream, of: channel, connectionID: id) }
        }
        try channel.pipeline.syncOperations.addHandler(control)
        return .http2(multiplexer)
    }

    private var http2Configuration: NIOHTTP2Handler.Configuration {
        var configuration = NIOHTTP2Handler.Configuration()
        configuration.connection.initialSettings = [
            HTTP2Setting(parameter: .maxConcurrentStreams, value: self.emulator.settings.maxConcurrentStreams),
            HTTP2Setting(parameter: .maxHeaderListSize, value: 80 * 1024),
        ]
        // Clients under test may cancel any number of streams; the limits against abuse would disconnect them.
        configuration.stream.streamResetFrameRateLimit.maximumCount = 1_000_000
        configuration.stream.streamErrorRateLimit.maximumCount = 1_000_000
        configuration.connection.controlFrameRateLimit.maximumCount = 1_000_000
        return configuration
    }

    private func configure(_ stream: any Channel, of connection: any Channel, connectionID: Int) throws -> Stream {
        guard let id = try stream.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID) else {
            throw ChannelError.operationUnsupported
        }
        let origin = RequestOrigin(
            connectionID: connectionID,
            connection: connection,
            stream: RequestOrigin.Stream(id: id, channel: stream)
        )
        try stream.pipeline.syncOperations.addHandler(HTTP2FramePayloadToHTTPServerCodec())
        try stream.pipeline.syncOperations.addHandler(PeerWatch(origin: origin))
        return try Stream(wrappingChannelSynchronously: stream)
    }

    private func serve(_ stream: Stream, logger: Logger) async {
        do {
            try await stream.executeThenClose { inbound, outbound in
                var parts = inbound.makeAsyncIterator()
                guard case .head(let head)? = try await parts.next() else { return }
                var body = ByteBuffer()
                var part = try await parts.next()
                while case .body(var bytes)? = part {
                    // The first piece beyond the limit is stored too, so that the responder notices the excess.
                    if body.readableBytes <= self.maxBodyBytes { body.writeBuffer(&bytes) }
                    part = try await parts.next()
                }
                guard case .end? = part else { return }
                let request = Request(head: head, body: RequestBody(buffer: body))
                try await self.responder(request, ResponseWriter(outbound: outbound), stream.channel)
                // The stream ends by itself; closing it earlier would reset it.
                while try await parts.next() != nil {}
            }
        } catch {
            logger.debug("stream ended early", metadata: ["error": "\(error)"])
        }
    }
}

/// Detects the HTTP version of a new connection, has its pipeline configured, and removes itself.
///
/// With TLS, the handshake's ALPN decides. Without TLS, the first bytes do: HTTP/2 begins with a preface that is not an
/// HTTP/1.1 request (RFC 9113, 3.4).
final class ProtocolChoice<Connection: Sendable>: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let isSecure: Bool
    private let configure: (Connections.HTTPVersion) -> EventLoopFuture<Connection>
    private let promise: EventLoopPromise<Connection>
    private var received = ByteBuffer()

    init(
        isSecure: Bool,
        eventLoop: any EventLoop,
        configure: @escaping (Connections.HTTPVersion) -> EventLoopFuture<Connection>
    ) {
        self.isSecure = isSecure
        self.configure = configure
        self.promise = eventLoop.makePromise()
    }

    /// The configured connection; fails if the connection ends first.
    var connection: EventLoopFuture<Connection> { self.promise.futureResult }

    func handlerRemoved(context: ChannelHandlerContext) {
        // Has no effect once the protocol was chosen.
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
