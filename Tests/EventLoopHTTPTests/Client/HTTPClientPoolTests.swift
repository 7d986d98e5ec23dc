import GatewayTestKit
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import Testing

@testable import EventLoopHTTP

@Suite("HTTPClientPool", .timeLimit(.minutes(10)))
struct HTTPClientPoolTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    @Test("A request is written as HTTP/1.1, with its length and host")
    func writesRequest() async throws {
        let server = try await RawServer.start { _, request in
            .send("HTTP/1.1 200 OK\r\nContent-Length: \(request.utf8.count)\r\nX-A: b\r\n\r\n\(request)")
        }
        let pool = try server.pool()
        let request = HTTPClientRequest(
            method: .post,
            path: "/v1/p q?x\r\nEvil: y#z",
            headers: [.authorization: "Bearer t", .connection: "close", .contentLength: "9"],
            body: ByteBuffer(string: "{}")
        )
        let response = try await pool.execute(request, deadline: .now() + .seconds(600))
        #expect(response.status == .ok)
        #expect(response.fields[HTTPFieldKey(try #require(HTTPField.Name("x-a")))] == "b")
        #expect(
            String(buffer: response.body)
                == "POST /v1/p%20q?x%0D%0AEvil:%20y%23z HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n"
                + "Authorization: Bearer t\r\nContent-Length: 2\r\n\r\n{}"
        )
        await server.stop()
    }

    @Test("Sequential requests reuse one connection")
    func reuses() async throws {
        let server = try await RawServer.start { number, _ in
            .send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\(number)")
        }
        let pool = try server.pool()
        for _ in 0..<5 {
            let response = try await pool.answer()
            #expect(String(buffer: response.body) == "1")
        }
        #expect(server.seen.current.accepted == 1)
        await pool.shutdown()
        try await server.seen.wait { $0.closed >= 1 }
        await server.stop()
    }

    private static let framings: [(String, String, Int, String)] = [
        (
            "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: t\r\n\r\n",
            200, "abcde"
        ),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, ""),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", 304, ""),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, ""),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", 200, ""),
        (
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
            200, "a"
        ),
        ("GET", "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", 302, ""),
    ]

    @Test("Every response framing is read and leaves the connection reusable", arguments: Self.framings)
    func endsOfAnswers(method: String, answer: String, status: Int, body: String) async throws {
        let server = try await RawServer.start { _, _ in .send(answer) }
        let pool = try server.pool()
        let request = HTTPClientRequest(method: try #require(HTTPRequest.Method(method)), path: "/")
        for _ in 0..<2 {
            let response = try await pool.execute(request, deadline: .now() + .seconds(600))
            #expect(response.status.code == status)
            #expect(String(buffer: response.body) == body)
        }
        #expect(server.seen.current.accepted == 1)
        await server.stop()
    }

    @Test("A response that arrives byte by byte is read")
    func dripped() async throws {
        let answer =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        let server = try await RawServer.start { _, _ in .nothing }
        let pool = try server.pool()
        async let response = pool.answer()
        try await server.seen.wait { $0.requests.count >= 1 }
        for byte in answer.utf8 {
            server.push(String(decoding: [byte], as: UTF8.self))
        }
        #expect(String(buffer: try await response.body) == "abc")
        await server.stop()
    }

    private static let lastAnswers: [(RawServer.Reply, String)] = [
        (RawServer.Reply.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"), "ok"),
        (.send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"), "ok"),
        (.send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"), "ok"),
        (.send(ok + "surplus"), "ok"),
        (.send(ok + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"), "ok"),
        (.sendAndClose("HTTP/1.1 200 OK\r\n\r\nuntil the end"), "until the end"),
        (.sendAndClose("HTTP/1.0 200 OK\r\n\r\nuntil the end"), "until the end"),
    ]

    @Test("A connection is closed after a response with close, HTTP/1.0 or surplus bytes", arguments: Self.lastAnswers)
    func doesNotReuse(reply: RawServer.Reply, body: String) async throws {
        let server = try await RawServer.start { number, _ in number == 1 ? reply : .send(Self.ok) }
        let pool = try server.pool()
        let first = try await pool.answer()
        #expect(String(buffer: first.body) == body)
        try await server.seen.wait { $0.closed >= 1 }
        let second = try await pool.answer()
        #expect(String(buffer: second.body) == "ok")
        #expect(server.seen.current.accepted == 2)
        await server.stop()
    }

    @Test("An idle connection is closed if the peer closes it or sends bytes", arguments: [true, false])
    func dropsIdle(ends: Bool) async throws {
        let server = try await RawServer.start { _, _ in .send(Self.ok) }
        let pool = try server.pool()
        _ = try await pool.answer()
        if ends {
            server.halfClose()
        } else {
            server.push("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
        }
        try await server.seen.wait { $0.closed >= 1 }
        let second = try await pool.answer()
        #expect(String(buffer: second.body) == "ok")
        #expect(server.seen.current.accepted == 2)
        await server.stop()
    }

    @Test("An idle connection is closed after the idle timeout")
    func idleTimeout() async throws {
        let server = try await RawServer.start { _, _ in .send(Self.ok) }
        let pool = try server.pool { $0.idleTimeout = .milliseconds(30) }
        _ = try await pool.answer()
        try await server.seen.wait { $0.closed >= 1 }
        await server.stop()
    }

    private static let brokenAnswers: [(RawServer.Reply, HTTPClientError.Code)] = [
        (RawServer.Reply.close, HTTPClientError.Code.connectionClosed),
        (.sendAndClose("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"), .connectionClosed),
        (.sendAndClose("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"), .connectionClosed),
        (.sendAndClose("HTTP/1.1 200 OK\r\nConte"), .connectionClosed),
        (.send("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"), .responseTooLarge),
        (.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3E9\r\n"), .responseTooLarge),
        (.send("HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 1001)), .responseTooLarge),
        (.send("HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 40_000)), .responseTooLarge),
        (.send("HTTP/1.1 200 OK\r\n" + (0..<200).map { "X\($0): y\r\n" }.joined() + "\r\n"), .responseTooLarge),
        (.send("garbage\r\n\r\n"), .invalidResponse),
        (.send("HTTP/2.0 200 OK\r\n\r\n"), .invalidResponse),
        (.send("HTTP/1.1 999 X\r\n\r\n"), .invalidResponse),
        (.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), .invalidResponse),
        (.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok"), .invalidResponse),
        (
            .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            .invalidResponse
        ),
        (.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx"), .invalidResponse),
        (.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), .invalidResponse),
        (.send(String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 20)), .invalidResponse),
    ]

    @Test("A truncated, malformed or oversized response fails and closes its connection", arguments: Self.brokenAnswers)
    func refusesAnswers(reply: RawServer.Reply, code: HTTPClientError.Code) async throws {
        let server = try await RawServer.start { _, _ in reply }
        let pool = try server.pool { $0.maxResponseBodyBytes = 1000 }
        let error = try await pool.failedExchange()
        #expect(error.code == code)
        #expect(error.requestSent)
        try await server.seen.wait { $0.closed >= 1 }
        await server.stop()
    }

    @Test("A request to a hanging peer fails with deadlineExceeded and closes its connection")
    func hangs() async throws {
        let server = try await RawServer.start { _, _ in .nothing }
        let pool = try server.pool()
        let error = try await pool.failedExchange(within: .seconds(5))
        #expect(error.code == .deadlineExceeded)
        #expect(error.requestSent)
        try await server.seen.wait { $0.closed >= 1 }
        await server.stop()
    }

    @Test("A request past its deadline is not sent")
    func pastDeadline() async throws {
        let server = try await RawServer.start { _, _ in .send(Self.ok) }
        let pool = try server.pool()
        let error = try await pool.failedExchange(within: .seconds(-1))
        #expect(error.code == .deadlineExceeded)
        #expect(!error.requestSent)
        #expect(server.seen.current.accepted == 0)
        await server.stop()
    }

    @Test("A refused connection fails the request as not sent")
    func refused() async throws {
        try await ClosedPort.with { port in
            let pool = try HTTPClientPool.make("http://127.0.0.1:\(port)")
            let error = try await pool.failedExchange()
            #expect(error.code == .connectFailed)
            #expect(!error.requestSent)
            await pool.shutdown()
        }
    }

    @Test("Cancelling the caller ends the request and closes its connection")
    func cancels() async throws {
        let server = try await RawServer.start { _, _ in .nothing }
        let pool = try server.pool()
        let task = Task { try await pool.failedExchange() }
        try await server.seen.wait { $0.requests.count >= 1 }
        task.cancel()
        let error = try await task.value
        #expect(error.code == .cancelled)
        #expect(error.requestSent)
        try await server.seen.wait { $0.closed >= 1 }
        await server.stop()
    }

    @Test("A caller that is already cancelled sends nothing")
    func cancelledBefore() async throws {
        let server = try await RawServer.start { _, _ in .nothing }
        let pool = try server.pool()
        let gate = EventCounter()
        let task = Task {
            await gate.wait()
            return try await pool.failedExchange()
        }
        task.cancel()
        gate.increment()
        let error = try await task.value
        #expect(error.code == .cancelled)
        #expect(server.seen.current.requests.count == 0)
        await server.stop()
    }

    @Test("Of two requests that wait for a queue of one, at least one fails as not sent")
    func queues() async throws {
        let server = try await RawServer.start { _, request in
            request.hasPrefix("GET /hold") ? .nothing : .send(Self.ok)
        }
        let pool = try server.pool {
            $0.maxConnectionsPerLoop = 1
            $0.maxWaitersPerLoop = 1
        }
        async let held = pool.answer("/hold")
        try await server.seen.wait { $0.requests.count >= 1 }
        let waiting = Task { try await pool.answer("/wait") }
        // The second of these two requests finds the queue full.
        let request = HTTPClientRequest(method: .get, path: "/wait")
        let other = Task { try await pool.execute(request, deadline: .now() + .milliseconds(50)) }
        let otherError = await #expect(throws: HTTPClientError.self) { try await other.value }
        #expect([.poolExhausted, .deadlineExceeded].contains(otherError?.code))
        #expect(otherError?.requestSent == false)
        server.push(Self.ok)
        #expect(String(buffer: try await held.body) == "ok")
        if otherError?.code == .poolExhausted {
            #expect(String(buffer: try await waiting.value.body) == "ok")
        } else {
            _ = await waiting.result
        }
        #expect(server.seen.current.accepted == 1)
        await server.stop()
    }

    @Test("A waiting request is not sent after its deadline, even if its timer has not fired")
    func lateTurn() async throws {
        let server = try await RawServer.start { _, request in
            request.hasPrefix("GET /hold") ? .nothing : .send(Self.ok)
        }
        var configuration = HTTPClientConfiguration()
        configuration.maxConnectionsPerLoop = 1
        configuration.connectTimeout = .seconds(600)
        let core = HTTPClientCore(
            origin: try #require(HTTPOrigin("http://127.0.0.1:\(server.port)")),
            configuration: configuration,
            encryption: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
        let loop = HTTPClientLoop(eventLoop: eventLoop, core: core)
        func exchange(_ path: String, within amount: TimeAmount = .seconds(600)) -> HTTPClientExchange {
            let request = HTTPClientRequest(method: .get, path: path)
            return HTTPClientExchange(request: request, deadline: .now() + amount, eventLoop: eventLoop)
        }
        let (held, next) = (exchange("/hold"), exchange("/next"))
        async let answer: HTTPClientExchange.Outcome = withCheckedContinuation { loop.submit(held, $0) }
        try await server.seen.wait { $0.requests.count >= 1 }
        let late = exchange("/late", within: .milliseconds(100))
        let outcome: HTTPClientExchange.Outcome = await withCheckedContinuation { continuation in
            eventLoop.execute {
                loop.submit(late, continuation)
                // Simulates a paused process: the deadline passes, then bytes are read.
                while NIODeadline.now() <= late.deadline {}
                let pipeline = held.connection?.context?.channel.pipeline.syncOperations
                pipeline?.fireChannelRead(NIOAny(ByteBuffer(string: Self.ok)))
                pipeline?.fireChannelReadComplete()
            }
        }
        let error = #expect(throws: HTTPClientError.self) { try outcome.get() }
        #expect(error?.code == .deadlineExceeded)
        #expect(error?.requestSent == false)
        #expect(try await answer.get().status == .ok)
        // The connection is free again, and the server has not seen the late request.
        let last: HTTPClientExchange.Outcome = await withCheckedContinuation { loop.submit(next, $0) }
        #expect(try last.get().status == .ok)
        #expect(server.seen.current.requests.count == 2)
        #expect(server.seen.current.accepted == 1)
        await loop.shutDown()
        await server.stop()
    }

    @Test("A waiting request gets a new connection after the only one is closed")
    func waiterOpensConnection() async throws {
        let server = try await RawServer.start { number, _ in number == 1 ? .nothing : .send(Self.ok) }
        let pool = try server.pool { $0.maxConnectionsPerLoop = 1 }
        let held = Task { try await pool.failedExchange() }
        try await server.seen.wait { $0.requests.count >= 1 }
        let waiting = Task { try await pool.answer() }
        held.cancel()
        #expect(try await held.value.code == .cancelled)
        #expect(String(buffer: try await waiting.value.body) == "ok")
        await server.stop()
    }

    @Test("closeIdle closes idle connections, lets requests finish, and leaves the pool usable")
    func closesIdle() async throws {
        let server = try await RawServer.start { _, request in
            request.hasPrefix("GET /hold") ? .nothing : .send(Self.ok)
        }
        let pool = try server.pool()
        async let held = pool.answer("/hold")
        try await server.seen.wait { $0.requests.count >= 1 }
        _ = try await pool.answer()
        pool.closeIdle()
        try await server.seen.wait { $0.closed >= 1 }
        #expect(server.seen.current.accepted == 2)
        server.push(Self.ok)
        #expect(String(buffer: try await held.body) == "ok")
        #expect(String(buffer: try await pool.answer().body) == "ok")
        await server.stop()
    }

    @Test("Shutdown fails running and later requests and closes the connection")
    func shutsDown() async throws {
        let server = try await RawServer.start { _, _ in .nothing }
        let pool = try server.pool()
        let running = Task { try await pool.failedExchange() }
        try await server.seen.wait { $0.requests.count >= 1 }
        await pool.shutdown()
        #expect(try await running.value.code == .shutDown)
        let later = try await pool.failedExchange()
        #expect(later.code == .shutDown)
        #expect(!later.requestSent)
        try await server.seen.wait { $0.closed >= 1 }
        await server.stop()
    }

    @Test("A response that precedes the end of a large request is delivered, and the connection closes")
    func earlyAnswer() async throws {
        let server = try await RawServer.start(answersEarly: true) { _, _ in
            .send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        }
        let pool = try server.pool()
        let response = try await pool.answer(body: ByteBuffer(repeating: 0x62, count: 64 * 1024 * 1024))
        #expect(response.status.code == 413)
        try await server.readOn()
        try await server.seen.wait { $0.closed >= 1 }
        await server.stop()
    }

    @Test("A request from a responder uses the responder's loop and resumes on it")
    func staysOnLoop() async throws {
        let upstream = try await RawServer.start { _, _ in .send(Self.ok) }
        let origin = "http://127.0.0.1:\(upstream.port)"
        let pool = try HTTPClientPool.make(origin, on: MultiThreadedEventLoopGroup.singleton)
        let responder = ClosureResponder { request in
            let before = request.connection.eventLoop.inEventLoop
            let response = try? await pool.answer()
            let after = request.connection.eventLoop.inEventLoop
            return HTTPServerResponse(
                status: response?.status ?? .badGateway,
                body: ByteBuffer(string: "\(before) \(after)")
            )
        }
        try await withServer(responder) { _, port in
            let connection = try await RawConnection.open(port: port)
            for number in 1...3 {
                try await connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(await connection.responses(number).last?.body == "true true")
            }
        }
        #expect(upstream.seen.current.accepted == 1)
        await pool.shutdown()
        await upstream.stop()
    }
}
