package import EventLoopHTTP
import FCMModel
package import GatewayCore
package import Logging
package import NIOCore
import Synchronization

/// The connection pools, one for each server that calls to FCM go to, whatever they are for.
package final class OriginPools: Sendable {
    private struct State {
        var pools: [String: HTTPClientPool] = [:]
        /// Endpoints that were found to be refused, for the log to have each once.
        var refused: Set<String> = []
        var isShutDown = false
    }

    private let state = Mutex(State())
    private let configuration: HTTPClientConfiguration
    private let plainHTTP: PlainHTTP
    /// One for all servers, made before any event loop needs it.
    private let encryption: Result<HTTPClientEncryption, any Error>
    private let eventLoopGroup: any EventLoopGroup
    private let logger: Logger

    /// Pools whose connections live on the event loops of a group; not to be made on one of these.
    ///
    /// - Parameters:
    ///   - configuration: how to connect, and the limits.
    ///   - plainHTTP: which servers may be called without encryption.
    ///   - eventLoopGroup: the loops.
    ///   - logger: hears of servers that can't or may not be called.
    package init(
        configuration: HTTPClientConfiguration,
        plainHTTP: PlainHTTP = PlainHTTP(),
        eventLoopGroup: any EventLoopGroup,
        logger: Logger
    ) {
        self.configuration = configuration
        self.plainHTTP = plainHTTP
        self.encryption = Result { try HTTPClientEncryption(configuration) }
        self.eventLoopGroup = eventLoopGroup
        self.logger = logger
    }

    /// How many servers there are pools for.
    var count: Int { self.state.withLock { $0.pools.count } }

    /// Why there is no pool for an endpoint, in the outcome's code and in a word of a bounded set.
    func obstacle(at endpoint: String) -> (code: OutcomeCode, name: String) {
        // It may have been allowed when it was put.
        HTTPOrigin(endpoint) == nil || self.plainHTTP.admits(endpoint: endpoint)
            ? (.upstreamUnavailable, "no_endpoint") : (.upstreamCredentials, "plain_http")
    }

    /// The pool for an endpoint such as `https://fcm.googleapis.com`; `nil` for text that is no origin, for one that secrets
    /// may not be sent to, or where TLS can't be set up.
    func pool(for endpoint: String) -> HTTPClientPool? {
        self.state.withLock { state in
            if let pool = state.pools[endpoint] { return pool }
            guard !state.isShutDown, let origin = HTTPOrigin(endpoint) else { return nil }
            guard self.plainHTTP.admits(endpoint: endpoint) else {
                if state.refused.insert(endpoint).inserted {
                    self.logger.error(
                        "A credential is not used, because it would be sent in clear to a host that upstream.allowPlainHTTP lacks.",
                        metadata: ["endpoint": "\(endpoint)"]
                    )
                }
                return nil
            }
            do {
                let pool = try HTTPClientPool(
                    origin: origin,
                    configuration: self.configuration,
                    encryption: origin.scheme == .https ? self.encryption.get() : nil,
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

    /// Lets go of the pools of servers that nobody needs any more; calls that are under way end as they would.
    package func keep(_ endpoints: Set<String>) {
        let unneeded = self.state.withLock { state in
            let unneeded = state.pools.filter { !endpoints.contains($0.key) }
            for endpoint in unneeded.keys { state.pools[endpoint] = nil }
            return unneeded.values
        }
        for pool in unneeded { pool.closeIdle() }
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
