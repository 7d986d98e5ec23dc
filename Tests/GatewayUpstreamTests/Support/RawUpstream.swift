import GatewayTestKit
import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A server that keeps what it is sent, byte by byte, and answers with exactly the bytes a test gives it.
final class RawUpstream: Sendable {
    /// What to do with a complete request.
    enum Reply: Sendable {
        /// Sends bytes and waits for the next request.
        case send(String)
        /// Sends bytes that depend on the number of the request, from 1.
        case script(@Sendable (Int) -> String)
        /// Sends bytes and closes.
        case sendAndClose(String)
        /// Sends a head, then the same bytes again and again until the peer has had enough.
        case flood(head: String, chunk: String)
        /// Closes in good order without a word.
        case close
        /// Closes so that the peer sees a reset.
        case reset
        /// Never answers.
        case hang
    }

    /// What the server has seen.
    struct Seen: Sendable {
        /// The requests, head and body as they came.
        var requests: [String] = []
        /// How many connections were accepted.
        var accepted = 0
        /// How many of them are gone.
        var closed = 0
    }

    let seen: Observed<Seen>
    private let listener: any Channel

    private init(listener: any Channel, seen: Observed<Seen>) {
        self.listener = listener
        self.seen = seen
    }

    /// Where the server listens.
    var port: Int { self.listener.localAddress?.port ?? 0 }

    /// The server's address as an endpoint.
    var endpoint: String { "http://127.0.0.1:\(self.port)" }

    /// Runs a body against a server that is closed afterwards.
    static func run(_ reply: Reply, _ body: (RawUpstream) async throws -> Void) async throws {
        let seen = Observed(Seen())
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(RawUpstreamHandler(seen: seen, reply: reply))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let server = RawUpstream(listener: listener, seen: seen)
        do {
            try await body(server)
        } catch {
            try? await listener.close()
            throw error
        }
        try? await listener.close()
    }
}

/// The server's side of one connection.
private final class RawUpstreamHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let seen: Observed<RawUpstream.Seen>
    private let reply: RawUpstream.Reply
    private var received: [UInt8] = []
    private var chunk: ByteBuffer?

    init(seen: Observed<RawUpstream.Seen>, reply: RawUpstream.Reply) {
        self.seen = seen
        self.reply = reply
    }

    func channelActive(context: ChannelHandlerContext) {
        self.seen.change { $0.accepted += 1 }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.chunk = nil
        self.seen.change { $0.closed += 1 }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.received += self.unwrapInboundIn(data).readableBytesView
        while let request = self.nextRequest() {
            let number = self.seen.change { seen in
                seen.requests.append(request)
                return seen.requests.count
            }
            self.answer(number, context)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        self.pour(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func answer(_ number: Int, _ context: ChannelHandlerContext) {
        switch self.reply {
        case .script(let text):
            self.write(text(number), context)
        case .send(let text):
            self.write(text, context)
        case .sendAndClose(let text):
            self.write(text, context)
            context.close(promise: nil)
        case .flood(let head, let chunk):
            self.write(head, context)
            self.chunk = ByteBuffer(string: chunk)
            self.pour(context)
        case .close:
            context.close(promise: nil)
        case .reset:
            // With nothing to linger for, closing sends a reset.
            let socket = context.channel as? any SocketOptionProvider
            _ = socket?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            context.close(promise: nil)
        case .hang:
            break
        }
    }

    private func write(_ text: String, _ context: ChannelHandlerContext) {
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
    }

    /// Sends the repeated bytes for as long as the peer takes them.
    private func pour(_ context: ChannelHandlerContext) {
        guard let chunk = self.chunk else { return }
        while context.channel.isActive, context.channel.isWritable {
            context.writeAndFlush(self.wrapOutboundOut(chunk), promise: nil)
        }
    }

    private func nextRequest() -> String? {
        guard let headEnd = self.received.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let head = String(decoding: self.received[..<headEnd.upperBound], as: UTF8.self)
        var length = 0
        for line in head.split(separator: "\r\n") where line.lowercased().hasPrefix("content-length:") {
            length = Int(line.dropFirst(15).drop { $0 == " " }) ?? 0
        }
        guard self.received.count >= headEnd.upperBound + length else { return nil }
        let request = self.received.prefix(headEnd.upperBound + length)
        self.received.removeFirst(request.count)
        return String(decoding: request, as: UTF8.self)
    }
}
