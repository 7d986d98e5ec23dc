import EventLoopHTTP
import NIOCore
import NIOPosix
import Synchronization

/// A peer that answers requests with exactly the bytes a test gives it.
final class RawServer: Sendable {
    /// What to do with a request.
    enum Reply: Sendable {
        case send(String)
        case sendAndClose(String)
        case close
        case nothing
    }

    private let listener: any Channel
    private let record: RawServerRecord
    private let pools = Mutex<[HTTPClientPool]>([])

    var accepted: EventCounter { self.record.accepted }
    var requests: EventCounter { self.record.requests }
    var closed: EventCounter { self.record.closed }
    var port: Int { self.listener.localAddress?.port ?? 0 }

    private init(listener: any Channel, record: RawServerRecord) {
        self.listener = listener
        self.record = record
    }

    /// Listens, and asks `reply` what to do with each request: its connection's number, from 1, and its bytes.
    ///
    /// Where it answers early, it does so to a request's first bytes, and reads no further until `readOn`.
    static func start(
        answersEarly: Bool = false,
        _ reply: @escaping @Sendable (Int, String) -> Reply
    ) async throws -> RawServer {
        let record = RawServerRecord()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.autoRead, value: !answersEarly)
            .childChannelOption(.maxMessagesPerRead, value: UInt(answersEarly ? 1 : 4))
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let number = record.add(channel)
                    try channel.pipeline.syncOperations.addHandler(
                        RawServerHandler(record: record, answersEarly: answersEarly) { reply(number, $0) }
                    )
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        return RawServer(listener: listener, record: record)
    }

    /// A pool for this server, shut down when that stops.
    func pool(
        _ scheme: String = "http",
        configure: (inout HTTPClientConfiguration) -> Void = { _ in }
    ) throws -> HTTPClientPool {
        let pool = try HTTPClientPool.make("\(scheme)://127.0.0.1:\(self.port)", configure: configure)
        self.pools.withLock { $0.append(pool) }
        return pool
    }

    /// Reads on, without which the end of a connection stays behind the bytes before it.
    func readOn() async throws {
        for channel in self.record.channels.withLock({ $0 }) {
            try await channel.setOption(.autoRead, value: true).get()
        }
    }

    /// Sends bytes nobody asked for on every connection.
    func push(_ text: String) {
        for channel in self.record.channels.withLock({ $0 }) {
            channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
        }
    }

    /// Ends our side of every connection; `closed` counts those whose other side followed.
    func halfClose() {
        for channel in self.record.channels.withLock({ $0 }) {
            channel.close(mode: .output, promise: nil)
        }
    }

    func stop() async {
        for pool in self.pools.withLock({ $0 }) { await pool.shutdown() }
        try? await self.listener.close()
        for channel in self.record.channels.withLock({ $0 }) {
            try? await channel.close()
        }
    }
}

private final class RawServerRecord: Sendable {
    let channels = Mutex<[any Channel]>([])
    let accepted = EventCounter()
    let requests = EventCounter()
    let closed = EventCounter()

    func add(_ channel: any Channel) -> Int {
        let number = self.channels.withLock {
            $0.append(channel)
            return $0.count
        }
        // Last: who has waited for it finds the connection.
        self.accepted.increment()
        return number
    }
}

private final class RawServerHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let record: RawServerRecord
    private let answersEarly: Bool
    private let reply: (String) -> RawServer.Reply
    private var received: [UInt8] = []

    init(record: RawServerRecord, answersEarly: Bool, reply: @escaping (String) -> RawServer.Reply) {
        self.record = record
        self.answersEarly = answersEarly
        self.reply = reply
    }

    func channelActive(context: ChannelHandlerContext) {
        if self.answersEarly { context.read() }
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

    private func answer(_ request: String, _ context: ChannelHandlerContext) {
        self.record.requests.increment()
        switch self.reply(request) {
        case .send(let text):
            context.writeAndFlush(NIOAny(ByteBuffer(string: text)), promise: nil)
        case .sendAndClose(let text):
            context.writeAndFlush(NIOAny(ByteBuffer(string: text)), promise: nil)
            context.close(promise: nil)
        case .close:
            context.close(promise: nil)
        case .nothing:
            break
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.record.closed.increment()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
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
