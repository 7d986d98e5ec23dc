import EventLoopHTTP
import FCMModel
import GatewayCore
import Logging
import NIOCore
import Synchronization

/// The connection pools, one per server, whatever its calls are for.
///
/// Token exchanges have separate pools, so that a failing token endpoint breaks no connection of sends to the same
/// server.
final class OriginPools: Sendable {
    private struct Name: Hashable {
        let endpoint: String
        var isForTokens = false
    }

    private struct State {
        var pools: [Name: HTTPClientPool] = [:]
        /// The refused endpoints, so that each is logged once.
        var refused: Set<String> = []
        var isShutDown = false
    }

    private let state = Mutex(State())
    private let configuration: HTTPClientConfiguration
    private let plainHTTP: PlainHTTP
    /// One TLS configuration for all servers; `nil` until ``prepareTLS()``.
    private let encryption = Mutex<Result<HTTPClientEncryption, any Error>?>(nil)
    private let eventLoopGroup: any EventLoopGroup
    private let logger: Logger

    init(
        configuration: HTTPClientConfiguration,
        plainHTTP: PlainHTTP = PlainHTTP(),
        eventLoopGroup: any EventLoopGroup,
        logger: Logger
    ) {
        self.configuration = configuration
        self.plainHTTP = plainHTTP
        self.eventLoopGroup = eventLoopGroup
        self.logger = logger
    }

    var count: Int { self.state.withLock { $0.pools.count } }

    /// Prepares TLS: the certificates of all authorities are read, which takes ten milliseconds and a megabyte.
    ///
    /// The first call does the work, and should not be made on an event loop.
    @discardableResult
    func prepareTLS() -> Result<HTTPClientEncryption, any Error> {
        self.encryption.withLock { encryption in
            let known = encryption ?? Result { try HTTPClientEncryption(self.configuration) }
            encryption = known
            return known
        }
    }

    /// Returns the pool for an endpoint such as `https://fcm.googleapis.com`. Throws if secrets can't be sent there.
    func pool(for endpoint: String) throws(CallFailure) -> HTTPClientPool {
        // It may have been allowed when the credential was stored.
        guard HTTPOrigin(endpoint) == nil || self.plainHTTP.admits(endpoint: endpoint) else {
            if self.state.withLock({ $0.refused.insert(endpoint).inserted }) {
                self.logger.error(
                    "A credential is not used: its host has no TLS and is not in upstream.allowPlainHTTP.",
                    metadata: ["endpoint": "\(endpoint)"]
                )
            }
            throw CallFailure(code: .upstreamCredentials, upstreamCode: "plain_http")
        }
        return try self.pool(Name(endpoint: endpoint))
    }

    /// Returns the pool for exchanges with a token endpoint that ``TokenHosts`` has admitted.
    func pool(forTokensOf origin: String) throws(CallFailure) -> HTTPClientPool {
        try self.pool(Name(endpoint: origin, isForTokens: true))
    }

    private func pool(_ name: Name) throws(CallFailure) -> HTTPClientPool {
        if let known = self.state.withLock({ $0.pools[name] }) { return known }
        let none = CallFailure(code: .upstreamUnavailable, upstreamCode: "no_endpoint")
        guard let origin = HTTPOrigin(name.endpoint) else { throw none }
        let new: HTTPClientPool
        do {
            new = try HTTPClientPool(
                origin: origin,
                configuration: self.configuration,
                encryption: origin.scheme == .https ? self.prepareTLS().get() : nil,
                eventLoopGroup: self.eventLoopGroup,
                logger: self.logger
            )
        } catch {
            self.logger.error("TLS can't be set up for upstream calls", metadata: ["error": "\(error)"])
            throw none
        }
        let pool = self.state.withLock { state -> HTTPClientPool? in
            guard !state.isShutDown else { return nil }
            // Two callers may each have created one; a pool without connections can be dropped.
            let pool = state.pools[name] ?? new
            state.pools[name] = pool
            return pool
        }
        guard let pool else { throw none }
        return pool
    }

    /// Drops the pools of all other servers; their calls under way end normally.
    func keep(_ endpoints: Set<String>, tokenOrigins: Set<String>) {
        let unneeded = self.state.withLock { state in
            let unneeded = state.pools.filter { name, _ in
                !(name.isForTokens ? tokenOrigins : endpoints).contains(name.endpoint)
            }
            for name in unneeded.keys { state.pools[name] = nil }
            return unneeded.values
        }
        for pool in unneeded { pool.closeIdle() }
    }

    func shutdown() async {
        let pools = self.state.withLock { state in
            state.isShutDown = true
            defer { state.pools = [:] }
            return state.pools.values.map { $0 }
        }
        for pool in pools { await pool.shutdown() }
    }
}
