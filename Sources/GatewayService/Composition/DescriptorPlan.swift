import EventLoopHTTP
import Foundation
import GatewayUpstream

/// How many connections of each kind there may be, so that together they leave the process the descriptors it needs.
///
/// Of the limit, 64, four for each event loop and those of PostgreSQL's pool are left for everything else: the store,
/// the spool, the log, the loops, the resolver. Operators have a sixteenth, upstreams a quarter, callers what is left;
/// what callers do not want is for upstreams as well. All of it is bounded by what is configured.
package struct DescriptorPlan: Equatable {
    package let dataConnections: Int
    package let adminConnections: Int
    package let upstreamConnections: Int
    /// HTTP/1.1 connections of one event loop to one upstream: the loops together get half of ``upstreamConnections``,
    /// so that a slow upstream keeps nobody's calls from another.
    package let upstreamConnectionsPerLoop: Int

    /// The limit is that of the process; `nil` for none.
    package init(_ configuration: GatewayConfiguration, limit: Int?) {
        let loops = configuration.eventLoops
        // Far from overflow, and more than any configuration asks for.
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

    /// A limit that lets a gateway have all the connections that are configured.
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

    /// The process's own limit; `nil` where it can't be asked for.
    package static var currentLimit: Int? {
        var limits = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        // The call fills the structure it is handed and keeps no reference to it.
        guard unsafe getrlimit(resource, &limits) == 0 else { return nil }
        return Int(clamping: limits.rlim_cur)
    }
}
