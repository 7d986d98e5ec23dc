import GatewayTestKit
import Logging
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

@testable import GatewayService

@Suite("Shutdown time limit of services", .timeLimit(.minutes(10)))
struct BoundedServiceTests {
    /// A service that ends when cancelled, or if prompt at graceful shutdown, and notes if it was cancelled.
    private struct Waiting: Service {
        var isPrompt = false
        var fails = false
        let ends: Observed<[Bool]>

        func run() async throws {
            let (never, continuation) = AsyncStream.makeStream(of: Void.self)
            if self.isPrompt { try? await gracefulShutdown() } else { for await _ in never {} }
            continuation.finish()
            self.ends.change { $0.append(Task.isCancelled) }
            if self.fails { throw SampleError(what: "end") }
        }
    }

    private func stop(_ services: [Waiting], within limit: Duration) async throws {
        let time = BoundedService.Time(limit: limit)
        let group = ServiceGroup(
            services: services.map { BoundedService(service: $0, time: time) },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        try await testGracefulShutdown { trigger in
            trigger.triggerGracefulShutdown()
            try await group.run()
        }
    }

    @Test("Services that still run when the time is up are cancelled")
    func late() async throws {
        let ends = Observed<[Bool]>([])
        try await self.stop([Waiting(ends: ends), Waiting(ends: ends)], within: .zero)
        #expect(ends.current == [true, true])
    }

    @Test("A service that ends in time is not cancelled")
    func prompt() async throws {
        let ends = Observed<[Bool]>([])
        try await self.stop([Waiting(isPrompt: true, ends: ends)], within: .seconds(3_600))
        #expect(ends.current == [false])
    }

    @Test("An error that a service throws at its end is rethrown", arguments: [true, false])
    func failing(isPrompt: Bool) async throws {
        let waiting = Waiting(isPrompt: isPrompt, fails: true, ends: Observed([]))
        await #expect(throws: SampleError.self) {
            try await self.stop([waiting], within: isPrompt ? .seconds(3_600) : .zero)
        }
    }

    @Test("A service is called by its name, and none of its parts is shown")
    func name() {
        struct Parts: Service {
            let secret = "secret"
            func run() async throws {}
        }
        #expect("\(NamedService("audit", Parts()))" == "audit")
        #expect(
            ServiceGroupConfiguration.ServiceConfiguration(service: NamedService("audit", Parts())).serviceName
                == "audit"
        )
    }
}
