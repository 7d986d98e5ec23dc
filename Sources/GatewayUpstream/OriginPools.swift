package import EventLoopHTTP
package import Logging
package import NIOCore
import Synchronization

/// The connection pools, one for each server that calls to FCM go to, whatever they are for.
package final class OriginPools: Sendable {
    private struct State {
        var pools: [String: HTTPClientPool] = [:]
        var isShutDown = false
    }

    private let state = Mutex(State())
    private let configuration: HTTPClientConfiguration
    private let eventLoopGroup: any EventLoopGroup
    private let logger: Logger

    /// Pools whose connections live on the event loops of a group.
    package init(configuration: HTTPClientConfiguration, eventLoopGroup: any EventLoopGroup, logger: Logger) {
        self.configuration = configuration
        self.eventLoopGroup = eventLoopGroup
        self.logger = logger
    }

    /// The pool for an endpoint such as `https://fcm.googleapis.com`; `nil` for text that is no origin, or where TLS can't
    /// be set up.
    func pool(for endpoint: String) -> HTTPClientPool? {
        self.state.withLock { state in
            if let pool = state.pools[endpoint] { return pool }
            guard !state.isShutDown, let origin = HTTPOrigin(endpoint) else { return nil }
            do {
                let pool = try HTTPClientPool(
                    origin: origin,
                    configuration: self.configuration,
                    eventLoopGroup: self.eventLoopGroup,
                    logger: self.logger
                )
                state.pools[endpoint] = pool
                return pool
            } catch {
                self.logger.error("TLS can't be set up for upstream calls", metadata: ["error": "\(error)"])
                return nil
            }
        }
    }

    /// Closes every connection.
    package func shutdown() async {
        let pools = self.state.withLock { state in
            state.isShutDown = true
            defer { state.pools = [:] }
            return state.pools.values.map { $0 }
        }
        for pool in pools {
            await pool.shutdown()
        }
    }
}
