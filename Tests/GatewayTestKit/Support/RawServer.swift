import NIOCore
import NIOPosix
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A server that records the bytes that it receives, and answers with exactly the bytes that a test gives it.
package final class RawServer: Sendable {
    /// The reaction to a request.
    package enum Reply: Sendable {
        case send(String)
        case sendAndClose(String)
        /// Sends a head, then the same bytes repeatedly until the peer closes.
        case flood(head: String, chunk: String)
        case close
        /// Closes so that the peer sees a reset.
        case reset
        case nothing
    }

    /// The requests and connections so far.
    package struct Seen: Sendable {
        /// The requests, head and body as they came.
        package var requests: [String] = []
        /// The number of connections that were accepted.
        package var accepted = 0
        /// The number of them that are closed.
        package var closed = 0
    }

    package let seen = Observed(Seen())
    private let channels = Mutex<[any Channel]>([])
    private let cleanups = Mutex<[@Sendable () async -> Void]>([])

    package var port: Int { self.channels.withLock { $0.first }?.localAddress?.port ?? 0 }

    /// The server's address as an endpoint.
    package var endpoint: String { "http://127.0.0.1:\(self.port)" }

    private init() {}

    /// Listens, and calls `reply` for each request with the number of its connection, from 1, and its bytes.
    ///
    /// A server that answers early answers a request's first bytes, and reads no further until `readOn`.
    package static func start(
        answersEarly: Bool = false,
        _ reply: @escaping @Sendable (Int, String) -> Reply
    ) async throws -> RawServer {
        let server = RawServer()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.autoRead, value: !answersEarly)
            .childChannelOption(.maxMessagesPerRead, value: UInt(answersEarly ? 1 : 4))
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    server.channels.withLock { $0.append(channel) }
                    // Counted last, so that a test that waits for the count finds the connection.
                    let number = server.seen.change { seen in
                        seen.accepted += 1
                        return seen.accepted
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        RawServerHandler(seen: server.seen, answersEarly: answersEarly) { reply(number, $0) }
                    )
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        server.channels.withLock { $0.insert(listener, at: 0) }
        return server
    }

    /// Runs a body against a server that gives every request the same reply and is stopped afterwards.
    package static func run(_ reply: Reply, _ body: (RawServer) async throws -> Void) async throws {
        try await self.run({ _, _ in reply }, body)
    }

    /// Runs a body against a server whose answers depend on the number of the request, from 1.
    package static func run(
        script: @escaping @Sendable (Int) -> String,
        _ body: (RawServer) async throws -> Void
    ) async throws {
        let count = Mutex(0)
        let reply: @Sendable (Int, String) -> Reply = { _, _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return .send(script(number))
        }
        try await self.run(reply, body)
    }

    private static func run(
        _ reply: @escaping @Sendable (Int, String) -> Reply,
        _ body: (RawServer) async throws -> Void
    ) async throws {
        let server = try await self.start(reply)
        do {
            try await body(server)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    /// Runs a body before the server stops.
    package func whenStopped(_ body: @escaping @Sendable () async -> Void) {
        self.cleanups.withLock { $0.append(body) }
    }

    package func stop() async {
        for cleanup in self.cleanups.withLock({ $0 }) { await cleanup() }
        for channel in self.channels.withLock({ $0 }) { try? await channel.close() }
    }

    /// Continues reading, without which unread bytes hide the end of a connection.
    package func readOn() async throws {
        for channel in self.connections { try await channel.setOption(.autoRead, value: true).get() }
    }

    /// Sends unsolicited bytes on every connection.
    package func push(_ text: String) {
        for channel in self.connections { channel.writeAndFlush(ByteBuffer(string: text), promise: nil) }
    }

    /// Closes the server's side of every connection; a connection counts as closed once the peer closes it too.
    package func halfClose() {
        for channel in self.connections { channel.close(mode: .output, promise: nil) }
    }

    private var connections: [any Channel] { Array(self.channels.withLock { $0 }.dropFirst()) }
}

/// The server's side of one connection.
private final class RawServerHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let seen: Observed<RawServer.Seen>
    private let answersEarly: Bool
    private let reply: (String) -> RawServer.Reply
    private var received: [UInt8] = []
    private var chunk: ByteBuffer?

    init(
        seen: Observed<RawServer.Seen>,
        answersEarly: Bool,
        reply: @escaping (String) -> RawServer.Reply
    ) {
        self.seen = seen
        self.answersEarly = answersEarly
        self.reply = reply
    }

    func channelActive(context: ChannelHandlerContext) {
        if self.answersEarly { context.read() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.chunk = nil
        self.seen.change { $0.closed += 1 }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !self.answersEarly || self.received.isEmpty else { return }
        self.received += self.unwrapInboundIn(data).readableBytesView
        if self.answersEarly {
            self.answer(String(decoding: self.received, as: UTF8.self), context)
        } else {
            while let request = self.nextRequest() { self.answer(request, context) }
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        self.pour(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func answer(_ request: String, _ context: ChannelHandlerContext) {
        self.seen.change { $0.requests.append(request) }
        switch self.reply(request) {
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
            // With a linger time of zero, closing sends a reset.
            let socket = context.channel as? any SocketOptionProvider
            _ = socket?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            context.close(promise: nil)
        case .nothing:
            break
        }
    }

    private func write(_ text: String, _ context: ChannelHandlerContext) {
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
    }

    /// Sends the repeated bytes as long as the peer accepts them.
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
