import GatewayTestKit
import HTTPTypes
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import EventLoopHTTP

/// Tests deadlines on an embedded loop whose clock the test advances.
@Suite("HTTPServerConnection")
struct HTTPServerConnectionTests {
    private static let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    @Test("A new connection that stays silent gets 408 after the head timeout")
    func silent() throws {
        let channel = try Self.connect()
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(4999))
        #expect(try channel.answers() == [])
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(try channel.answers() == [408])
        channel.embeddedEventLoop.advanceTime(by: .seconds(2))
        #expect(!channel.isActive)
    }

    @Test("Slow bytes don't extend the head deadline of a reused connection")
    func drippingHead() throws {
        let channel = try Self.connect()
        channel.embeddedEventLoop.advanceTime(by: .seconds(3))
        try channel.send(Self.request)
        #expect(try channel.answers() == [200])
        channel.embeddedEventLoop.advanceTime(by: .seconds(30))
        for second in 0..<5 {
            #expect(try channel.answers() == [])
            try channel.writeInbound(ByteBuffer(string: second == 0 ? "GET / HTTP/1.1\r\n" : "X\(second): y\r\n"))
            channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        }
        #expect(try channel.answers() == [408])
    }

    @Test("Slow bytes don't extend the body deadline")
    func drippingBody() throws {
        let channel = try Self.connect()
        try channel.writeInbound(ByteBuffer(string: "POST / HTTP/1.1\r\nHost: a\r\n"))
        channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        try channel.writeInbound(ByteBuffer(string: "Content-Length: 1000\r\n\r\n"))
        for _ in 0..<10 {
            #expect(try channel.answers() == [])
            try channel.writeInbound(ByteBuffer(string: "b"))
            channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        }
        #expect(try channel.answers() == [408])
    }

    @Test("An idle connection is closed without a response, timed from its last response")
    func idle() throws {
        let channel = try Self.connect()
        for _ in 0..<3 {
            try channel.send(Self.request)
            #expect(try channel.answers() == [200])
            channel.embeddedEventLoop.advanceTime(by: .seconds(74))
            #expect(channel.isActive)
        }
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(try channel.answers() == [])
        #expect(!channel.isActive)
    }

    @Test("Closing a connection within a head ends its deadline")
    func closedAmidHead() throws {
        let channel = try Self.connect()
        try channel.send("GET / HTTP/1.1\r\n")
        try channel.close().wait()
        channel.embeddedEventLoop.advanceTime(by: .seconds(600))
        #expect(try channel.answers() == [])
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    @Test("The responder has no deadline")
    func slowResponder() throws {
        let proceed = EventCounter()
        let responder = ClosureResponder { _ in
            await proceed.wait()
            return HTTPServerResponse(status: .ok)
        }
        let channel = try Self.connect(responder)
        try channel.writeInbound(ByteBuffer(string: Self.request))
        channel.embeddedEventLoop.advanceTime(by: .seconds(600))
        #expect(try channel.answers() == [])
        proceed.increment()
        channel.embeddedEventLoop.run()
        #expect(try channel.answers() == [200])
        #expect(channel.isActive)
    }

    @Test("After a refusal, input is discarded for two seconds, then the connection closes")
    func lingers() throws {
        let channel = try Self.connect()
        try channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n"))
        #expect(try channel.answers() == [400])
        try channel.writeInbound(ByteBuffer(string: Self.request))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .seconds(2))
        #expect(try channel.answers() == [])
        #expect(!channel.isActive)
    }

    @Test("A peer that sends over a megabyte after a refusal is closed immediately")
    func floods() throws {
        let cuts = Mutex<[HTTPServerCloseReason]>([])
        let channel = try Self.connect { cut in cuts.withLock { $0.append(cut) } }
        try channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n"))
        for _ in 0..<17 {
            try channel.writeInbound(ByteBuffer(repeating: 0, count: 64 * 1024))
        }
        #expect(!channel.isActive)
        #expect(cuts.withLock { $0 } == [.flooded])
    }

    @Test("Every response has a Date field, refusals too")
    func dates() throws {
        let channel = try Self.connect()
        try channel.send(Self.request)
        try channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n"))
        var text = ""
        while let bytes = try channel.readOutbound(as: ByteBuffer.self) {
            text += String(buffer: bytes)
        }
        let answers = RawResponse.parse(text)
        #expect(answers.map(\.status) == [200, 400])
        #expect(answers.map { $0.fields["date"] } == Array(repeating: "Sun, 06 Nov 1994 08:49:37 GMT", count: 2))
    }

    @Test("A peer that reads too little is closed like one that reads nothing", arguments: [0, 1, 16 * 1024 - 1])
    func writeStalls(readBytes: Int) throws {
        let cuts = Mutex<[HTTPServerCloseReason]>([])
        let size = 100 * 1024
        let responder = ClosureResponder { _ in
            HTTPServerResponse(status: .ok, body: ByteBuffer(repeating: 0x62, count: size))
        }
        let reader = SlowReaderHandler()
        let channel = try Self.connect(responder, reader: reader) { cut in cuts.withLock { $0.append(cut) } }
        channel.isWritable = false
        try channel.send(Self.request)
        // The peer reads enough three times, then too little.
        for _ in 1...3 {
            channel.embeddedEventLoop.advanceTime(by: .milliseconds(9_999))
            reader.read(16 * 1024)
            channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
            #expect(channel.isActive)
        }
        reader.read(readBytes)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(9_999))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(!channel.isActive)
        #expect(cuts.withLock { $0 } == [.writeStalled])
    }

    @Test("A paced response waits for its turn and holds back later requests of its connection")
    func pacedAnswer() throws {
        var configuration = HTTPServerConfiguration()
        configuration.pacedAnswersPerSecond = 10
        configuration.maxPacedDelay = .seconds(1)
        let responder = ClosureResponder { request in
            var response = HTTPServerResponse(status: .serviceUnavailable)
            response.isPaced = request.head.path == "/paced"
            return response
        }
        let channel = try Self.connect(responder, configuration: configuration)
        let paced = ByteBuffer(string: "GET /paced HTTP/1.1\r\nHost: a\r\n\r\n")
        try channel.writeInbound(paced)
        #expect(try channel.answers() == [503])
        try channel.writeInbound(paced)
        try channel.writeInbound(ByteBuffer(string: "GET /other HTTP/1.1\r\nHost: a\r\n\r\n"))
        #expect(try channel.answers() == [])
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(99))
        #expect(try channel.answers() == [])
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(try channel.answers() == [503, 503])
        #expect(channel.isActive)
        _ = try channel.finish()
    }

    @Test("Closing a connection discards its delayed response")
    func closesWhilePaced() throws {
        var configuration = HTTPServerConfiguration()
        configuration.pacedAnswersPerSecond = 1
        let responder = ClosureResponder { _ in
            var response = HTTPServerResponse(status: .serviceUnavailable)
            response.isPaced = true
            return response
        }
        let channel = try Self.connect(responder, configuration: configuration)
        for _ in 0..<2 { try channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: a\r\n\r\n")) }
        #expect(try channel.answers() == [503])
        try channel.close().wait()
        channel.embeddedEventLoop.advanceTime(by: .seconds(5))
        #expect(try channel.answers() == [])
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    /// A connection of a server with default limits.
    private static func connect(
        _ responder: any HTTPServerResponder = ClosureResponder { _ in HTTPServerResponse(status: .ok) },
        configuration: HTTPServerConfiguration = HTTPServerConfiguration(),
        reader: SlowReaderHandler? = nil,
        onClose: @escaping @Sendable (HTTPServerCloseReason) -> Void = { _ in }
    ) throws -> EmbeddedChannel {
        let bench = ServerBench(responder) {
            $0 = configuration
            $0.onClose = onClose
            $0.wallClock = { .seconds(784_111_777) }
        }
        guard let reader else { return try bench.connect(HalfClosureHandler()) }
        return try bench.connect(HalfClosureHandler(), reader)
    }
}

/// Half-closes the channel, which `EmbeddedChannel` would close completely.
private final class HalfClosureHandler: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if case .output = mode {
            promise?.succeed()
        } else {
            context.close(mode: mode, promise: promise)
        }
    }
}
