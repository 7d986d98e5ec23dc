import CoreMetrics
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
    /// What runs or is to be closed, each before those that depend on it.
    let services: [any Service]

    init(
        configuration: GatewayUpstream.UpstreamConfiguration,
        eventLoopGroup: any EventLoopGroup,
        clock: any WallClock,
        metrics: any MetricsFactory,
        logger: Logger
    ) {
        let exchange = JWTBearerExchange(
            configuration: configuration,
            eventLoopGroup: eventLoopGroup,
            clock: clock,
            logger: logger
        )
        let tokens = AccessTokens(exchange: exchange, metrics: TokenMetrics(factory: metrics))
        let resilience = ResilienceMetrics(factory: metrics)
        let legacy = LegacySender(
            configuration: configuration,
            eventLoopGroup: eventLoopGroup,
            clock: clock,
            metrics: UpstreamMetrics(api: .legacy, factory: metrics),
            resilience: resilience,
            logger: logger
        )
        let v1 = V1Sender(
            configuration: configuration,
            tokens: tokens,
            eventLoopGroup: eventLoopGroup,
            clock: clock,
            metrics: UpstreamMetrics(api: .v1, factory: metrics),
            resilience: resilience,
            logger: logger
        )
        let topics = TopicCaller(
            configuration: configuration,
            tokens: tokens,
            eventLoopGroup: eventLoopGroup,
            clock: clock,
            metrics: TopicCallMetrics(factory: metrics),
            logger: logger
        )
        let groups = GroupSender(
            configuration: configuration,
            tokens: tokens,
            eventLoopGroup: eventLoopGroup,
            clock: clock,
            metrics: UpstreamMetrics(label: "device_groups", factory: metrics),
            logger: logger
        )
        let check = CredentialCheck(
            configuration: configuration,
            exchange: exchange,
            eventLoopGroup: eventLoopGroup,
            clock: clock,
            logger: logger
        )
        self.router = UpstreamRouter(legacy: legacy, v1: v1)
        self.topics = topics
        self.groups = groups
        self.prover = check
        self.services = [
            tokens,
            ClosingService("upstream") {
                await legacy.shutdown()
                await v1.shutdown()
                await topics.shutdown()
                await groups.shutdown()
                await check.shutdown()
            },
        ]
    }
}
