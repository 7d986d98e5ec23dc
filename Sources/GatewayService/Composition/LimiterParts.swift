import GatewayCore
import Logging
package import NIOCore
import RedisClient
import RedisLimits
import ServiceLifecycle

/// The limiter that the configuration asks for, and what goes with it.
struct LimiterParts: Sendable {
    private enum Kind {
        case memory(LimitSnapshotFile)
        case redis(RedisRateLimiter)
    }

    let limiter: any RateLimiter
    /// The limits that were in force when the last run saved its quotas, by tenants' keys.
    let savedPolicies: [LimitKey: PolicyHistory]
    private let kind: Kind

    /// Throws where the Redis server can't be used as it is configured; one that can't be reached may come later.
    init(
        _ configuration: GatewayConfiguration,
        replicas: @escaping @Sendable () -> Int,
        eventLoops: any EventLoopGroup,
        clock: any WallClock,
        metrics: GatewayMetrics,
        logger: Logger
    ) async throws {
        let limits = configuration.limits
        guard !limits.redisURL.isEmpty else {
            let memory = MemoryRateLimiter(metrics: metrics)
            let snapshot = LimitSnapshotFile(
                of: memory,
                in: configuration.limitSnapshotPath,
                clock: clock,
                logger: logger
            )
            self.limiter = memory
            self.savedPolicies = snapshot.load()
            self.kind = .memory(snapshot)
            return
        }
        let connections = try configuration.redisClient(eventLoops: eventLoops, logger: logger)
        let redis = RedisRateLimiter(
            redis: connections,
            whenRedisFails: limits.whenRedisFails,
            replicas: replicas,
            metrics: metrics,
            logger: logger
        )
        do throws(RedisClientError) {
            try await redis.verify()
        } catch {
            await connections.shutdown()
            throw ConfigurationProblems([ConfigurationProblem(key: "limits.redisUrl", message: error.message)])
        }
        self.limiter = redis
        self.savedPolicies = [:]
        self.kind = .redis(redis)
    }

    /// What runs beside the gateway and ends after its listeners.
    func service(tenants: @escaping @Sendable () -> DirectorySnapshot) -> any Service {
        switch self.kind {
        case .memory(let snapshot): ClosingService("limits") { snapshot.save(under: tenants()) }
        case .redis(let limiter): limiter
        }
    }
}

extension GatewayConfiguration {
    fileprivate func redisClient(eventLoops: any EventLoopGroup, logger: Logger) throws -> RedisClient {
        var client = RedisClientConfiguration(
            location: try RedisLocation(self.limits.redisURL),
            password: self.limits.redisPassword?.revealed
        )
        client.callTimeout = self.limits.redisTimeout
        return try RedisClient(client, eventLoopGroup: eventLoops, logger: logger)
    }

    /// Asks the Redis that limits are kept in, if they are, as a start does.
    ///
    /// - Throws: a `RedisClientError` that says why it has no answer.
    package func askRedis(eventLoop: any EventLoop) async throws {
        let logger = Logger(label: "redis") { _ in SwiftLogNoOpLogHandler() }
        let client = try self.redisClient(eventLoops: eventLoop, logger: logger)
        let answer: Result<Void, RedisClientError>
        do throws(RedisClientError) {
            try await RedisRateLimiter(redis: client, replicas: { 1 }, logger: logger).ask()
            answer = .success(())
        } catch {
            answer = .failure(error)
        }
        await client.shutdown()
        try answer.get()
    }
}
