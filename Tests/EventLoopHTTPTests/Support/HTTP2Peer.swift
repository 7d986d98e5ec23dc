import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL
import Synchronization

/// A peer that speaks HTTP/2 over TLS, and does with each request what a test says.
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

    /// What to do with a request, or later with its stream.
    enum Reply: Sendable {
        case answer(status: Int = 200, fields: [(String, String)] = [], body: String = "ok")
        /// Answers, and never ends the body.
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

    var port: Int { self.listener.localAddress?.port ?? 0 }

    private init(listener: any Channel, record: HTTP2PeerRecord) {
        self.listener = listener
        self.record = record
    }

    /// Listens, and asks `reply` what to do with each request.
    ///
    /// - Parameters:
    ///   - settings: what the peer announces.
    ///   - answersEarly: whether a request is taken for complete when its head is, its body staying unread.
    ///   - reply: what to do.
    /// - Returns: the peer, listening.
    /// - Throws: why it can't listen.
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

    /// Gives all requests that are held a reply.
    func release(_ reply: @escaping @Sendable (Request) -> Reply = { _ in .answer() }) {
        for request in self.record.takeHeld() {
            self.perform(reply(request), for: request)
        }
    }

    /// Does something on the connection, and for the stream, of a request.
    func perform(_ reply: Reply, for request: Request) {
        let channel = self.record.channel(request.connection)
        channel.eventLoop.execute {
            let handler = try? channel.pipeline.syncOperations.handler(type: HTTP2PeerHandler.self)
            handler?.perform(reply, for: request)
        }
    }

    func stop() async {
        try? await self.listener.close()
        for channel in self.record.allChannels {
            try? await channel.close()
        }
    }
}
