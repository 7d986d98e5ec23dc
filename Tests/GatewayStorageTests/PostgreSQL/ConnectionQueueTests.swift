import GatewayCore
import MetricsTestKit
import Testing

@testable import GatewayStorage

struct ConnectionQueueTests {
    private func queue(_ connections: Int, timeout: Duration = .seconds(60)) -> ConnectionQueue {
        ConnectionQueue(connections: connections, timeout: timeout)
    }

    @Test("A connection has one holder, and the one returned last is taken first")
    func takes() async throws {
        let queue = self.queue(4)
        var taken: [Int] = []
        for _ in 0..<4 { taken.append(try await queue.take(.call)) }
        #expect(Set(taken) == Set(0..<4))
        queue.giveBack(taken[2], .call)
        queue.giveBack(taken[1], .call)
        #expect(try await queue.take(.call) == taken[1])
        #expect(try await queue.take(.call) == taken[2])
    }

    @Test("Scans leave connections for calls", arguments: [(4, 1), (8, 3), (100, 3)])
    func scans(connections: Int, scans: Int) async throws {
        let queue = self.queue(connections, timeout: .zero)
        var taken: [Int] = []
        for _ in 0..<scans { taken.append(try await queue.take(.scan)) }
        await expectError(.storeUnavailable, "in use") { try await queue.take(.scan) }
        for _ in scans..<connections { taken.append(try await queue.take(.call)) }
        #expect(Set(taken).count == connections)
        await expectError(.storeUnavailable, "in use") { try await queue.take(.call) }
        queue.giveBack(taken[0], .scan)
        #expect(try await queue.take(.scan) == taken[0])
    }

    @Test("Metrics show busy and idle connections, and waiting callers")
    func metrics() async throws {
        let factory = TestMetrics()
        let queue = ConnectionQueue(
            connections: 4,
            timeout: .zero,
            metrics: PostgreSQLMetrics(GatewayMetrics(factory: factory))
        )
        func shown() throws -> [Double?] {
            [
                try factory.expectMeter("fcmgw_store_connections", [("state", "busy")]).lastValue,
                try factory.expectMeter("fcmgw_store_connections", [("state", "idle")]).lastValue,
                try factory.expectMeter("fcmgw_store_pool_waiters").lastValue,
            ]
        }
        #expect(try shown() == [0, 4, 0])
        let scan = try await queue.take(.scan)
        #expect(try shown() == [1, 3, 0])
        // It waits for the other scan until its timeout.
        await expectError(.storeUnavailable, "in use") { try await queue.take(.scan) }
        #expect(try factory.expectMeter("fcmgw_store_pool_waiters").values.contains(1))
        #expect(try shown() == [1, 3, 0])
        queue.giveBack(scan, .scan)
        #expect(try shown() == [0, 4, 0])
    }

    @Test("A cancelled task leaves the queue only if it was told to give up")
    func givesUp() async throws {
        let queue = self.queue(1)
        let taken = try await queue.take(.call)
        let reader = Task { try await queue.take(.call, givesUp: true) }
        reader.cancel()
        await expectError(.cancelled) { try await reader.value }
        let writer = Task { try await queue.take(.call) }
        writer.cancel()
        queue.giveBack(taken, .call)
        #expect(try await writer.value == taken)
    }

    @Test("A closed queue refuses waiting and new callers")
    func closed() async throws {
        let queue = self.queue(4)
        for _ in 0..<4 { _ = try await queue.take(.call) }
        let waiting = Task { try await queue.take(.call) }
        queue.close()
        await expectError(.storeUnavailable, "closed") { try await waiting.value }
        await expectError(.storeUnavailable, "closed") { try await queue.take(.scan) }
    }
}

struct ReconnectBackoffTests {
    private let start = Uptime.now

    @Test("A server that answers gets every call; one that fails gets one call after each growing pause")
    func pauses() {
        var backoff = ReconnectBackoff<Uptime>()
        #expect(backoff.admit(at: self.start, attemptDuration: .seconds(15)) == true)
        #expect(backoff.admit(at: self.start, attemptDuration: .seconds(15)) == true)
        var now = self.start
        for pause in [50, 100, 200, 400, 800, 1_600, 2_000, 2_000] {
            #expect(backoff.failed(at: now, jitter: 1) == .milliseconds(pause))
            let end = now.advanced(by: .milliseconds(pause))
            #expect(backoff.admit(at: end.advanced(by: .milliseconds(-1)), attemptDuration: .seconds(15)) == false)
            #expect(backoff.admit(at: end, attemptDuration: .seconds(15)) == true)
            #expect(backoff.admit(at: end, attemptDuration: .seconds(15)) == false)
            now = end
        }
        // An attempt that never ends blocks the others only for its own duration.
        #expect(backoff.admit(at: now.advanced(by: .seconds(15)), attemptDuration: .seconds(15)) == true)
        backoff.succeeded()
        #expect(backoff.admit(at: now, attemptDuration: .seconds(15)) == true)
    }
}
