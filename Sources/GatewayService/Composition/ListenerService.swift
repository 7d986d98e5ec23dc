import CoreMetrics
import EventLoopHTTP
package import GatewayCore
import GatewayHTTP
import Metrics
import ServiceLifecycle

/// Runs one server: listens at once, and drains at shutdown.
package struct ListenerService: Service {
    /// How a listener leaves.
    struct Drain: Sendable {
        /// How long new connections are still accepted after the balancer was told.
        var grace: Duration
        /// How long running requests may take after that.
        var timeout: Duration
        /// Cuts both short.
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

    /// - Parameters:
    ///   - server: the server, not started.
    ///   - address: where it will listen, for an operator who must find out why it can't.
    ///   - readiness: told when the listener begins and ends to welcome traffic; `nil` for one that no balancer watches.
    ///   - drain: how it leaves.
    ///   - mayBegin: waits for what has to be there before anybody is served, and says whether it is.
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

    /// The port in use; waits until there is one.
    ///
    /// One caller may ask, once.
    ///
    /// - Throws: `cancelled` when the server did not start.
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
    /// The data listener's server.
    init(
        _ listener: GatewayConfiguration.DataListener,
        maxConnections: Int,
        certificate: ListenerCertificate?,
        serving served: Listener
    ) {
        self = listener.server
        self.name = "data"
        self.complete(maxConnections: maxConnections, certificate: certificate, serving: served)
        // A message has 4 KiB, and what it is wrapped in.
        self.uncountedBodyBytes = 8 * 1024
        self.measuresLag = true
        self.bodyLimit = served.bodyLimit(of:)
    }

    /// The admin listener's server.
    init(
        _ listener: GatewayConfiguration.AdminListener,
        maxConnections: Int,
        certificate: ListenerCertificate?,
        serving served: Listener
    ) {
        self = listener.server
        self.name = "admin"
        self.complete(maxConnections: maxConnections, certificate: certificate, serving: served)
        self.bodyLimit = { _ in Administration.maxBodyBytes }
    }

    /// Adds what no key sets: connections as planned, the certificate, and who answers and counts refusals.
    private mutating func complete(
        maxConnections: Int,
        certificate: ListenerCertificate?,
        serving served: Listener
    ) {
        self.maxConnections = maxConnections
        self.tls = certificate?.configuration
        self.refusalResponse = served.response(to:_:)
        self.onClose = served.note(_:)
    }
}
