import EventLoopHTTP
import FCMModel
import GatewayCore
import Logging
import NIOCore
import Synchronization

/// The connection pools: one for each server, whatever its calls are for. Access tokens are asked for over pools of their
/// own, so that a token endpoint that fails breaks no connection under sends to the same server.
final class OriginPools: Sendable {
    private struct Name: Hashable {
        let endpoint: String
        var isForTokens = false
    }

    private struct State {
        var pools: [Name: HTTPClientPool] = [:]
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

    /// Not to be made on one of the group's event loops.
    init(
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

    var count: Int { self.state.withLock { $0.pools.count } }

    /// The pool for an endpoint such as `https://fcm.googleapis.com`, or why secrets can't be sent there.
    func pool(for endpoint: String) -> Result<HTTPClientPool, CallFailure> {
        // It may have been allowed when it was put.
        guard HTTPOrigin(endpoint) == nil || self.plainHTTP.admits(endpoint: endpoint) else {
            if self.state.withLock({ $0.refused.insert(endpoint).inserted }) {
                self.logger.error(
                    "A credential is not used, because it would be sent in clear to a host that upstream.allowPlainHTTP lacks.",
                    metadata: ["endpoint": "\(endpoint)"]
                )
            }
            return .failure(CallFailure(code: .upstreamCredentials, upstreamCode: "plain_http"))
        }
        return self.pool(Name(endpoint: endpoint))
    }

    /// The pool for exchanges with a token endpoint that ``TokenHosts`` has admitted.
    func pool(forTokensOf origin: String) -> Result<HTTPClientPool, CallFailure> {
        self.pool(Name(endpoint: origin, isForTokens: true))
    }

    private func pool(_ name: Name) -> Result<HTTPClientPool, CallFailure> {
        let none = CallFailure(code: .upstreamUnavailable, upstreamCode: "no_endpoint")
        return self.state.withLock { state in
            if let pool = state.pools[name] { return .success(pool) }
            guard !state.isShutDown, let origin = HTTPOrigin(name.endpoint) else { return .failure(none) }
            do {
                let pool = try HTTPClientPool(
                    origin: origin,
                    configuration: self.configuration,
                    encryption: origin.scheme == .https ? self.encryption.get() : nil,
                    eventLoopGroup: self.eventLoopGroup,
                    logger: self.logger
                )
                state.pools[name] = pool
                return .success(pool)
            } catch {
                self.logger.error("TLS can't be set up for upstream calls", metadata: ["error": "\(error)"])
                return .failure(none)
            }
        }
    }

    /// Lets go of the pools of all but these servers; calls that are under way end as they would.
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
