import GatewayCore
import Logging
import NIOCore
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
        var client = RedisClientConfiguration(
            location: try RedisLocation(limits.redisURL),
            password: limits.redisPassword?.revealed
        )
        client.callTimeout = limits.redisTimeout
        let connections = try RedisClient(client, eventLoopGroup: eventLoops, logger: logger)
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
