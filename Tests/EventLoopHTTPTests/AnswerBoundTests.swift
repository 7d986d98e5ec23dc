import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import Testing

@testable import EventLoopHTTP

/// How much of answers a pool collects, from servers that send more than they should or never end.
@Suite("Bounds of answers", .timeLimit(.minutes(10)))
struct AnswerBoundTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private static let far = TimeAmount.seconds(600)

    private static func plainPool(
        port: Int,
        configure: (inout HTTPClientConfiguration) -> Void = { _ in }
    ) throws -> HTTPClientPool {
        var configuration = HTTPClientConfiguration()
        configuration.connectTimeout = .seconds(600)
        configure(&configuration)
        return try HTTPClientPool(
            origin: try #require(HTTPOrigin("http://127.0.0.1:\(port)")),
            configuration: configuration,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton.next(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    private static func get(_ path: String = "/") -> HTTPClientRequest {
        HTTPClientRequest(method: .get, path: path)
    }

    @Test("An answer is as long as its request allows at most")
    func exclusiveByRequest() async throws {
        let server = try await RawServer.start { _, _ in
            .send("HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n" + String(repeating: "x", count: 65_537))
        }
        let pool = try Self.plainPool(port: server.port)
        var request = Self.get()
        #expect(try await pool.failedExchange(request).code == .responseTooLarge)
        request.maxResponseBodyBytes = 65_537
        #expect(try await pool.execute(request, deadline: .now() + Self.far).body.readableBytes == 65_537)
        await pool.shutdown()
        await server.stop()
    }

    @Test("Answers that are never finished are held up to a sum, half of it for one origin")
    func exclusiveSum() async throws {
        let begun = "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + String(repeating: "x", count: 900)
        let collecting = HTTPBodyBudget(limit: 4000)
        var origins: [(server: RawServer, pool: HTTPClientPool)] = []
        for _ in 0..<3 {
            let server = try await RawServer.start { _, request in
                request.hasPrefix("GET /begin") ? .send(begun) : .send(Self.ok)
            }
            origins.append((server, try Self.plainPool(port: server.port) { $0.collecting = collecting }))
        }
        let (first, second, third) = (origins[0].pool, origins[1].pool, origins[2].pool)
        try await withThrowingTaskGroup(of: HTTPClientError.self) { group in
            for _ in 0..<3 { group.addTask { try await first.failedExchange(Self.get("/begin")) } }
            #expect(try await group.next()?.code == .responseTooLarge)
            for _ in 0..<3 { group.addTask { try await second.failedExchange(Self.get("/begin")) } }
            #expect(try await group.next()?.code == .responseTooLarge)
            // Two of each are held.
            #expect(try await third.failedExchange(Self.get("/begin")).code == .responseTooLarge)
            let whole = try await first.execute(Self.get(), deadline: .now() + Self.far)
            #expect(String(buffer: whole.body) == "ok")
            for origin in origins { await origin.pool.shutdown() }
        }
        #expect(collecting.heldBytes == 0)
        for origin in origins { await origin.server.stop() }
    }

    @Test("Answers that are never finished are held up to a sum, and what exceeds it ends its stream and nothing else")
    func sharedSum() async throws {
        let peer = try await HTTP2Peer.start {
            $0.path == "/begin" ? .begin(body: String(repeating: "a", count: 1000)) : .answer(body: "ok")
        }
        let collecting = HTTPBodyBudget(limit: 5000)
        let pool = try HTTPClientPool.make(port: peer.port) { $0.collecting = collecting }
        try await withThrowingTaskGroup(of: HTTPClientError.self) { group in
            for _ in 0..<3 {
                group.addTask { try await pool.failedExchange(HTTPClientRequest(method: .get, path: "/begin")) }
            }
            let error = try #require(try await group.next())
            #expect(error.code == .responseTooLarge)
            #expect(String(buffer: try await pool.answer().body) == "ok")
            #expect(peer.record.accepted.count == 1)
            await pool.shutdown()
        }
        #expect(collecting.heldBytes == 0)
        await peer.stop()
    }

    @Test("A stream's answer is as long as its request allows at most")
    func sharedByRequest() async throws {
        let peer = try await HTTP2Peer.start { _ in .answer(body: String(repeating: "a", count: 100_000)) }
        let pool = try HTTPClientPool.make(port: peer.port)
        let error = try await pool.failedExchange()
        #expect(error.code == .responseTooLarge)
        #expect(try await pool.answer().body.readableBytes == 100_000)
        #expect(peer.record.accepted.count == 1)
        await pool.shutdown()
        await peer.stop()
    }
}
