import FCMModel
package import GatewayCore
package import Logging
import ServiceLifecycleTestKit

extension IdempotentRequest {
    /// A request whose message nobody looks at.
    package static func sample(_ key: IdempotencyKey) -> IdempotentRequest {
        IdempotentRequest(key: key, route: .messages, method: "POST", path: [], target: .token("t"), message: Message())
    }
}

extension IdempotentSends {
    /// Sends over a store that starts empty; expired records are dropped when a test says so, and the uptime passes with
    /// the clock unless the test tells it.
    package static func sample(
        pipeline: SendPipeline,
        store: any IdempotencyStore = InMemoryIdempotencyStore(),
        clock: any WallClock,
        uptime: (@Sendable () -> ContinuousClock.Instant)? = nil,
        startsPerMark: Int = 200,
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    ) -> IdempotentSends {
        let (wall, start) = (clock.now(), ContinuousClock.now)
        var configuration = IdempotencyConfiguration()
        configuration.startsPerMark = startsPerMark
        configuration.purgeInterval = .seconds(3_600)
        configuration.purgeBatch = 2
        return IdempotentSends(
            pipeline: pipeline,
            store: store,
            clock: clock,
            uptime: uptime ?? {
                start.advanced(by: .microseconds(clock.now().microseconds - wall.microseconds))
            },
            configuration: configuration,
            metrics: metrics,
            logger: logger
        )
    }

    /// Serves beside a test, then shuts down gracefully and waits for the end.
    ///
    /// - Throws: what the test or the service throws.
    package func whileRunning<Result: Sendable>(
        _ body: @Sendable () async throws -> Result
    ) async throws -> Result {
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await self.run() }
                let result = try await body()
                trigger.triggerGracefulShutdown()
                try await group.waitForAll()
                return result
            }
        }
    }
}
