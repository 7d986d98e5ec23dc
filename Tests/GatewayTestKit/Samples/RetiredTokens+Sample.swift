package import GatewayCore
package import Logging

extension RetiredTokenConfiguration {
    /// Nothing is written, settled or trimmed but when a test says so, or at once where it runs the service.
    package static func sample(
        queueCapacity: Int = 50_000,
        queueBytes: Int = 32 * 1024 * 1024,
        maxEntries: Int = 2_000_000
    ) -> Self {
        var configuration = RetiredTokenConfiguration()
        configuration.queueCapacity = queueCapacity
        configuration.queueBytes = queueBytes
        configuration.flushInterval = .zero
        configuration.retryInterval = .milliseconds(1)
        configuration.settleInterval = .seconds(3_600)
        configuration.trimInterval = .seconds(3_600)
        configuration.maxEntries = maxEntries
        return configuration
    }
}

extension RetiredTokens {
    /// A list over a store that starts empty.
    package static func sample(
        store: any RetiredTokenStore = InMemoryRetiredTokenStore(),
        clock: any WallClock,
        configuration: RetiredTokenConfiguration = .sample(),
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
        profiles: @escaping @Sendable () -> [TenantProfile] = { [] }
    ) -> RetiredTokens {
        RetiredTokens(
            store: store,
            clock: clock,
            configuration: configuration,
            metrics: metrics,
            logger: logger,
            profiles: profiles
        )
    }

    /// Lets time's work be done: reports that waited long enough are fed, and everything is written.
    ///
    /// - Returns: whether the store took it.
    @discardableResult
    package func settleAndFlush() async -> Bool {
        self.settle()
        return await self.flush()
    }
}
