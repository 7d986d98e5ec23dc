import GatewayTestKit
import NIOCore
import NIOPosix

/// A TCP connection that sends exactly the bytes a test gives it.
final class RawConnection: Sendable {
    private let channel: any Channel
    private let inbox: RawInbox

    private init(channel: any Channel, inbox: RawInbox) {
        self.channel = channel
        self.inbox = inbox
    }

    /// Connects; the event loop sends the greeting as soon as the connection is active.
    static func open(
        host: String = "127.0.0.1",
        port: Int,
        greeting: String = ""
    ) async throws -> RawConnection {
        let inbox = RawInbox()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(RawInboxHandler(inbox: inbox, greeting: greeting))
                }
            }
            .connect(host: host, port: port)
            .get()
        return RawConnection(channel: channel, inbox: inbox)
    }

    func send(_ text: String) async throws {
        try await self.send(Array(text.utf8))
    }

    func send(_ bytes: [UInt8]) async throws {
        try await self.channel.writeAndFlush(ByteBuffer(bytes: bytes))
    }

    /// Sends bytes that the peer may not read to the end.
    func offer(_ text: String) {
        self.offer(Array(text.utf8))
    }

    func offer(_ bytes: [UInt8]) {
        self.channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    }

    /// Returns the first `count` responses, or fewer if the peer closes earlier.
    func responses(_ count: Int) async -> [RawResponse] {
        RawResponse.parse(await self.inbox.text { RawResponse.parse($0).count >= count })
    }

    /// Returns all the peer sends until it closes.
    func textUntilClosed() async -> String {
        await self.inbox.text { _ in false }
    }

    func text(containing part: String) async -> String {
        await self.inbox.text { $0.contains(part) }
    }

    func close() async {
        try? await self.channel.close()
    }
}

private final class RawInboxHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let inbox: RawInbox
    private let greeting: String

    init(inbox: RawInbox, greeting: String) {
        self.inbox = inbox
        self.greeting = greeting
    }

    func channelActive(context: ChannelHandlerContext) {
        guard !self.greeting.isEmpty else { return }
        context.writeAndFlush(NIOAny(ByteBuffer(string: self.greeting)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.inbox.append(self.unwrapInboundIn(data))
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.inbox.close()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}

/// The bytes that a raw connection has received; a test can wait for them.
final class RawInbox: Sendable {
    private struct Received: Sendable {
        var bytes: [UInt8] = []
        var isClosed = false

        var text: String { String(decoding: self.bytes, as: UTF8.self) }
    }

    private let received = Observed(Received())

    func append(_ buffer: ByteBuffer) {
        self.received.change { $0.bytes.append(contentsOf: buffer.readableBytesView) }
    }

    func close() {
        self.received.change { $0.isClosed = true }
    }

    /// Returns the received text once it satisfies the condition or the connection is closed.
    func text(where isDone: @escaping @Sendable (String) -> Bool) async -> String {
        try? await self.received.wait { $0.isClosed || isDone($0.text) }
        return self.received.current.text
    }
}

/// A response, parsed without the parser under test.
struct RawResponse: Equatable, Sendable {
    var status: Int
    var fields: [String: String]
    var body: String

    /// Parses the complete responses at the start of a text; responses to `HEAD` have no body.
    static func parse(_ text: String, toHead: Bool = false) -> [RawResponse] {
        var responses: [RawResponse] = []
        var rest = Array(text.utf8)[...]
        let separator = Array("\r\n\r\n".utf8)
        while let headEnd = rest.firstRange(of: separator) {
            let lines = String(decoding: rest[..<headEnd.lowerBound], as: UTF8.self).split(separator: "\r\n")
            guard let start = lines.first?.split(separator: " "), start.count >= 2, let status = Int(start[1]) else {
                break
            }
            var fields: [String: String] = [:]
            for line in lines.dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1)
                fields[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
            }
            let length = toHead || status == 100 ? 0 : Int(fields["content-length"] ?? "0") ?? 0
            let body = rest[headEnd.upperBound...].prefix(length)
            guard body.count == length else { break }
            responses.append(RawResponse(status: status, fields: fields, body: String(decoding: body, as: UTF8.self)))
            rest = rest[headEnd.upperBound...].dropFirst(length)
        }
        return responses
    }
}
