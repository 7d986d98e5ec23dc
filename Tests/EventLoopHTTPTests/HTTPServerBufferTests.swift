import HTTPTypes
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import EventLoopHTTP

@Suite("HTTPServer, buffered bytes")
struct HTTPServerBufferTests {
    /// A server with one lane, and connections to it that are fed by hand.
    private struct Bench {
        let core: HTTPServerCore
        let loop = EmbeddedEventLoop()
        let lane: HTTPServerLane

        init(
            maxBufferedBytes: Int,
            responder: any HTTPServerResponder = ClosureResponder { _ in HTTPServerResponse(status: .ok) }
        ) {
            var configuration = HTTPServerConfiguration()
            configuration.maxBufferedBytes = maxBufferedBytes
            configuration.bodyLimit = { $0.path == "/small" ? 100 : 1_000_000 }
            self.core = HTTPServerCore(
                configuration: configuration,
                responder: responder,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
            self.lane = HTTPServerLane(eventLoop: self.loop, configuration: configuration)
        }

        var held: Int { self.core.bodies.heldBytes }

        func connect() throws -> EmbeddedChannel {
            let channel = EmbeddedChannel(loop: self.loop)
            let connection = HTTPServerConnection(
                core: self.core,
                lane: self.lane,
                info: HTTPConnectionInfo(remoteAddress: nil, isTLS: false, eventLoop: self.loop)
            )
            try channel.pipeline.syncOperations.addHandler(HTTPServerWireHandler(connection: connection))
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            return channel
        }
    }

    private static func head(_ framing: String, path: String = "/") -> ByteBuffer {
        ByteBuffer(string: "POST \(path) HTTP/1.1\r\nHost: a\r\n\(framing)\r\n\r\n")
    }

    private static func bytes(_ count: Int) -> ByteBuffer {
        ByteBuffer(repeating: UInt8(ascii: "b"), count: count)
    }

    private static func answers(_ channel: EmbeddedChannel) throws -> [Int] {
        var text = ""
        while let bytes = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: bytes) }
        return RawResponse.parse(text).map(\.status)
    }

    @Test("Bytes count as they arrive, not as they are announced, and are released with the answer")
    func counts() throws {
        let bench = Bench(maxBufferedBytes: 1_000)
        let channel = try bench.connect()
        try channel.writeInbound(Self.head("Content-Length: 600"))
        #expect(bench.held == 0)
        try channel.writeInbound(Self.bytes(400))
        #expect(bench.held == 400)
        try channel.writeInbound(Self.bytes(200))
        #expect(try Self.answers(channel) == [200])
        #expect(bench.held == 0)
        try channel.writeInbound(Self.head("Content-Length: 1000"))
        try channel.writeInbound(Self.bytes(1_000))
        #expect(try Self.answers(channel) == [200])
        #expect(bench.held == 0)
    }

    @Test("A body that is announced too large for what is left is refused before it comes, and discarded")
    func announced() throws {
        let bench = Bench(maxBufferedBytes: 1_000)
        let first = try bench.connect()
        try first.writeInbound(Self.head("Content-Length: 600"))
        try first.writeInbound(Self.bytes(599))
        let second = try bench.connect()
        try second.writeInbound(Self.head("Content-Length: 402"))
        #expect(try Self.answers(second) == [503])
        // What was on its way already is read and thrown away, so that the answer is not lost to a reset.
        try second.writeInbound(Self.bytes(402))
        #expect(try Self.answers(second) == [])
        #expect(bench.held == 599)
        let third = try bench.connect()
        try third.writeInbound(Self.head("Content-Length: 401"))
        try third.writeInbound(Self.bytes(401))
        #expect(try Self.answers(third) == [200])
        try first.writeInbound(Self.bytes(1))
        #expect(try Self.answers(first) == [200])
        #expect(bench.held == 0)
    }

    @Test("A body that grows beyond what is left is refused while it comes")
    func chunked() throws {
        let bench = Bench(maxBufferedBytes: 1_000)
        let first = try bench.connect()
        try first.writeInbound(Self.head("Transfer-Encoding: chunked"))
        try first.writeInbound(ByteBuffer(string: "258\r\n" + String(repeating: "c", count: 600) + "\r\n"))
        #expect(bench.held == 600)
        let second = try bench.connect()
        try second.writeInbound(Self.head("Content-Length: 400"))
        try second.writeInbound(Self.bytes(300))
        #expect(bench.held == 900)
        try first.writeInbound(ByteBuffer(string: "65\r\n" + String(repeating: "c", count: 101) + "\r\n"))
        #expect(try Self.answers(first) == [503])
        #expect(bench.held == 300)
        try second.writeInbound(Self.bytes(100))
        #expect(try Self.answers(second) == [200])
        #expect(bench.held == 0)
    }

    @Test(
        "However a request ends, its bytes are released",
        arguments: ["closed", "too large", "malformed", "timeout", "next request closed"]
    )
    func releases(end: String) throws {
        let bench = Bench(maxBufferedBytes: 1_000)
        let channel = try bench.connect()
        switch end {
        case "closed":
            try channel.writeInbound(Self.head("Content-Length: 600"))
            try channel.writeInbound(Self.bytes(500))
            #expect(bench.held == 500)
            try channel.close().wait()
        case "next request closed":
            try channel.writeInbound(Self.head("Content-Length: 1"))
            try channel.writeInbound(Self.bytes(1))
            try channel.writeInbound(Self.head("Content-Length: 600"))
            try channel.writeInbound(Self.bytes(500))
            #expect(bench.held == 500)
            try channel.close().wait()
        case "timeout":
            try channel.writeInbound(Self.head("Content-Length: 600"))
            try channel.writeInbound(Self.bytes(500))
            #expect(bench.held == 500)
            bench.loop.advanceTime(by: .seconds(11))
            #expect(try Self.answers(channel) == [408])
        default:
            try channel.writeInbound(Self.head("Transfer-Encoding: chunked", path: "/small"))
            try channel.writeInbound(ByteBuffer(string: "50\r\n" + String(repeating: "c", count: 80) + "\r\n"))
            #expect(bench.held == 80)
            try channel.writeInbound(ByteBuffer(string: end == "malformed" ? "zz\r\n" : "50\r\n"))
            #expect(try Self.answers(channel) == [end == "malformed" ? 400 : 413])
        }
        #expect(bench.held == 0)
    }

    @Test("The start of each body always fits, however much others hold")
    func uncounted() async throws {
        let (held, hold) = AsyncStream<Void>.makeStream()
        let responder = ClosureResponder { request in
            if request.body.readableBytes > 20 { for await _ in held { break } }
            return HTTPServerResponse(status: .ok)
        }
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.maxBufferedBytes = 100
            $0.uncountedBodyBytes = 20
        }
        try await withServer(responder, configure: configure) { server, port in
            let large = try await RawConnection.open(port: port)
            try await large.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 120\r\n\r\n")
            try await large.send([UInt8](repeating: 1, count: 120))
            while server.heldBodyBytes < 100 { await Task.yield() }
            for (length, status) in [(20, 200), (21, 503)] {
                let other = try await RawConnection.open(port: port)
                let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: \(length)\r\n\r\n"
                other.offer(head + String(repeating: "x", count: length))
                #expect(RawResponse.parse(await other.textUntilClosed()).map(\.status) == [status])
            }
            #expect(server.heldBodyBytes == 100)
            hold.yield()
            while server.heldBodyBytes > 0 { await Task.yield() }
        }
    }

    @Test("A request that is being answered when its client goes keeps its bytes until its task has ended")
    func cancelled() async throws {
        let (held, hold) = AsyncStream<Void>.makeStream()
        let (began, begin) = AsyncStream<Void>.makeStream()
        let (left, leave) = AsyncStream<Void>.makeStream()
        let responder = ClosureResponder { _ in
            begin.yield()
            await withTaskCancellationHandler {
                // Like an upstream that does not hear of the cancellation at once.
                await Task { for await _ in held { return } }.value
            } onCancel: {
                leave.yield()
            }
            return HTTPServerResponse(status: .ok)
        }
        try await withServer(responder, configure: { $0.maxBufferedBytes = 100 }) { server, port in
            let first = try await RawConnection.open(port: port)
            try await first.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 80\r\n\r\n")
            try await first.send([UInt8](repeating: 1, count: 80))
            for await _ in began { break }
            #expect(server.heldBodyBytes == 80)
            let second = try await RawConnection.open(port: port)
            second.offer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 21\r\n\r\n")
            #expect(RawResponse.parse(await second.textUntilClosed()).map(\.status) == [503])
            await first.close()
            for await _ in left { break }
            #expect(server.heldBodyBytes == 80)
            hold.yield()
            // The task's last step follows on its loop.
            while server.heldBodyBytes > 0 { await Task.yield() }
        }
    }
}
