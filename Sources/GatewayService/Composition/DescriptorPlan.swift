import EventLoopHTTP
import Foundation
import GatewayUpstream

/// Divides the process's descriptors among the kinds of connections.
///
/// The plan reserves 64 descriptors, plus four for each event loop, plus the size of PostgreSQL's pool. They are for
/// everything else: the store, the spool, the log, the loops, the resolver. Operators get a sixteenth of the limit,
/// upstreams get a quarter, and callers get the rest. Upstreams also get the descriptors that callers can't use because
/// of their configured maximum. No kind gets more than its configuration allows.
///
/// Example: a process with two loops and SQLite has 4,096 descriptors, and enough connections are configured. The plan
/// reserves 72 descriptors. Operators get 256, callers 2,744, and upstreams 1,024. Each loop opens at most 256
/// connections to one upstream.
package struct DescriptorPlan: Equatable {
    package let dataConnections: Int
    package let adminConnections: Int
    package let upstreamConnections: Int
    /// The maximum number of HTTP/1.1 connections of one event loop to one upstream. All loops together get half of
    /// ``upstreamConnections``, so that a slow upstream leaves connections for others.
    package let upstreamConnectionsPerLoop: Int

    /// Creates a plan. `limit` is the process's own limit. `nil` means that there is none.
    package init(_ configuration: GatewayConfiguration, limit: Int?) {
        let loops = configuration.eventLoops
        // Far from overflow, and larger than any configuration.
        let limit = min(limit ?? .max, Int(Int32.max))
        let own = min(Self.ownDescriptors(configuration), limit / 2)
        self.adminConnections = max(1, min(configuration.admin.server.maxConnections, limit / 16))
        let free = limit - own - self.adminConnections
        self.dataConnections = max(1, min(configuration.http.server.maxConnections, free - limit / 4))
        self.upstreamConnections = max(1, free - self.dataConnections)
        self.upstreamConnectionsPerLoop = max(
            1,
            min(configuration.upstream.maxConnectionsPerLoop, self.upstreamConnections / 2 / loops)
        )
    }

    /// Returns a limit that allows all configured connections.
    package static func descriptors(for configuration: GatewayConfiguration) -> Int {
        let loops = configuration.eventLoops
        let admin = configuration.admin.server.maxConnections
        let listeners = Self.ownDescriptors(configuration) + admin + configuration.http.server.maxConnections
        let upstream = 2 * loops * configuration.upstream.maxConnectionsPerLoop
        return max(listeners + max(listeners / 3 + 1, upstream), 16 * admin)
    }

    private static func ownDescriptors(_ configuration: GatewayConfiguration) -> Int {
        let store = configuration.postgreSQL == nil ? 0 : configuration.store.poolSize
        return 64 + 4 * configuration.eventLoops + store
    }

    /// The process's own limit. `nil` if the system does not report a limit.
    package static var currentLimit: Int? {
        var limits = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        // The call fills the structure and keeps no reference to it.
        guard unsafe getrlimit(resource, &limits) == 0 else { return nil }
        return Int(clamping: limits.rlim_cur)
    }
}
