import EventLoopHTTP
import GatewayCore
import ServiceLifecycle

/// Runs one server: listens at once, and drains at shutdown.
struct ListenerService: Service {
    private let server: HTTPServer
    private let address: String
    private let readiness: Readiness?
    private let drainGrace: Duration
    private let shutdownTimeout: Duration
    private let ports: AsyncStream<Int>
    private let portsContinuation: AsyncStream<Int>.Continuation

    /// - Parameters:
    ///   - server: the server, not started.
    ///   - address: where it will listen, for an operator who must find out why it can't.
    ///   - readiness: told when the listener begins and ends to welcome traffic; `nil` for one that no balancer watches.
    ///   - drainGrace: how long new connections are still accepted after the balancer was told.
    ///   - shutdownTimeout: how long running requests may take after that.
    init(server: HTTPServer, address: String, readiness: Readiness?, drainGrace: Duration, shutdownTimeout: Duration) {
        self.server = server
        self.address = address
        self.readiness = readiness
        self.drainGrace = drainGrace
        self.shutdownTimeout = shutdownTimeout
        (self.ports, self.portsContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The port in use; waits until there is one.
    ///
    /// One caller may ask, once.
    ///
    /// - Throws: `cancelled` when the server did not start.
    func boundPort() async throws(GatewayError) -> Int {
        for await port in self.ports { return port }
        throw GatewayError(.cancelled, "The listener did not start")
    }

    func run() async throws {
        defer { self.portsContinuation.finish() }
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
        try? await Task.sleep(for: self.drainGrace)
        await self.server.shutdown(grace: self.shutdownTimeout)
    }
}
