import EventLoopHTTP
import GatewayTestKit
import HTTPTypes
import NIOCore
import NIOPosix
import Testing

@Suite("HTTPServer", .timeLimit(.minutes(10)))
struct HTTPServerTests {
    @Test("A connection serves one request after another")
    func keepAlive() async throws {
        try await withConnection(EchoResponder()) { connection in
            for number in 1...3 {
                try await connection.send("POST /\(number) HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
                let responses = await connection.responses(number)
                #expect(responses.last?.body == "POST /\(number) hi")
                #expect(responses.last?.fields["connection"] == nil)
                #expect(responses.last?.fields["content-type"] == "text/plain")
            }
        }
    }

    @Test("Pipelined requests are answered in order, one at a time")
    func pipelining() async throws {
        let running = EventCounter()
        let responder = ClosureResponder { request in
            let path = request.head.path
            let before = running.count
            if path == "/1" {
                for _ in 0..<50 { await Task.yield() }
            }
            // No other request ended while this one ran.
            let alone = running.count == before
            running.increment()
            return HTTPServerResponse(status: .ok, body: ByteBuffer(string: "\(path) \(alone)"))
        }
        try await withConnection(responder) { connection in
            let requests = (1...20)
                .map { number in
                    number % 2 == 0
                        ? "GET /\(number) HTTP/1.1\r\nHost: a\r\n\r\n"
                        : "POST /\(number) HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
                }
            try await connection.send(requests.joined())
            let bodies = await connection.responses(20).map(\.body)
            #expect(bodies == (1...20).map { "/\($0) true" })
        }
    }

    @Test("Pipelined requests are all answered, even if they exceed the buffer")
    func longPipeline() async throws {
        let responder = EchoResponder()
        try await withConnection(responder) { connection in
            let count = 200
            let body = String(repeating: "b", count: 10_000)
            let request = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n\(body)"
            connection.offer(String(repeating: request, count: count))
            #expect(await connection.responses(count).count == count)
            #expect(responder.paths.count == count)
        }
    }

    @Test("A chunked body that arrives byte by byte is read completely")
    func chunkedBody() async throws {
        try await withConnection(EchoResponder()) { connection in
            let request =
                "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
                + "4;name=value\r\nWiki\r\n6\r\npedia \r\nD\r\nin\r\n\r\nchunks.\r\n0\r\nTrailer: t\r\n\r\n"
            for byte in request.utf8 {
                connection.offer([byte])
            }
            try await connection.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
            let responses = await connection.responses(2)
            #expect(responses.map(\.body) == ["POST /c Wikipedia in\r\n\r\nchunks.", "GET /next "])
        }
    }

    @Test("HEAD gets the length and no body, 204 and 304 get neither")
    func bodiless() async throws {
        let responder = ClosureResponder { request in
            switch request.head.path {
            case "/204": HTTPServerResponse(status: .noContent, body: ByteBuffer(string: "x"))
            case "/304": HTTPServerResponse(status: .notModified, body: ByteBuffer(string: "x"))
            case "/100": HTTPServerResponse(status: .init(code: 100))
            default: HTTPServerResponse(status: .ok, body: ByteBuffer(string: "hello"))
            }
        }
        try await withConnection(responder) { connection in
            try await connection.send(
                "HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET /204 HTTP/1.1\r\nHost: a\r\n\r\nGET /304 HTTP/1.1\r\nHost: a\r\n\r\n"
                    + "GET /100 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            )
            let responses = RawResponse.parse(await connection.textUntilClosed(), toHead: true)
            #expect(responses.map(\.status) == [200, 204, 304, 500])
            #expect(responses.map { $0.fields["content-length"] } == ["5", nil, nil, "0"])
        }
    }

    @Test(
        "A numeric status is sent with its standard reason phrase",
        arguments: [
            (200, "200 OK"), (418, "418 "), (404, "404 Not Found"), (500, "500 Internal Server Error"),
            (504, "504 Gateway Timeout"), (599, "599 "),
        ]
    )
    func reasonPhrases(code: Int, text: String) async throws {
        let responder = ClosureResponder { _ in HTTPServerResponse(status: .init(code: code)) }
        try await withConnection(responder) { connection in
            try await connection.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(await connection.textUntilClosed().hasPrefix("HTTP/1.1 \(text)\r\n"))
        }
    }

    @Test(
        "The connection closes after a response if the client or the responder asks for it",
        arguments: [
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "close"),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\n\r\n", "close"),
            ("GET / HTTP/1.0\r\n\r\n", "close"),
            ("GET /close HTTP/1.1\r\nHost: a\r\n\r\n", "close"),
        ]
    )
    func closes(request: String, connectionField: String) async throws {
        let responder = ClosureResponder { request in
            HTTPServerResponse(status: .ok, closesConnection: request.head.path == "/close")
        }
        try await withConnection(responder) { connection in
            try await connection.send(request + "GET /ignored HTTP/1.1\r\nHost: a\r\n\r\n")
            let responses = RawResponse.parse(await connection.textUntilClosed())
            #expect(responses.map(\.status) == [200])
            #expect(responses.first?.fields["connection"] == connectionField)
        }
    }

    @Test(
        "An offered upgrade is ignored, and the connection stays HTTP/1.1",
        arguments: [
            "Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13", "Upgrade: HTTP/9.9, TLS/1.0",
        ]
    )
    func ignoresUpgrades(fields: String) async throws {
        let responder = EchoResponder()
        try await withConnection(responder) { connection in
            let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            try await connection.send("GET /1 HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n")
            let first = try #require(await connection.responses(1).first)
            #expect(first.status == 200)
            #expect(first.fields["connection"] == nil)
            #expect(first.fields["upgrade"] == nil)
            // The HTTP/2 preface is read as an HTTP/1.1 request and refused.
            try await connection.send("POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok\(preface)")
            #expect(RawResponse.parse(await connection.textUntilClosed()).map(\.status) == [200, 200, 400])
            #expect(responder.paths == ["/1", "/2"])
        }
    }

    @Test("White space around a length or a coding is ignored", arguments: ["\t5", "5\t", " \t 5 \t "])
    func whiteSpaceAroundValues(length: String) async throws {
        try await withConnection(EchoResponder()) { connection in
            try await connection.send("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length:\(length)\r\n\r\nhello")
            let coding = length.replacing("5", with: "chunked")
            try await connection.send("POST /2 HTTP/1.1\r\nHost:\ta\t\r\nTransfer-Encoding:\(coding)\r\n\r\n")
            try await connection.send("2\r\nhi\r\n0\r\n\r\n")
            #expect(await connection.responses(2).map(\.body) == ["POST /1 hello", "POST /2 hi"])
        }
    }

    @Test("A client that waits for 100 gets only the refusal of its head or body length")
    func expectContinueRefused() async throws {
        let heads = [
            ("Expect: 100-continue\r\nContent-Length: 1, 1", 400),
            ("Expect: 100-continue, x\r\nContent-Length: 1", 417),
            ("Expect: 100-continue\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", 400),
            ("Expect: 100-continue\r\nTransfer-Encoding: gzip", 501),
            ("Expect: 100-continue\r\nContent-Length: 999999", 413),
        ]
        try await withServer(EchoResponder()) { _, port in
            for (fields, status) in heads {
                let connection = try await RawConnection.open(port: port)
                connection.offer("POST /e HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n")
                let text = await connection.textUntilClosed()
                #expect(RawResponse.parse(text).map(\.status) == [status])
                #expect(!text.contains("100 Continue"))
            }
        }
    }

    @Test("An HTTP/1.0 connection stays open on request, and the response confirms it")
    func http10KeepAlive() async throws {
        try await withConnection(EchoResponder()) { connection in
            try await connection.send("GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            #expect(await connection.responses(1).first?.fields["connection"] == "keep-alive")
            try await connection.send("GET /2 HTTP/1.0\r\n\r\n")
            #expect(RawResponse.parse(await connection.textUntilClosed()).count == 2)
        }
    }

    @Test(
        "The request target is reduced to its path and query",
        arguments: [
            ("GET /a/b?c=d", "/a/b?c=d"), ("GET http://A.example:80/x?y", "/x?y"), ("GET http://a.example:80", "/"),
            ("GET HTTP://a.example:80?q", "/?q"), ("OPTIONS *", "*"), ("OPTIONS http://a.example:80", "*"),
            ("GET //b/x", "//b/x"),
        ]
    )
    func targets(start: String, path: String) async throws {
        let responder = ClosureResponder { request in
            let text = "\(request.head.path) \(request.head.authority ?? "")"
            return HTTPServerResponse(status: .ok, body: ByteBuffer(string: text))
        }
        try await withConnection(responder) { connection in
            try await connection.send("\(start) HTTP/1.1\r\nHost: a.example:80\r\n\r\n")
            #expect(await connection.responses(1).first?.body == "\(path) a.example:80")
        }
    }

    @Test("A client that waits for 100 gets it before it sends the body")
    func expectContinue() async throws {
        try await withConnection(EchoResponder()) { connection in
            try await connection.send(
                "POST /e HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n"
            )
            #expect(await connection.text(containing: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
            try await connection.send("hi")
            #expect(await connection.responses(2).map(\.body) == ["", "POST /e hi"])
        }
    }

    @Test("The responder can't set framing fields or inject lines")
    func ownsFraming() async throws {
        let responder = ClosureResponder { _ in
            HTTPServerResponse(
                status: .ok,
                headers: [
                    .contentLength: "99", .transferEncoding: "chunked", .connection: "close", .server: "a\r\nEvil: b",
                ],
                body: ByteBuffer(string: "body")
            )
        }
        try await withConnection(responder) { connection in
            try await connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
            let responses = await connection.responses(2)
            #expect(responses.map(\.body) == ["body", "body"])
            #expect(responses.first?.fields["transfer-encoding"] == nil)
            #expect(responses.first?.fields["evil"] == nil)
        }
    }

    @Test("A large response arrives completely")
    func largeAnswer() async throws {
        let responder = ClosureResponder { _ in
            HTTPServerResponse(status: .ok, body: ByteBuffer(repeating: 0x62, count: 5_000_000))
        }
        try await withConnection(responder) { connection in
            try await connection.send(
                "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            )
            let responses = RawResponse.parse(await connection.textUntilClosed())
            #expect(responses.map(\.body.utf8.count) == [5_000_000, 5_000_000])
        }
    }

    @Test("The request's task stays on the connection's event loop")
    func staysOnLoop() async throws {
        let responder = ClosureResponder { request in
            func isHome() -> Bool { request.connection.eventLoop.inEventLoop }
            var wasHome = isHome()
            await Task.yield()
            wasHome = wasHome && isHome()
            wasHome =
                await withTaskGroup(of: Bool.self) { group in
                    group.addTask { isHome() }
                    return await group.next() ?? false
                } && wasHome && isHome()
            return HTTPServerResponse(
                status: .ok,
                body: ByteBuffer(string: "\(wasHome) \(request.connection.remoteAddress ?? "")")
            )
        }
        try await withConnection(responder) { connection in
            try await connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(await connection.responses(1).first?.body == "true 127.0.0.1")
        }
    }

    /// A responder that hangs until its task is cancelled, with counters of requests and cancellations.
    private static func hangingResponder() -> (ClosureResponder, started: EventCounter, cancelled: EventCounter) {
        let started = EventCounter()
        let cancelled = EventCounter()
        let responder = ClosureResponder { _ in
            await withTaskCancellationHandler {
                started.increment()
                await cancelled.wait()
            } onCancel: {
                cancelled.increment()
            }
            return HTTPServerResponse(status: .ok)
        }
        return (responder, started, cancelled)
    }

    @Test("The request's task is cancelled when the connection closes")
    func cancels() async throws {
        let (responder, started, cancelled) = Self.hangingResponder()
        try await withConnection(responder) { connection in
            try await connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await started.wait()
            await connection.close()
            await cancelled.wait()
        }
    }

    @Test("A draining server answers and then closes each connection")
    func drains() async throws {
        try await withServer(EchoResponder()) { server, port in
            let old = try await RawConnection.open(port: port)
            try await old.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(await old.responses(1).first?.fields["connection"] == nil)
            server.beginDraining()
            try await old.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(RawResponse.parse(await old.textUntilClosed()).last?.fields["connection"] == "close")
            let new = try await RawConnection.open(port: port)
            try await new.send("GET /3 HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(RawResponse.parse(await new.textUntilClosed()).map(\.status) == [200])
        }
    }

    @Test("Shutting down closes idle connections at once and waits for running requests")
    func shutsDown() async throws {
        let started = EventCounter()
        let proceed = EventCounter()
        let late = EventCounter()
        let responder = ClosureResponder { request in
            switch request.head.path {
            case "/slow":
                started.increment()
                await proceed.wait()
            case "/late":
                late.increment()
            default:
                break
            }
            return HTTPServerResponse(status: .ok)
        }
        try await withServer(responder) { server, port in
            let idle = try await RawConnection.open(port: port)
            try await idle.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = await idle.responses(1)
            let busy = try await RawConnection.open(port: port)
            try await busy.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            await started.wait()
            async let stopped: Void = server.shutdown(grace: .seconds(600))
            #expect(RawResponse.parse(await idle.textUntilClosed()).count == 1)
            // The port may belong to another test by now.
            if let stranger = try? await RawConnection.open(port: port) {
                try? await stranger.send("GET /late HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                _ = await stranger.textUntilClosed()
            }
            #expect(late.count == 0)
            proceed.increment()
            #expect(RawResponse.parse(await busy.textUntilClosed()).map(\.status) == [200])
            await stopped
            #expect(server.openConnections == 0)
        }
    }

    @Test("A request that outlasts the grace period is cancelled, and its connection closes")
    func graceExpires() async throws {
        let (responder, started, cancelled) = Self.hangingResponder()
        try await withServer(responder) { server, port in
            let connection = try await RawConnection.open(port: port)
            try await connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await started.wait()
            await server.shutdown(grace: .milliseconds(20))
            await cancelled.wait()
            #expect(await connection.textUntilClosed() == "")
        }
    }
}
