import AsyncHTTPClient
import EventLoopHTTP
import GatewayCore
import GatewayTestKit
import HTTPTypes
import InMemoryLogging
import Logging
import Metrics
import NIOCore
import NIOHTTP1
import NIOPosix
import PrometheusMetrics
import ServiceLifecycle
import ServiceLifecycleTestKit
import Synchronization
import Testing

@testable import GatewayService

@Suite("A listener's drain", .timeLimit(.minutes(10)))
struct ListenerServiceTests {
    /// Answers a request when released, and notes if it was cancelled.
    private final class HeldResponder: HTTPServerResponder {
        let begun = AsyncStream.makeStream(of: Void.self)
        let released = AsyncStream.makeStream(of: Void.self)
        let wasCancelled = Atomic(false)

        func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
            guard request.head.path == "/held" else { return HTTPServerResponse(status: .noContent) }
            self.begun.continuation.yield()
            for await _ in self.released.stream { break }
            self.wasCancelled.store(Task.isCancelled, ordering: .relaxed)
            return HTTPServerResponse(status: .noContent)
        }
    }

    private let responder = HeldResponder()
    private let readiness = Readiness()
    private let forced = ForcedShutdown()
    private let registry = PrometheusRegistry()
    private let logs = InMemoryLogHandler()
    /// The grace period, which the test ends.
    private let grace = AsyncStream.makeStream(of: Void.self)

    private func gauge() -> String { String(decoding: self.registry.renderBytes(), as: UTF8.self) }

    /// The parts of an answer that the tests compare.
    private struct Told: Sendable, Equatable {
        var status: Int
        var connection: String?
    }

    private func get(_ port: Int, _ path: String = "/") async throws -> Told {
        let request = AsyncHTTPClient.HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
        let response = try await AsyncHTTPClient.HTTPClient.shared.execute(request, timeout: .seconds(30))
        return Told(status: Int(response.status.code), connection: response.headers.first(name: "Connection"))
    }

    private func run(
        timeout: Duration,
        _ body:
            @Sendable (_ port: Int, _ server: HTTPServer, _ stop: () -> Void, _ ended: () async throws -> Void)
            async throws
            -> Void
    ) async throws {
        let logs = self.logs
        var logger = Logger(label: "test") { _ in logs }
        logger.logLevel = .debug
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(),
            responder: self.responder,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: logger
        )
        let grace = self.grace.stream
        let service = ListenerService(
            server: server,
            place: ("http", "127.0.0.1", 0),
            readiness: self.readiness,
            drain: ListenerService.Drain(
                grace: .seconds(3_600),
                timeout: timeout,
                forced: self.forced,
                gauge: Meter(label: "fcmgw_draining", factory: self.registry),
                pause: { _ in for await _ in grace { return } }
            )
        )
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await service.run() }
                let port = try await service.boundPort()
                try await body(port, server, { trigger.triggerGracefulShutdown() }, { try await group.waitForAll() })
                group.cancelAll()
                try await group.waitForAll()
            }
        }
    }

    /// Waits for the effect of an earlier action.
    private func until(_ condition: () -> Bool) async {
        while !condition() { await Task.yield() }
    }

    @Test("The grace period serves new connections with Connection: close; afterwards they are refused")
    func grace() async throws {
        try await self.run(timeout: .seconds(3_600)) { port, server, stop, ended in
            await self.until { self.readiness.isServing }
            #expect(self.gauge().contains("fcmgw_draining 0"))
            #expect(try await self.get(port) == Told(status: 204))
            stop()
            await self.until { !self.readiness.isServing }
            await self.until { self.gauge().contains("fcmgw_draining 1") }
            // Each request needs a new connection, because the last answer closed its own.
            for _ in 1...3 { #expect(try await self.get(port) == Told(status: 204, connection: "close")) }
            self.grace.continuation.yield()
            try await ended()
            await #expect(throws: (any Error).self) { try await self.get(port) }
            #expect(server.openConnections == 0)
        }
    }

    @Test("A request that exceeds the shutdown timeout is cut off, and a warning is logged")
    func cut() async throws {
        try await self.run(timeout: .zero) { port, server, stop, ended in
            let responder = self.responder
            async let held = self.get(port, "/held")
            for await _ in responder.begun.stream { break }
            stop()
            self.grace.continuation.yield()
            try await ended()
            let told = try? await held
            #expect(told == nil)
            let warning = self.logs.entries.first { $0.level == .warning }
            #expect(warning?.message == "Requests were cut off, because the time to finish them was over.")
            #expect(warning?.metadata["requests"] == .stringConvertible(1))
            #expect(server.requestsCutOff == 1)
        }
    }

    @Test("A forced shutdown ends the grace period and the wait for requests", arguments: [false, true])
    func forcedShutdown(isGraceOver: Bool) async throws {
        try await self.run(timeout: .seconds(3_600)) { port, _, stop, ended in
            let responder = self.responder
            async let held = self.get(port, "/held")
            for await _ in responder.begun.stream { break }
            stop()
            await self.until { !self.readiness.isServing }
            if isGraceOver { self.grace.continuation.yield() }
            self.forced.request()
            try await ended()
            let told = try? await held
            #expect(told == nil)
        }
    }

    @Test("A listener that is stopped twice closes once")
    func stoppedOnce() async throws {
        try await self.run(timeout: .seconds(3_600)) { _, server, stop, ended in
            stop()
            self.grace.continuation.yield()
            try await ended()
            await server.shutdown(grace: .zero)
            #expect(self.logs.entries.count { $0.message == "Listener closed." } == 1)
        }
    }

    @Test("A forced shutdown that was requested before the drain ends the grace period")
    func forcedShutdownBefore() async throws {
        self.forced.request()
        #expect(await self.forced.isRequested())
        try await self.run(timeout: .seconds(3_600)) { _, _, stop, ended in
            stop()
            try await ended()
        }
    }
}
