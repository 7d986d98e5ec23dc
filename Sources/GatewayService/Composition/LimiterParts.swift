import GatewayCore
import Logging
package import NIOCore
import NIOSSL
import RedisClient
import RedisLimits
import ServiceLifecycle

/// The configured limiter, and the services that it needs.
struct LimiterParts: Sendable {
    let limiter: any RateLimiter
    /// Services that run beside the gateway and end after its listeners.
    let services: [NamedService]
    /// The rule while Redis fails; `nil` without Redis.
    let whenRedisFails: String?

    /// Throws if the Redis server can't be used as configured. An unreachable server may become available later.
    init(
        _ configuration: GatewayConfiguration,
        replicas: @escaping @Sendable () -> Int,
        eventLoops: any EventLoopGroup,
        metrics: GatewayMetrics,
        logger: Logger
    ) async throws {
        let limits = configuration.limits
        guard !limits.redisURL.isEmpty else {
            (self.limiter, self.services, self.whenRedisFails) = (MemoryRateLimiter(metrics: metrics), [], nil)
            return
        }
        let connections = try configuration.redisClient(eventLoops: eventLoops, logger: logger)
        let probes = try configuration.redisClient(eventLoops: eventLoops.next(), logger: logger)
        let redis = RedisRateLimiter(
            redis: connections,
            probes: probes,
            whenRedisFails: limits.whenRedisFails,
            replicas: replicas,
            metrics: metrics,
            logger: logger
        )
        do throws(RedisClientError) {
            try await redis.verify()
        } catch {
            await connections.shutdown()
            await probes.shutdown()
            throw ConfigurationProblems([limits.problem(error)])
        }
        (self.limiter, self.services, self.whenRedisFails) = (
            redis, [NamedService("limits in Redis", redis)], limits.whenRedisFails.rawValue
        )
    }
}

extension GatewayConfiguration.Limits {
    /// The authorities that verify Redis' certificate. Without a file, these are the system's.
    func redisTrustRoots() throws(ConfigurationProblems) -> NIOSSLTrustRoots {
        guard let file = self.redisCAFile else { return .default }
        return .certificates(try PEMFile.certificates(in: file, key: "limits.redisCaFile"))
    }

    /// Returns the problem to report to an operator whose Redis refuses the gateway.
    fileprivate func problem(_ error: RedisClientError) -> ConfigurationProblem {
        guard error.code == .authenticationFailed, self.redisPassword == nil else {
            return ConfigurationProblem(key: "limits.redisUrl", message: error.message)
        }
        let variable = ConfigurationKey.variable("limits.redisPassword")
        return ConfigurationProblem(
            key: "limits.redisUrl",
            message: "\(error.message); set \(variable) or \(variable)_FILE"
        )
    }
}

extension GatewayConfiguration {
    fileprivate func redisClient(eventLoops: any EventLoopGroup, logger: Logger) throws -> RedisClient {
        var client = RedisClient.Configuration(
            location: try RedisLocation(self.limits.redisURL),
            password: self.limits.redisPassword?.revealed
        )
        client.callTimeout = self.limits.redisTimeout
        client.tls.trustRoots = try self.limits.redisTrustRoots()
        return try RedisClient(client, eventLoopGroup: eventLoops, logger: logger)
    }

    /// Sends a request to the limits' Redis, as a start does. Does nothing if no Redis is configured.
    ///
    /// - Throws: a `ConfigurationProblems` with the reason that Redis does not answer.
    package func askRedis(eventLoop: any EventLoop) async throws {
        let logger = Logger(label: "redis") { _ in SwiftLogNoOpLogHandler() }
        let client = try self.redisClient(eventLoops: eventLoop, logger: logger)
        let answer: Result<Void, RedisClientError>
        do throws(RedisClientError) {
            try await RedisRateLimiter(redis: client, probes: client, replicas: { 1 }, logger: logger).ask()
            answer = .success(())
        } catch {
            answer = .failure(error)
        }
        await client.shutdown()
        if case .failure(let error) = answer { throw ConfigurationProblems([self.limits.problem(error)]) }
    }
}
