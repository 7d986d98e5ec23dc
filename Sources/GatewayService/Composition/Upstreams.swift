import GatewayCore
import GatewayUpstream
import Logging
import NIOCore
import ServiceLifecycle

/// The ways to FCM, by either protocol.
struct Upstreams: Sendable {
    /// Sends by the tenant's protocol.
    let router: UpstreamRouter
    /// Keeps subscriptions to topics.
    let topics: any TopicUpstream
    /// Manages device groups.
    let groups: any GroupUpstream
    /// Proves credentials.
    let prover: any CredentialProver
    /// Forgets what is kept for tenants and servers that are not among these any more.
    let keep: @Sendable ([TenantID: TenantProfile]) -> Void
    /// What runs or is to be closed, each before those that depend on it.
    let services: [any Service]

    init(
        settings: UpstreamSettings,
        eventLoopGroup: any EventLoopGroup,
        clock: any WallClock,
        metrics: GatewayMetrics,
        logger: Logger
    ) {
        let exchange = JWTBearerExchange(
            settings: settings,
            eventLoopGroup: eventLoopGroup,
            clock: clock,
            logger: logger
        )
        let log = AttemptLog(logger)
        let tokens = AccessTokens(exchange: exchange, metrics: metrics)
        // One pool for each server, whatever the calls are for: FCM sees as few connections as will do.
        let pools = OriginPools(
            configuration: settings.client,
            plainHTTP: settings.tokenHosts.current.plainHTTP,
            eventLoopGroup: eventLoopGroup,
            logger: logger
        )
        let accounts = V1Accounts(
            defaultEndpoint: settings.configuration.v1Endpoint,
            pools: pools,
            tokens: tokens,
            metrics: metrics
        )
        let legacy = LegacySender(
            settings: settings,
            pools: pools,
            clock: clock,
            metrics: metrics,
            log: log
        )
        let v1 = V1Sender(
            settings: settings,
            accounts: accounts,
            clock: clock,
            metrics: metrics,
            log: log
        )
        self.router = UpstreamRouter(legacy: legacy, v1: v1)
        self.topics = TopicCaller(
            settings: settings,
            accounts: accounts,
            pools: pools,
            clock: clock,
            metrics: metrics,
            log: log
        )
        self.groups = GroupSender(
            settings: settings,
            pools: pools,
            accounts: accounts,
            clock: clock,
            metrics: metrics,
            log: log
        )
        self.prover = CredentialCheck(settings: settings, exchange: exchange, pools: pools, clock: clock)
        let configuration = settings.configuration
        let defaults: Set = [configuration.legacyEndpoint, configuration.v1Endpoint, configuration.iidEndpoint]
        self.keep = { tenants in
            accounts.keep(tenants)
            legacy.keep(tenants)
            pools.keep(
                tenants.values.reduce(into: defaults) { endpoints, profile in
                    if let endpoint = profile.legacyCredential?.endpoint { endpoints.insert(endpoint) }
                    if let endpoint = profile.v1Credential?.endpoint { endpoints.insert(endpoint) }
                }
            )
        }
        self.services = [tokens, ClosingService("upstream", close: pools.shutdown)]
    }
}
