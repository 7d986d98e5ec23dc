import FCMEmulator
import Foundation
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL

/// An HTTP/2 connection to an emulator, with TLS if there is a certificate to trust, else with prior knowledge.
struct H2Client: Sendable {
    private typealias Stream = NIOAsyncChannel<HTTP2Frame.FramePayload, HTTP2Frame.FramePayload>

    /// Forwards the frames of the connection as a whole.
    private final class ConnectionFrames: ChannelInboundHandler, Sendable {
        typealias InboundIn = HTTP2Frame

        let observer: AsyncStream<HTTP2Frame.FramePayload>.Continuation

        init(observer: AsyncStream<HTTP2Frame.FramePayload>.Continuation) {
            self.observer = observer
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            self.observer.yield(self.unwrapInboundIn(data).payload)
        }

        func channelInactive(context: ChannelHandlerContext) {
            self.observer.finish()
            context.fireChannelInactive()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            // The connection was reset; its streams end with an error of their own.
        }
    }

    private let channel: any Channel
    private let multiplexer: NIOHTTP2Handler.AsyncStreamMultiplexer<Void>

    /// SETTINGS, GOAWAY and the like as they arrive; ends with the connection.
    let frames: AsyncStream<HTTP2Frame.FramePayload>

    /// Connects, runs the closure and closes the connection.
    static func with<Result: Sendable>(
        port: Int,
        certificate: EmulatorCertificate? = nil,
        _ body: (H2Client) async throws -> Result
    ) async throws -> Result {
        let (frames, observer) = AsyncStream<HTTP2Frame.FramePayload>.makeStream()
        let tls = try certificate.map { try ClientTLS.context(trusting: $0, protocols: ["h2"]) }
        let (channel, multiplexer) = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let tls {
                        try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: "localhost"))
                    }
                    let multiplexer = try pipeline.configureAsyncHTTP2Pipeline(mode: .client) { stream in
                        stream.eventLoop.makeSucceededVoidFuture()
                    }
                    try pipeline.addHandler(ConnectionFrames(observer: observer))
                    return (channel, multiplexer)
                }
            }
        let client = H2Client(channel: channel, multiplexer: multiplexer, frames: frames)
        do {
            let result = try await body(client)
            try? await channel.close()
            return result
        } catch {
            try? await channel.close()
            throw error
        }
    }

    /// Sends one request on a stream of its own and reads until the stream ends.
    ///
    /// The closure runs between head and body.
    func send(
        _ method: String,
        _ path: String,
        headers: [(String, String)] = [],
        body: String,
        beforeBody: @Sendable () async -> Void = {}
    ) async throws -> H2Reply {
        let stream: Stream = try await self.multiplexer.openStream { stream in
            stream.eventLoop.makeCompletedFuture { try Stream(wrappingChannelSynchronously: stream) }
        }
        var fields = HPACKHeaders([
            (":method", method), (":path", path), (":scheme", "https"), (":authority", "localhost"),
        ])
        for (name, value) in headers { fields.add(name: name, value: value) }
        let head = HTTP2Frame.FramePayload.headers(.init(headers: fields))
        let data = HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(ByteBuffer(string: body)), endStream: true))
        return try await stream.executeThenClose { inbound, outbound in
            try await outbound.write(head)
            await beforeBody()
            try await outbound.write(data)
            return await Self.read(inbound)
        }
    }

    private static func read(
        _ inbound: NIOAsyncChannelInboundStream<HTTP2Frame.FramePayload>
    ) async -> H2Reply {
        var reply = H2Reply()
        do {
            for try await payload in inbound {
                switch payload {
                case .headers(let headers):
                    reply.headers = headers.headers
                    reply.status = headers.headers.first(name: ":status").flatMap { Int($0) }
                case .data(let data):
                    if case .byteBuffer(let bytes) = data.data { reply.body += String(buffer: bytes) }
                default:
                    break
                }
            }
        } catch let error as NIOHTTP2Errors.StreamClosed {
            reply.reset = error.errorCode
        } catch {
            // The connection was reset; there is no response.
        }
        return reply
    }

    func send(
        message: String,
        project: String = "demo",
        token: String,
        beforeBody: @Sendable () async -> Void = {}
    ) async throws -> H2Reply {
        try await self.send(
            "POST",
            "/v1/projects/\(project)/messages:send",
            headers: [("authorization", "Bearer \(token)"), ("content-type", "application/json; charset=UTF-8")],
            body: message,
            beforeBody: beforeBody
        )
    }
}

/// The response on an HTTP/2 stream, up to its end.
struct H2Reply: Sendable {
    var status: Int?
    var headers = HPACKHeaders()
    var body = ""

    /// The error code of a reset stream; `cancel` also for a stream above the last one of GOAWAY.
    var reset: HTTP2ErrorCode?

    func json() throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(self.body.utf8)) as? [String: Any] ?? [:]
    }
}
