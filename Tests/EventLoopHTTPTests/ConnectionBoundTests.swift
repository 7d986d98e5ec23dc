import GatewayTestKit
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import Testing

@testable import EventLoopHTTP

/// How many connections pools may have together.
@Suite("Bound of connections", .timeLimit(.minutes(10)))
struct ConnectionBoundTests {
    private static func pool(port: Int, _ connections: HTTPConnectionBudget) throws -> HTTPClientPool {
        var configuration = HTTPClientConfiguration()
        configuration.connectTimeout = .seconds(600)
        configuration.connections = connections
        return try HTTPClientPool(
            origin: try #require(HTTPOrigin("http://127.0.0.1:\(port)")),
            configuration: configuration,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton.next(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    @Test("Pools of several servers have no more connections than may be, and what has ended counts no longer")
    func several() async throws {
        let server = try await RawServer.start { _, _ in .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }
        let connections = HTTPConnectionBudget(limit: 1)
        let first = try Self.pool(port: server.port, connections)
        let second = try Self.pool(port: server.port, connections)
        try await first.expectSuccess()
        let error = try await second.failedExchange()
        #expect(error.code == .poolExhausted)
        #expect(!error.requestSent)
        // One that is there already serves on.
        try await first.expectSuccess()
        first.closeIdle()
        await connections.waitUntilEmpty()
        try await second.expectSuccess()
        #expect(server.accepted.count == 2)
        await first.shutdown()
        await second.shutdown()
        await server.stop()
    }

    @Test("An attempt to connect that fails counts no longer")
    func failedAttempt() async throws {
        let connections = HTTPConnectionBudget(limit: 1)
        try await ClosedPort.with { port in
            let pool = try Self.pool(port: port, connections)
            for _ in 0..<2 {
                #expect(try await pool.failedExchange().code == .connectFailed)
            }
            await pool.shutdown()
        }
        #expect(connections.open == 0)
    }

    @Test("Connections that are shared count as well")
    func shared() async throws {
        let server = try await RawServer.start { _, _ in .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }
        let peer = try await HTTP2Peer.start()
        let connections = HTTPConnectionBudget(limit: 1)
        let plain = try Self.pool(port: server.port, connections)
        let shared = try HTTPClientPool.make(port: peer.port) { $0.connections = connections }
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
