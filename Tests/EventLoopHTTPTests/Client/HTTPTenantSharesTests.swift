import GatewayTestKit
import HTTPTypes
import NIOCore
import NIOHTTP2
import Testing

@testable import EventLoopHTTP

@Suite("Tenants' shares of a pool", .timeLimit(.minutes(10)))
struct HTTPTenantSharesTests {
    // MARK: The queue

    @Test("The queue serves tenants in turn, and each tenant's requests in order")
    func turns() {
        var queue = HTTPTenantQueue<String>()
        for name in ["a1", "a2", "a3", "b1", "c1", "b2"] {
            queue.append(name, of: Int(name.utf8.first ?? 0))
        }
        queue.remove(of: Int(UInt8(ascii: "a"))) { $0 == "a2" }
        var served: [String] = []
        while let (name, _) = queue.pop(of: { _ in true }) { served.append(name) }
        #expect(served == ["a1", "b1", "c1", "a3", "b2"])
        #expect(queue.isEmpty)
    }

    @Test("The queue skips a tenant that can't be served, which keeps its turn")
    func skips() {
        var queue = HTTPTenantQueue<String>()
        for (name, tenant) in [("a1", 1), ("b1", 2), ("b2", 2)] { queue.append(name, of: tenant) }
        #expect(queue.pop(of: { $0 != 1 })?.element == "b1")
        #expect(queue.pop(of: { _ in true })?.element == "a1")
        #expect(queue.pop(of: { _ in true }, where: { $0 != "b2" }) == nil)
        #expect(queue.count == 1)
    }

    @Test("The longest line gives up its last place to a line that stays shorter")
    func displaces() {
        var queue = HTTPTenantQueue<String>()
        for (name, tenant) in [("a1", 1), ("a2", 1), ("a3", 1), ("b1", 2)] { queue.append(name, of: tenant) }
        #expect(queue.displace(for: 1) == nil)
        #expect(queue.displace(for: 2) == "a3")
        #expect(queue.displace(for: 2) == nil)
        #expect(queue.displace(for: 3) == "a2")
        #expect(queue.count == 2)
    }

    @Test("A tenant's room is the number of places it can take one by one", arguments: 1...20)
    func room(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var shares = HTTPTenantShares()
        for _ in 0..<Int.random(in: 0...40, using: &random) { shares.take(1) }
        var free = Int.random(in: 1...40, using: &random)
        let room = shares.room(for: 1, free: free)
        var taken = 0
        while free > 0, shares.mayTake(1, free: free) {
            shares.take(1)
            (taken, free) = (taken + 1, free - 1)
        }
        #expect(room == taken)
        #expect(shares.room(for: 0, free: free) == free)
    }

    // MARK: Pools

    private static func request(_ path: String, of tenant: Int) -> HTTPClientRequest {
        var request = HTTPClientRequest(method: .get, path: path)
        request.tenant = tenant
        return request
    }

    /// Tenant 1 starts calls that hang; then the three calls of tenant 2 must succeed.
    private static func crowd(_ pool: HTTPClientPool, hanging: Int, until started: () async throws -> Void) async throws
    {
        try await withThrowingTaskGroup(of: HTTPClientError?.self) { group in
            for _ in 0..<hanging {
                group.addTask { try await pool.failedExchange(Self.request("/hang", of: 1)) }
            }
            try await started()
            for _ in 0..<3 {
                let answer = try await pool.execute(Self.request("/ok", of: 2), deadline: .now() + .seconds(600))
                #expect(answer.status == .ok)
            }
            await pool.shutdown()
            for try await error in group { #expect(error?.code == .shutDown) }
        }
    }

    @Test("A tenant whose calls hang leaves connections to others")
    func hangingConnections() async throws {
        let server = try await RawServer.start { _, request in
            request.hasPrefix("GET /hang") ? .nothing : .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        let pool = try server.pool { $0.maxConnectionsPerLoop = 32 }
        try await Self.crowd(pool, hanging: 60) { try await server.seen.wait { $0.requests.count >= 30 } }
        #expect(server.seen.current.accepted == 31)
        await server.stop()
    }

    @Test("A tenant whose calls hang leaves streams to others")
    func hangingStreams() async throws {
        let peer = try await HTTP2Peer.start(settings: [HTTP2Setting(parameter: .maxConcurrentStreams, value: 32)]) {
            $0.path == "/hang" ? .hold : .answer()
        }
        let pool = try peer.pool { $0.http2.maxConnectionsPerLoop = 1 }
        try await Self.crowd(pool, hanging: 60) { await peer.record.requested.wait(for: 30) }
        #expect(peer.record.requests.count == 33)
        await peer.stop()
    }
}
