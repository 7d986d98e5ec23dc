import HTTPTypes
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import EventLoopHTTP

@Suite("HTTPServer, buffered bytes")
struct HTTPServerBufferTests {
    private static func bench(maxBufferedBytes: Int) -> ServerBench {
        ServerBench {
            $0.maxBufferedBytes = maxBufferedBytes
            $0.bodyLimit = { $0.path == "/small" ? 100 : 1_000_000 }
        }
    }

    private static func head(_ framing: String, path: String = "/") -> ByteBuffer {
        ByteBuffer(string: "POST \(path) HTTP/1.1\r\nHost: a\r\n\(framing)\r\n\r\n")
    }

    private static func bytes(_ count: Int) -> ByteBuffer {
        ByteBuffer(repeating: UInt8(ascii: "b"), count: count)
    }

    @Test("Body bytes count when they arrive, not when announced, and are released with the response")
    func counts() throws {
        let bench = Self.bench(maxBufferedBytes: 1_000)
        let channel = try bench.connect()
        try channel.writeInbound(Self.head("Content-Length: 600"))
        #expect(bench.server.bodies.heldBytes == 0)
        try channel.writeInbound(Self.bytes(400))
        #expect(bench.server.bodies.heldBytes == 400)
        try channel.writeInbound(Self.bytes(200))
        #expect(try channel.answers() == [200])
        #expect(bench.server.bodies.heldBytes == 0)
        try channel.writeInbound(Self.head("Content-Length: 1000"))
        try channel.writeInbound(Self.bytes(1_000))
        #expect(try channel.answers() == [200])
        #expect(bench.server.bodies.heldBytes == 0)
    }

    @Test("A length beyond the remaining budget gets 503 before the body arrives")
    func announced() throws {
        let bench = Self.bench(maxBufferedBytes: 1_000)
        let first = try bench.connect()
        try first.writeInbound(Self.head("Content-Length: 600"))
        try first.writeInbound(Self.bytes(599))
        let second = try bench.connect()
        try second.writeInbound(Self.head("Content-Length: 402"))
        #expect(try second.answers() == [503])
        // Bytes already in transit are discarded, so that no reset destroys the response.
        try second.writeInbound(Self.bytes(402))
        #expect(try second.answers() == [])
        #expect(bench.server.bodies.heldBytes == 599)
        let third = try bench.connect()
        try third.writeInbound(Self.head("Content-Length: 401"))
        try third.writeInbound(Self.bytes(401))
        #expect(try third.answers() == [200])
        try first.writeInbound(Self.bytes(1))
        #expect(try first.answers() == [200])
        #expect(bench.server.bodies.heldBytes == 0)
    }

    @Test("A chunked body that grows beyond the remaining budget gets 503")
    func chunked() throws {
        let bench = Self.bench(maxBufferedBytes: 1_000)
        let first = try bench.connect()
        try first.writeInbound(Self.head("Transfer-Encoding: chunked"))
        try first.writeInbound(ByteBuffer(string: "258\r\n" + String(repeating: "c", count: 600) + "\r\n"))
        #expect(bench.server.bodies.heldBytes == 600)
        let second = try bench.connect()
        try second.writeInbound(Self.head("Content-Length: 400"))
        try second.writeInbound(Self.bytes(300))
        #expect(bench.server.bodies.heldBytes == 900)
        try first.writeInbound(ByteBuffer(string: "65\r\n" + String(repeating: "c", count: 101) + "\r\n"))
        #expect(try first.answers() == [503])
        #expect(bench.server.bodies.heldBytes == 300)
        try second.writeInbound(Self.bytes(100))
        #expect(try second.answers() == [200])
        #expect(bench.server.bodies.heldBytes == 0)
    }

    @Test(
        "A closed, refused or timed-out request releases its bytes",
        arguments: ["closed", "too large", "malformed", "timeout", "next request closed"]
    )
    func releases(end: String) throws {
        let bench = Self.bench(maxBufferedBytes: 1_000)
        let channel = try bench.connect()
        switch end {
        case "closed", "next request closed", "timeout":
            if end == "next request closed" {
                try channel.writeInbound(Self.head("Content-Length: 1"))
                try channel.writeInbound(Self.bytes(1))
            }
            try channel.writeInbound(Self.head("Content-Length: 600"))
            try channel.writeInbound(Self.bytes(500))
            #expect(bench.server.bodies.heldBytes == 500)
            if end == "timeout" {
                bench.eventLoop.advanceTime(by: .seconds(11))
                #expect(try channel.answers() == [408])
            } else {
                try channel.close().wait()
            }
        default:
            try channel.writeInbound(Self.head("Transfer-Encoding: chunked", path: "/small"))
            try channel.writeInbound(ByteBuffer(string: "50\r\n" + String(repeating: "c", count: 80) + "\r\n"))
            #expect(bench.server.bodies.heldBytes == 80)
            try channel.writeInbound(ByteBuffer(string: end == "malformed" ? "zz\r\n" : "50\r\n"))
            #expect(try channel.answers() == [end == "malformed" ? 400 : 413])
        }
        #expect(bench.server.bodies.heldBytes == 0)
    }

    @Test("A body of uncountedBodyBytes fits even if the budget is used up")
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
            while server.bodies.heldBytes < 100 { await Task.yield() }
            for (length, status) in [(20, 200), (21, 503)] {
                let other = try await RawConnection.open(port: port)
                let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: \(length)\r\n\r\n"
                other.offer(head + String(repeating: "x", count: length))
                #expect(RawResponse.parse(await other.textUntilClosed()).map(\.status) == [status])
            }
            #expect(server.bodies.heldBytes == 100)
            hold.yield()
            while server.bodies.heldBytes > 0 { await Task.yield() }
        }
    }

    @Test("A request's bytes count until its task ends, even if its client has disconnected")
    func cancelled() async throws {
        let (held, hold) = AsyncStream<Void>.makeStream()
        let (began, begin) = AsyncStream<Void>.makeStream()
        let (left, leave) = AsyncStream<Void>.makeStream()
        let responder = ClosureResponder { _ in
            begin.yield()
            await withTaskCancellationHandler {
                // Simulates an upstream that reacts late to the cancellation.
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
            #expect(server.bodies.heldBytes == 80)
            let second = try await RawConnection.open(port: port)
            second.offer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 21\r\n\r\n")
            #expect(RawResponse.parse(await second.textUntilClosed()).map(\.status) == [503])
            await first.close()
            for await _ in left { break }
            #expect(server.bodies.heldBytes == 80)
            hold.yield()
            // The task ends a little later on its loop.
            while server.bodies.heldBytes > 0 { await Task.yield() }
        }
    }
}
