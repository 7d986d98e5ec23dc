package import GatewayCore
package import Logging
package import RedisClient
import ServiceLifecycle
import Synchronization

/// Limits by what all replicas have let through, kept in Redis or Valkey.
///
/// Each bucket is a key, `rl:{<tenant>}:<kind>:<pseudonym>`, in the slot of its tenant; it expires when it is whole again.
/// A request is one run of the ``LimiterScript``, a long list one for each chunk, which charges everything that it admits
/// or nothing. The time is the server's. What Redis does not answer in time is decided without it.
package final class RedisRateLimiter: RateLimiter, Service {
    /// What is decided by while Redis fails.
    package enum Fallback: String, Sendable, CaseIterable {
        /// Limits in memory, divided by the number of replicas.
        case local
        /// Nothing is refused.
        case open
        /// Everything is refused.
        case closed
    }

    /// Recipients of one run: it takes up to two milliseconds, in which Redis does nothing else.
    static let chunkRecipients = 250
    /// Keys of one run beyond which it ends earlier, as groups have members.
    static let chunkKeys = 500

    private let redis: RedisClient
    private let script: LimiterScript
    private let whenRedisFails: Fallback
    private let replicas: @Sendable () -> Int
    private let local: MemoryRateLimiter
    private let metrics: LimiterMetrics
    private let fallbackMetrics: LimiterMetrics
    private let logger: Logger
    private let health = Mutex(LimiterHealth())

    /// A limiter over a client, whose timeout is a decision's; replicas are counted for each decision without Redis.
    package convenience init(
        redis: RedisClient,
        whenRedisFails: Fallback = .local,
        replicas: @escaping @Sendable () -> Int,
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        self.init(
            redis: redis,
            script: LimiterScript(),
            whenRedisFails: whenRedisFails,
            replicas: replicas,
            metrics: metrics,
            logger: logger
        )
    }

    init(
        redis: RedisClient,
        script: LimiterScript,
        whenRedisFails: Fallback,
        replicas: @escaping @Sendable () -> Int,
        metrics: GatewayMetrics,
        logger: Logger
    ) {
        self.redis = redis
        self.script = script
        self.whenRedisFails = whenRedisFails
        self.replicas = replicas
        self.local = MemoryRateLimiter()
        self.metrics = LimiterMetrics(metrics, source: "redis")
        self.fallbackMetrics = LimiterMetrics(metrics, source: whenRedisFails.rawValue)
        self.logger = logger
    }

    package func admit(_ request: LimitRequest, now: Timestamp) async -> LimitDecision {
        let start = self.metrics.began()
        guard let asked = await self.ask(request, charges: true) else {
            let decision = await self.admitWithoutRedis(request, now)
            self.fallbackMetrics.count(decision.admission)
            return decision
        }
        let decision = asked.decision
        self.metrics.count(decision.admission)
        if let start { self.metrics.ended(since: start) }
        return decision
    }

    package func status(of request: LimitRequest, now: Timestamp) async -> LimitStatus {
        if let asked = await self.ask(request, charges: false) { return asked.status }
        let share = self.whenRedisFails == .local ? request.share(of: self.replicas()) : request
        return await self.local.status(of: share, now: now)
    }

    private func admitWithoutRedis(_ request: LimitRequest, _ now: Timestamp) async -> LimitDecision {
        switch self.whenRedisFails {
        case .local:
            return await self.local.admit(request.share(of: self.replicas()), now: now)
        case .open:
            return LimitDecision(admission: .all, tenantQuotas: [])
        case .closed:
            return LimitDecision(admission: .none(LimitDenial(scope: .tenant, retryAfter: 1)), tenantQuotas: [])
        }
    }

    // MARK: Asking Redis

    /// What Redis says of a request; nil where it fails or has failed.
    ///
    /// Where it fails amid a list, what earlier chunks charged stays so, though it is decided anew.
    private func ask(_ request: LimitRequest, charges: Bool) async -> LimitReckoning? {
        guard self.health.withLock({ $0.isShared }) else { return nil }
        do throws(RedisClientError) {
            let reckoning = try await self.reckon(request, charges: charges)
            self.note(nil)
            return reckoning
        } catch {
            self.note(error)
            return nil
        }
    }

    private func reckon(
        _ request: LimitRequest,
        charges: Bool,
        timeout: Duration? = nil
    ) async throws(RedisClientError) -> LimitReckoning {
        var reckoning = LimitReckoning(request)
        repeat {
            let chunk = reckoning.nextChunk(charges: charges)
            var reply = try await self.redis.call(
                self.script.command(chunk, whole: false),
                timeout: timeout
            )
            if reply.errorCode == "NOSCRIPT" {
                reply = try await self.redis.call(
                    self.script.command(chunk, whole: true),
                    timeout: timeout
                )
            }
            if case .error(let text) = reply {
                throw RedisClientError(.unusableServer, "Redis refuses: \(text.prefix(200))")
            }
            guard reckoning.add(reply) else {
                throw RedisClientError(.invalidReply, "What Redis says of limits can't be understood")
            }
        } while !reckoning.isComplete
        return reckoning
    }

    // MARK: Failing and coming back

    /// A decision had its answer, or failed.
    private func note(_ error: RedisClientError?) {
        let isOver = self.health.withLock { $0.decided(isAnswered: error == nil) }
        guard isOver, let error else { return }
        self.metrics.show(isFallbackActive: true)
        self.logger.warning(
            "Redis fails; rate limits are no longer shared with other replicas.",
            metadata: ["error": "\(error)", "when_redis_fails": "\(self.whenRedisFails.rawValue)"]
        )
    }

    /// Asks Redis about a bucket of its own, writing included; whether it answers.
    @discardableResult
    package func probe() async -> Bool {
        let isAnswered: Bool
        do throws(RedisClientError) {
            _ = try await self.reckon(Self.probeRequest, charges: true)
            isAnswered = true
        } catch {
            isAnswered = false
        }
        let isBack = self.health.withLock { $0.probed(isAnswered: isAnswered) }
        if isBack {
            self.metrics.show(isFallbackActive: false)
            self.logger.notice("Redis is back; rate limits are shared with other replicas again.")
        }
        return isAnswered
    }

    /// Asks Redis once with time to connect.
    package func ask(timeout: Duration = .seconds(2)) async throws(RedisClientError) {
        _ = try await self.reckon(Self.probeRequest, charges: true, timeout: timeout)
    }

    /// Asks Redis as well; throws where it can't be used with this configuration, while a server that can't be reached
    /// may come.
    package func verify(timeout: Duration = .seconds(2)) async throws(RedisClientError) {
        do throws(RedisClientError) {
            try await self.ask(timeout: timeout)
        } catch {
            switch error.code {
            case .authenticationFailed, .clusterNode:
                throw error
            case .unavailable, .timedOut, .connectionClosed, .invalidReply, .unusableServer, .tooManyCommands,
                .shutDown:
                for _ in 0..<LimiterHealth.maxFailures { self.note(error) }
            }
        }
    }

    private static let probeRequest = LimitRequest(
        tenant: LimitKey(Pseudonym(bytes: [])),
        history: PolicyHistory(
            LimitPolicies(tenant: RatePolicy.tenantDefaults, device: [], deviceCollapsible: [], topic: [])
        ),
        recipients: .tenantOnly(1),
        isCollapsible: false
    )

    /// Limits are to be shared within two seconds of Redis' return: half a second until the client connects, then as many
    /// as are wanted.
    private static let probeInterval = Duration.milliseconds(200)

    /// Finds out, while limits are not shared, when they can be again; closes the client at shutdown.
    package func run() async throws {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            if !self.health.withLock({ $0.isShared }) { await self.probe() }
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.probeInterval) }
        }
        await self.redis.shutdown()
    }
}
