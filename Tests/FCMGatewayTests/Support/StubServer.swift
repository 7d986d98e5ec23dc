import NIOCore
import NIOHTTP1
import NIOPosix
import StrictJSON
import Synchronization

@testable import FCMGateway
@testable import GatewayService

/// A tiny HTTP server on a free loopback port that records requests and answers from a closure.
final class StubServer: Sendable {
    struct Request: Sendable {
        var method: String
        var uri: String
        var headers: [String: String]
        var body: String

        /// Method and address on one line, as tests compare them.
        var line: String { "\(self.method) \(self.uri)" }
    }

    struct Reply: Sendable {
        var status = 200
        var headers: [String: String] = [:]
        var body = ""
    }

    private let recorded = Mutex<[Request]>([])
    private let answer: @Sendable (Request) -> Reply
    private let port = Mutex(0)

    private init(_ answer: @escaping @Sendable (Request) -> Reply) {
        self.answer = answer
    }

    var requests: [Request] { self.recorded.withLock { $0 } }

    var address: String { "http://127.0.0.1:\(self.port.withLock { $0 })" }

    /// Runs a body against a server that is closed afterwards.
    static func with<Result>(
        _ answer: @escaping @Sendable (Request) -> Reply,
        _ body: (StubServer) async throws -> Result
    ) async throws -> Result {
        let server = StubServer(answer)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Handler(server))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        server.port.withLock { $0 = channel.localAddress?.port ?? 0 }
        do {
            let result = try await body(server)
            try await channel.close()
            return result
        } catch {
            try? await channel.close()
            throw error
        }
    }

    /// Runs a body with an API client of a server.
    static func withClient<Result>(
        token: String = "an-admin-token-of-tests",
        _ answer: @escaping @Sendable (Request) -> Reply,
        _ body: (APIClient, StubServer) async throws -> Result
    ) async throws -> Result {
        try await Self.with(answer) { server in
            guard let url = BaseURL(server.address) else { throw CommandFailure("no address") }
            return try await APIClient.with(url, token: Redacted(token)) { try await body($0, server) }
        }
    }

    private func reply(to request: Request) -> Reply {
        self.recorded.withLock { $0.append(request) }
        return self.answer(request)
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let server: StubServer
        private var head: HTTPRequestHead?
        private var body = ""

        init(_ server: StubServer) {
            self.server = server
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch self.unwrapInboundIn(data) {
            case .head(let head):
                self.head = head
                self.body = ""
            case .body(let buffer):
                self.body += String(buffer: buffer)
            case .end:
                guard let head = self.head else { return }
                self.answer(head, context: context)
            }
        }

        private func answer(_ head: HTTPRequestHead, context: ChannelHandlerContext) {
            let names = Dictionary(head.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first }
            let request = Request(method: head.method.rawValue, uri: head.uri, headers: names, body: self.body)
            let reply = self.server.reply(to: request)
            var headers = HTTPHeaders(reply.headers.map { ($0.key, $0.value) })
            if reply.status != 204 {
                headers.add(name: "Content-Length", value: String(reply.body.utf8.count))
            }
            let response = HTTPResponseHead(
                version: .http1_1,
                status: HTTPResponseStatus(statusCode: reply.status),
                headers: headers
            )
            context.write(self.wrapOutboundOut(.head(response)), promise: nil)
            context.write(self.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: reply.body)))), promise: nil)
            context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}

extension AdminVerb {
    /// Performs the verb and returns its outputs.
    func outputs(_ api: APIClient) async throws -> [CommandOutput] {
        var outputs: [CommandOutput] = []
        try await self.perform(AdminClient(api)) { outputs.append($0) }
        return outputs
    }
}

extension JSONValue {
    init(parsing text: String) throws {
        self = try JSONDocument(parsing: ByteBuffer(string: text), limits: .trusted).root
    }
}
