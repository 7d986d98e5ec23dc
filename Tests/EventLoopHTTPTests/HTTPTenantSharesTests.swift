import GatewayTestKit
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP2
import NIOPosix
import Testing

@testable import EventLoopHTTP

/// How tenants share a pool.
@Suite("Tenants' shares of a pool", .timeLimit(.minutes(10)))
struct HTTPTenantSharesTests {
    private final class Connection {}
    private final class Waiter {
        let tenant: Int
        init(_ tenant: Int) { self.tenant = tenant }
    }
    private typealias Exclusive = HTTPPoolState<Connection, Waiter>
    private typealias Shared = HTTP2PoolState<Connection, Waiter>

    // MARK: The queue

    @Test("Those that wait are served by turns of their tenants, each tenant's in order")
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

    @Test("A tenant that may not be served keeps its turn and holds up nobody")
    func skips() {
        var queue = HTTPTenantQueue<String>()
        for (name, tenant) in [("a1", 1), ("b1", 2), ("b2", 2)] { queue.append(name, of: tenant) }
        #expect(queue.pop(of: { $0 != 1 })?.element == "b1")
        #expect(queue.pop(of: { _ in true })?.element == "a1")
        #expect(queue.pop(of: { _ in true }, where: { $0 != "b2" }) == nil)
        #expect(queue.count == 1)
    }

    @Test("In a full queue the longest line gives up its last place, but not to a line that would be as long")
    func displaces() {
        var queue = HTTPTenantQueue<String>()
        for (name, tenant) in [("a1", 1), ("a2", 1), ("a3", 1), ("b1", 2)] { queue.append(name, of: tenant) }
        #expect(queue.displace(for: 1) == nil)
        #expect(queue.displace(for: 2) == "a3")
        #expect(queue.displace(for: 2) == nil)
        #expect(queue.displace(for: 3) == "a2")
        #expect(queue.count == 2)
    }

    // MARK: The states

    @Test("A tenant alone leaves a sixteenth of the connections to others, who find them at once")
    func reserve() {
        var state = Exclusive(maxConnections: 64, maxWaiters: 100)
        for number in 1...64 {
            switch state.checkOut(for: Waiter(1), of: 1) {
            case .place: #expect(number <= 60)
            case .wait: #expect(number > 60)
            case .exhausted: Issue.record("The queue has room.")
            }
        }
        guard case .place(.connect) = state.checkOut(for: Waiter(2), of: 2) else {
            Issue.record("There is a place for another tenant.")
            return
        }
        #expect(state.slots == 61)
    }

    @Test("A tenant alone leaves a sixteenth of the streams to others, who find them at once")
    func streamReserve() {
        var state = Shared(maxConnections: 2, maxWaiters: 100)
        let connections = [Connection(), Connection()]
        for connection in connections { state.adopt(connection, streams: 32) }
        var started = 0
        for _ in 1...64 {
            if case .start = state.admit(Waiter(1), of: 1) { started += 1 }
        }
        #expect(started == 60)
        guard case .start = state.admit(Waiter(2), of: 2) else {
            Issue.record("There is a stream for another tenant.")
            return
        }
        // What a lost connection carried counts no longer.
        state.retire(connections[0], carrying: Array(repeating: 1, count: 32))
        var served = 0
        while state.next() != nil { served += 1 }
        #expect(served == 3)
        for _ in 0..<28 { state.streamEnded(on: connections[1], of: 1) }
        while state.next() != nil { served += 1 }
        #expect(served == 4)
    }

    @Test("Two tenants that want all there is get nearly half each, whoever was there first")
    func halves() {
        var state = Exclusive(maxConnections: 64, maxWaiters: 1000)
        var taken: [Int: [Connection]] = [1: [], 2: []]
        for tenant in [1, 2] {
            for _ in 0..<400 {
                if case .place = state.checkOut(for: Waiter(tenant), of: tenant) { taken[tenant]?.append(Connection()) }
            }
        }
        #expect(taken[1]?.count == 60)
        for _ in 0..<200 {
            // Calls of both take equally long: the one with more in flight ends one sooner.
            let tenant = (taken[1]?.count ?? 0) >= (taken[2]?.count ?? 0) ? 1 : 2
            guard let connection = taken[tenant]?.popLast() else { continue }
            state.checkIn(connection, from: tenant)
            while let (waiter, place) = state.next() {
                guard case .reuse(let reused) = place else {
                    taken[waiter.tenant]?.append(Connection())
                    continue
                }
                taken[waiter.tenant]?.append(reused)
            }
        }
        #expect((28...34).contains(taken[1]?.count ?? 0))
        #expect((28...34).contains(taken[2]?.count ?? 0))
    }

    @Test("Whatever comes and goes, everybody is served in the end and no bound is exceeded", arguments: 1...20)
    func randomTraffic(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let limit = Int.random(in: 1...40, using: &random)
        var state = Exclusive(maxConnections: limit, maxWaiters: 50)
        var running: [(tenant: Int, connection: Connection)] = []
        var waiting = 0
        func serve() {
            while let (waiter, place) = state.next() {
                waiting -= 1
                switch place {
                case .reuse(let connection): running.append((waiter.tenant, connection))
                case .connect: running.append((waiter.tenant, Connection()))
                }
            }
        }
        for step in 0..<4_000 {
            if step < 3_000, Bool.random(using: &random) || running.isEmpty {
                let tenant = Int.random(in: 0...4, using: &random)
                switch state.checkOut(for: Waiter(tenant), of: tenant) {
                case .place(.reuse(let connection)): running.append((tenant, connection))
                case .place(.connect): running.append((tenant, Connection()))
                case .wait(let displaced): waiting += displaced == nil ? 1 : 0
                case .exhausted: break
                }
            } else if !running.isEmpty {
                let (tenant, connection) = running.remove(at: Int.random(in: running.indices, using: &random))
                if Bool.random(using: &random) {
                    state.checkIn(connection, from: tenant)
                } else {
                    state.freeSlot(of: connection, from: tenant)
                }
                serve()
            }
            #expect(running.count <= limit)
            #expect(state.slots <= limit)
            #expect(state.waiterCount == waiting)
        }
        #expect(running.isEmpty)
        #expect(waiting == 0)
    }

    // MARK: Pools

    private static func pool(_ origin: String, configure: (inout HTTPClientConfiguration) -> Void) throws
        -> HTTPClientPool
    {
        var configuration = HTTPClientConfiguration(tls: try TestCertificate.client())
        configuration.connectTimeout = .seconds(600)
        configuration.http2.pingTimeout = .seconds(600)
        configure(&configuration)
        return try HTTPClientPool(
            origin: try #require(HTTPOrigin(origin)),
            configuration: configuration,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton.next(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    private static func request(_ path: String, of tenant: Int) -> HTTPClientRequest {
        var request = HTTPClientRequest(method: .get, path: path)
        request.tenant = tenant
        return request
    }

    /// Has a tenant make as many calls that hang as it likes, and another one call that is answered.
    private static func crowd(_ pool: HTTPClientPool, hanging: Int, until started: () async -> Void) async throws {
        try await withThrowingTaskGroup(of: HTTPClientError?.self) { group in
            for _ in 0..<hanging {
                group.addTask { try await pool.failedExchange(Self.request("/hang", of: 1)) }
            }
            await started()
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
        let pool = try Self.pool("http://127.0.0.1:\(server.port)") { $0.maxConnectionsPerLoop = 32 }
        try await Self.crowd(pool, hanging: 60) { await server.requests.wait(for: 30) }
        #expect(server.accepted.count == 31)
        await server.stop()
    }

    @Test("A tenant whose calls hang leaves streams to others")
    func hangingStreams() async throws {
        let peer = try await HTTP2Peer.start(settings: [HTTP2Setting(parameter: .maxConcurrentStreams, value: 32)]) {
            $0.path == "/hang" ? .hold : .answer()
        }
        let pool = try Self.pool("https://localhost:\(peer.port)") { $0.http2.maxConnectionsPerLoop = 1 }
        try await Self.crowd(pool, hanging: 60) { await peer.record.requested.wait(for: 30) }
        #expect(peer.record.requests.count == 33)
        await peer.stop()
    }
}
