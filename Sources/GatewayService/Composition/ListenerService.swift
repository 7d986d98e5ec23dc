import CoreMetrics
import EventLoopHTTP
import Foundation
package import GatewayCore
import GatewayHTTP
import Metrics
import NIOCore
import ServiceLifecycle

/// Runs one server: listens at once, and drains at shutdown.
///
///     listen       not ready, new connections accepted      running requests end       closed
///       |---- ready ----|------------- grace ---------------|-------- timeout ---------|
///                    SIGTERM                        listening socket closes
///
/// Example: by default the grace is 5 s and the timeout 25 s. A request that arrives 4 s after SIGTERM is answered if
/// that takes at most 26 s. A second signal ends both phases at once.
package struct ListenerService: Service {
    struct Drain: Sendable {
        /// The time for which new connections are still accepted after readiness has failed.
        var grace: Duration
        /// The time that running requests have after the grace.
        var timeout: Duration
        var forced = ForcedShutdown()
        /// 1 once readiness has failed, else 0.
        var gauge: Meter?
        /// Waits for the grace. Throws if the task is cancelled.
        var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    }

    private let server: HTTPServer
    /// The configuration section of the server.
    private let place: (section: String, host: String, port: Int)
    private let readiness: Readiness?
    private let mayBegin: @Sendable () async -> Bool
    private let drain: Drain
    private let ports: AsyncStream<Int>
    private let portsContinuation: AsyncStream<Int>.Continuation

    /// Creates a service for a server. `readiness` is `nil` if no balancer watches the listener. `mayBegin` waits until
    /// the gateway can serve, and returns false if it can't.
    init(
        server: HTTPServer,
        place: (section: String, host: String, port: Int),
        readiness: Readiness?,
        drain: Drain,
        after mayBegin: @escaping @Sendable () async -> Bool = { true }
    ) {
        self.mayBegin = mayBegin
        self.server = server
        self.place = place
        self.readiness = readiness
        self.drain = drain
        (self.ports, self.portsContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        drain.gauge?.set(0)
    }

    /// Waits for the server's start and returns the port in use. Throws `cancelled` if the server did not start. May be
    /// called once.
    package func boundPort() async throws(GatewayError) -> Int {
        for await port in self.ports { return port }
        throw GatewayError(.cancelled, "The listener did not start")
    }

    /// Starts to accept connections, before ``run()`` or as a part of it. A second call does nothing.
    func listen() async throws {
        guard self.server.port == nil else { return }
        do {
            try await self.server.start()
        } catch {
            throw self.explained(error)
        }
        self.portsContinuation.yield(self.server.port ?? 0)
    }

    /// The address with the port in use.
    func url(_ certificate: ListenerCertificate?, _ port: Int) -> String {
        let host = self.place.host.contains(":") ? "[\(self.place.host)]" : self.place.host
        return "\(certificate == nil ? "http" : "https")://\(host):\(port)"
    }

    package func run() async throws {
        defer { self.portsContinuation.finish() }
        guard await cancelWhenGracefulShutdown({ await self.mayBegin() }) else {
            // `mayBegin` returns false if another service has failed. That service ends the group.
            try? await gracefulShutdown()
            return
        }
        try await self.listen()
        self.readiness?.set(true)
        try? await gracefulShutdown()
        // Balancers need a moment to notice that readiness has failed. Until then they still send new connections.
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
            // When one task ends, the other task is cancelled, because no connection is left.
            await group.next()
            group.cancelAll()
        }
    }
}

extension ListenerService {
    /// Returns the problem with the address, under the key that the operator must change.
    private func explained(_ error: any Error) -> any Error {
        let (section, host, port) = self.place
        let (key, message): (String, String)
        switch (error, (error as? IOError)?.errnoCode) {
        case (_, EADDRINUSE): (key, message) = ("port", "another program listens on \(host):\(port) already")
        case (_, EACCES): (key, message) = ("port", "the user of this process may not listen on port \(port)")
        case (_, EADDRNOTAVAIL): (key, message) = ("host", "\(host) is not an address of this machine")
        case (is SocketAddressError.UnknownHost, _): (key, message) = ("host", "\(host) can't be looked up")
        default: return GatewayError(.conflict, "Can't listen on \(host):\(port)", cause: error)
        }
        return ConfigurationProblems([ConfigurationProblem(key: "\(section).\(key)", message: message)])
    }
}

extension HTTPServerConfiguration {
    /// Completes the configured settings with the planned number of connections, the certificate, and the functions
    /// that answer refusals and count them.
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
