import CoreMetrics
import EventLoopHTTP
package import GatewayCore
import GatewayHTTP
import Metrics
import ServiceLifecycle

/// Runs one server: listens at once, and drains at shutdown.
package struct ListenerService: Service {
    struct Drain: Sendable {
        /// How long new connections are still accepted after the balancer was told.
        var grace: Duration
        /// How long running requests may take after that.
        var timeout: Duration
        var forced = ForcedShutdown()
        /// Is 1 from the moment the balancer is told.
        var gauge: Meter?
        /// Waits for the grace; throws when nobody waits for it any more.
        var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    }

    private let server: HTTPServer
    private let address: String
    private let readiness: Readiness?
    private let mayBegin: @Sendable () async -> Bool
    private let drain: Drain
    private let ports: AsyncStream<Int>
    private let portsContinuation: AsyncStream<Int>.Continuation

    /// No balancer watches a listener without readiness. `mayBegin` waits for what has to be there before anybody is
    /// served, and says whether it is.
    init(
        server: HTTPServer,
        address: String,
        readiness: Readiness?,
        drain: Drain,
        after mayBegin: @escaping @Sendable () async -> Bool = { true }
    ) {
        self.mayBegin = mayBegin
        self.server = server
        self.address = address
        self.readiness = readiness
        self.drain = drain
        (self.ports, self.portsContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        drain.gauge?.set(0)
    }

    /// Waits for the port in use; throws `cancelled` when the server did not start. One caller may ask, once.
    package func boundPort() async throws(GatewayError) -> Int {
        for await port in self.ports { return port }
        throw GatewayError(.cancelled, "The listener did not start")
    }

    package func run() async throws {
        defer { self.portsContinuation.finish() }
        guard await cancelWhenGracefulShutdown({ await self.mayBegin() }) else {
            // Whoever failed ends the group.
            try? await gracefulShutdown()
            return
        }
        do {
            try await self.server.start()
        } catch {
            throw GatewayError(.conflict, "Listening on \(self.address) is not possible", cause: error)
        }
        self.portsContinuation.yield(self.server.port ?? 0)
        self.readiness?.set(true)
        try? await gracefulShutdown()
        // Balancers need a moment to notice; until then they still send new connections.
        self.readiness?.set(false)
        self.server.beginDraining()
        self.drain.gauge?.set(1)
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                try? await self.drain.pause(self.drain.grace)
                if Task.isCancelled { return }
                await self.server.shutdown(grace: self.drain.timeout)
            }
            group.addTask {
                if await self.drain.forced.isRequested() { await self.server.shutdown(grace: .zero) }
            }
            // Whichever ends first: both end with no connection left.
            await group.next()
            group.cancelAll()
        }
    }
}

extension HTTPServerConfiguration {
    /// A server as configured, with what no key sets: connections as planned, and who answers and counts refusals.
    init(
        _ name: String,
        _ configured: HTTPServerConfiguration,
        maxConnections: Int,
        certificate: ListenerCertificate?,
        serving served: Listener
    ) {
        self = configured
        self.name = name
        self.maxConnections = maxConnections
        self.tls = certificate?.configuration
        self.refusalResponse = served.response(to:_:)
        self.onClose = served.note(_:)
    }
}
