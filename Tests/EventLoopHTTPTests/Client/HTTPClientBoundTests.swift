import GatewayTestKit
import HTTPTypes
import NIOCore
import Testing

@testable import EventLoopHTTP

/// The servers send more than the limits allow, or never finish a response.
@Suite("Limits of responses", .timeLimit(.minutes(10)))
struct AnswerBoundTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    @Test("A request's maxResponseBodyBytes limits its response in HTTP/1.1 and HTTP/2")
    func byRequest() async throws {
        let body = String(repeating: "x", count: 65_537)
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n"
        let server = try await RawServer.start { _, _ in .send(head + body) }
        let peer = try await HTTP2Peer.start { _ in .answer(body: body) }
        for pool in [try server.pool(), try peer.pool()] {
            #expect(try await pool.failedExchange().code == .responseTooLarge)
            #expect(try await pool.answer().body.readableBytes == 65_537)
        }
        #expect(peer.record.accepted.count == 1)
        await peer.stop()
        await server.stop()
    }

    @Test("Unfinished responses share a byte budget, and one origin may use half of it")
    func exclusiveSum() async throws {
        let begun = "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + String(repeating: "x", count: 900)
        let begin = HTTPClientRequest(method: .get, path: "/begin")
        let collecting = HTTPBodyBudget(limit: 4000)
        var origins: [(server: RawServer, pool: HTTPClientPool)] = []
        for _ in 0..<3 {
            let server = try await RawServer.start { _, request in
                request.hasPrefix("GET /begin") ? .send(begun) : .send(Self.ok)
            }
            origins.append((server, try server.pool { $0.collecting = collecting }))
        }
        let (first, second, third) = (origins[0].pool, origins[1].pool, origins[2].pool)
        try await withThrowingTaskGroup(of: HTTPClientError.self) { group in
            for _ in 0..<3 { group.addTask { try await first.failedExchange(begin) } }
            #expect(try await group.next()?.code == .responseTooLarge)
            for _ in 0..<3 { group.addTask { try await second.failedExchange(begin) } }
            #expect(try await group.next()?.code == .responseTooLarge)
            // The first two origins each hold two responses.
            #expect(try await third.failedExchange(begin).code == .responseTooLarge)
            let whole = try await first.answer()
            #expect(String(buffer: whole.body) == "ok")
            for origin in origins { await origin.pool.shutdown() }
        }
        #expect(collecting.heldBytes == 0)
        for origin in origins { await origin.server.stop() }
    }

    @Test("An HTTP/2 response beyond the shared byte budget ends its own stream only")
    func sharedSum() async throws {
        let peer = try await HTTP2Peer.start {
            $0.path == "/begin" ? .begin(body: String(repeating: "a", count: 1000)) : .answer(body: "ok")
        }
        let collecting = HTTPBodyBudget(limit: 5000)
        let pool = try peer.pool { $0.collecting = collecting }
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
}

@Suite("Connection limit shared by pools", .timeLimit(.minutes(10)))
struct ConnectionBoundTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    @Test("Pools share a connection limit, and a closed connection frees its place")
    func several() async throws {
        let server = try await RawServer.start { _, _ in .send(Self.ok) }
        let connections = HTTPConnectionBudget(limit: 1)
        let first = try server.pool { $0.connections = connections }
        let second = try server.pool { $0.connections = connections }
        try await first.expectSuccess()
        let error = try await second.failedExchange()
        #expect(error.code == .poolExhausted)
        #expect(!error.requestSent)
        // The open connection can still be used.
        try await first.expectSuccess()
        first.closeIdle()
        await connections.waitUntilEmpty()
        try await second.expectSuccess()
        #expect(server.seen.current.accepted == 2)
        await server.stop()
    }

    @Test("A failed connection attempt frees its place")
    func failedAttempt() async throws {
        let connections = HTTPConnectionBudget(limit: 1)
        try await ClosedPort.with { port in
            let pool = try HTTPClientPool.make("http://127.0.0.1:\(port)") { $0.connections = connections }
            for _ in 0..<2 {
                #expect(try await pool.failedExchange().code == .connectFailed)
            }
            await pool.shutdown()
        }
        #expect(connections.open == 0)
    }

    @Test("HTTP/2 connections count against the shared limit")
    func shared() async throws {
        let server = try await RawServer.start { _, _ in .send(Self.ok) }
        let peer = try await HTTP2Peer.start()
        let connections = HTTPConnectionBudget(limit: 1)
        let plain = try server.pool { $0.connections = connections }
        let shared = try peer.pool { $0.connections = connections }
        try await plain.expectSuccess()
        #expect(try await shared.failedExchange().code == .poolExhausted)
        plain.closeIdle()
        await connections.waitUntilEmpty()
        try await shared.expectSuccess()
        try await shared.expectSuccess()
        #expect(connections.open == 1)
        #expect(try await plain.failedExchange().code == .poolExhausted)
        await plain.shutdown()
        await shared.shutdown()
        await connections.waitUntilEmpty()
        await peer.stop()
        await server.stop()
    }
}
