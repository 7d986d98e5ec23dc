package import GatewayCore
package import Logging
package import RedisClient
import ServiceLifecycle
import Synchronization

/// Limits that all replicas share, in Redis or Valkey.
///
/// Each bucket is a key, `rl:{<tenant>}:<kind>:<pseudonym>`, in its tenant's slot. It expires when the bucket is full
/// again. A request is one run of the ``LimiterScript``; a long list is one run for each chunk. A run charges all that
/// it admits, or nothing. The time is the server's. If Redis does not answer in time, the decision is made without it.
package final class RedisRateLimiter: RateLimiter, Service {
    /// The rule for decisions while Redis fails.
    package enum Fallback: String, Sendable, CaseIterable {
        /// Limits in memory, divided by the number of replicas.
        case local
        /// Nothing is refused.
        case open
        /// Everything is refused.
        case closed
    }

    /// The recipients of one run. It takes up to two milliseconds, in which Redis does nothing else.
    static let chunkRecipients = 250
    /// The keys after which a run ends earlier, for groups with members.
    static let chunkKeys = 500

    /// The time for which a list waits for the tenant's other lists before it is refused.
    private static let queueTimeout = Duration.seconds(1)

    private let redis: RedisClient
    /// A client whose connection is only for probes, so that they never wait behind decisions.
    private let probes: RedisClient
    private let script: LimiterScript
    private let whenRedisFails: Fallback
    private let replicas: @Sendable () -> Int
    private let local: MemoryRateLimiter
    private let metrics: LimiterMetrics
    private let fallbackMetrics: LimiterMetrics
    private let logger: Logger
    private let jitter: RetryJitter
    private let uptime: @Sendable () -> Uptime
    private let health = Mutex(LimiterHealth())
    private let refusals = RefusalCache()
    /// Orders the lists of each tenant: one run takes up to two milliseconds, in which Redis serves no other tenant.
    private let lists = KeyedLock<LimitKey>()

    /// A limiter whose decisions have the client's timeout. `replicas` is called for each decision without Redis.
    package convenience init(
        redis: RedisClient,
        probes: RedisClient,
        whenRedisFails: Fallback = .local,
        replicas: @escaping @Sendable () -> Int,
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger
    ) {
        self.init(
            redis: redis,
            probes: probes,
            script: LimiterScript(),
            whenRedisFails: whenRedisFails,
            replicas: replicas,
            metrics: metrics,
            logger: logger
        )
    }

    init(
        redis: RedisClient,
        probes: RedisClient,
        script: LimiterScript,
        whenRedisFails: Fallback,
        replicas: @escaping @Sendable () -> Int,
        metrics: GatewayMetrics,
        logger: Logger,
        jitter: @escaping RetryJitter = { .random(in: $0) },
        uptime: @escaping @Sendable () -> Uptime = { .now }
    ) {
        self.redis = redis
        self.probes = probes
        self.script = script
        self.whenRedisFails = whenRedisFails
        self.replicas = replicas
        self.local = MemoryRateLimiter(jitter: jitter)
        self.metrics = LimiterMetrics(metrics, source: "redis")
        self.fallbackMetrics = LimiterMetrics(metrics, source: whenRedisFails.rawValue)
        self.logger = logger
        (self.jitter, self.uptime) = (jitter, uptime)
    }

    package func admit(_ request: LimitRequest, now: Timestamp) async -> LimitDecision {
        let start = self.metrics.began()
        guard let decision = await self.ask(request) else {
            let decision = await self.admitWithoutRedis(request, now)
            self.fallbackMetrics.count(decision.admission)
            return decision
        }
        self.metrics.count(decision.admission)
        if let start { self.metrics.ended(since: start) }
        return decision
    }

    package func refusal(of tenant: LimitKey, _ policies: LimitPolicies, count: Int, now: Timestamp) -> LimitDecision? {
        guard self.health.withLock({ $0.isShared }) else {
            guard self.whenRedisFails == .local else { return nil }
            let share = policies.share(of: self.replicas())
            let refusal = self.local.refusal(of: tenant, share, count: count, now: now)
            if let refusal { self.fallbackMetrics.count(refusal.admission) }
            return refusal
        }
        if self.refusals.isEmpty { return nil }
        let refusal = self.tenantRefusal(tenant, policies, count: count, at: self.uptime())
        if let refusal { self.metrics.count(refusal.admission) }
        return refusal
    }

    package func status(of request: LimitRequest, now: Timestamp) async -> LimitStatus {
        if self.health.withLock({ $0.isShared }) {
            var reckoning = LimitReckoning(request, jitter: self.jitter)
            if await self.complete(&reckoning, charges: false) {
                self.refusals.note(reckoning, at: self.uptime())
                return reckoning.status
            }
        }
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
            return LimitDecision(
                admission: .none(LimitDecision.Denial(scope: .tenant, retryAfter: 1)),
                tenantQuotas: []
            )
        }
    }

    // MARK: Asking Redis

    /// Returns Redis's decision, or one that follows from an answer of the last second. `nil` if Redis fails or has
    /// failed.
    ///
    /// If Redis fails within a list, the charges of earlier chunks stay, although the whole list is decided again.
    private func ask(_ request: LimitRequest) async -> LimitDecision? {
        if request.isList {
            guard await self.lists.acquire(request.tenant, until: .now + Self.queueTimeout) else {
                let denial = LimitDecision.Denial(.tenant, wait: 0, self.jitter)
                return LimitDecision(admission: .none(denial), tenantQuotas: [])
            }
        }
        defer { if request.isList { self.lists.release(request.tenant) } }
        guard self.health.withLock({ $0.isShared }) else { return nil }
        let known = self.refusals.isEmpty ? Known() : self.known(of: request)
        if let decision = known.decision { return decision }
        var reckoning = LimitReckoning(request, known: known.denials, jitter: self.jitter)
        guard await self.complete(&reckoning, charges: true) else { return nil }
        self.refusals.note(reckoning, at: self.uptime())
        return reckoning.decision
    }

    /// The known refusals of a request's buckets.
    private struct Known {
        var denials: [Int: LimitDecision.Denial] = [:]
        /// The decision, if all refusals are known.
        var decision: LimitDecision?
    }

    private func known(of request: LimitRequest) -> Known {
        var known = Known()
        let (policies, uptime) = (request.policies, self.uptime())
        known.decision = self.tenantRefusal(request.tenant, policies, count: request.count, at: uptime)
        guard known.decision == nil else { return known }
        var quotas: [QuotaStatus] = []
        func note(_ recipient: Int, _ scope: LimitScope, _ keys: [LimitKey]) {
            guard known.denials[recipient] == nil,
                let entry = keys.lazy
                    .compactMap({
                        self.refusals.entry(RefusalCache.BucketName(scope, $0, policies), at: uptime)
                    })
                    .first
            else { return }
            let wait = entry.wait - (uptime - entry.notedAt).nanoseconds
            known.denials[recipient] = LimitDecision.Denial(scope, wait: wait, self.jitter)
            quotas = entry.tenant.quotas(at: entry.serverTime(at: uptime))
        }
        switch request.recipients {
        case .devices(let keys):
            for (index, key) in keys.enumerated() {
                let all = request.members.isEmpty ? [key] : [key] + (request.members[index] ?? [])
                note(index, .device, all)
                if request.isCollapsible { note(index, .deviceCollapsible, all) }
            }
        case .topics(let keys):
            note(0, .topic, keys)
        case .tenantOnly:
            break
        }
        if known.denials.count == request.recipientCount, request.recipientCount > 0 {
            let denials = (0..<request.recipientCount).map { known.denials[$0] }
            known.decision = LimitDecision(admission: LimitDecision.Admission(denials), tenantQuotas: quotas)
        }
        return known
    }

    private func tenantRefusal(
        _ tenant: LimitKey,
        _ policies: LimitPolicies,
        count: Int,
        at uptime: Uptime
    ) -> LimitDecision? {
        guard let entry = self.refusals.entry(RefusalCache.BucketName(.tenant, tenant, policies), at: uptime) else {
            return nil
        }
        let time = entry.serverTime(at: uptime)
        let denial = LimitDecision.Denial(.tenant, wait: entry.tenant.wait(for: count, at: time), self.jitter)
        return LimitDecision(admission: .none(denial), tenantQuotas: entry.tenant.quotas(at: time))
    }

    private func reckon(
        _ reckoning: inout LimitReckoning,
        charges: Bool,
        by redis: RedisClient,
        timeout: Duration? = nil
    ) async throws(RedisClientError) {
        repeat {
            let chunk = reckoning.nextChunk(charges: charges)
            var reply = try await redis.call(self.script.command(chunk, whole: false), timeout: timeout)
            if reply.errorCode == "NOSCRIPT" {
                reply = try await redis.call(self.script.command(chunk, whole: true), timeout: timeout)
            }
            if case .error(let text) = reply {
                throw RedisClientError(.unusableServer, "Redis refuses: \(text.prefix(200))")
            }
            guard reckoning.add(reply) else {
                throw RedisClientError(.invalidReply, "Redis gave an invalid reply to the limiter's script")
            }
        } while !reckoning.isComplete
    }

    // MARK: Failing and coming back

    /// Asks Redis. Returns false if it fails; the failure that puts Redis in doubt is followed by a probe.
    private func complete(_ reckoning: inout LimitReckoning, charges: Bool) async -> Bool {
        do throws(RedisClientError) {
            try await self.reckon(&reckoning, charges: charges, by: self.redis)
            _ = self.health.withLock { $0.decided(isAnswered: true) }
            return true
        } catch {
            if self.health.withLock({ $0.decided(isAnswered: false) }) { await self.probe() }
            return false
        }
    }

    private func beginFallback(_ error: RedisClientError) {
        // Otherwise, buckets of another limiter would decide.
        self.refusals.removeAll()
        self.metrics.show(isFallbackActive: true)
        self.logger.warning(
            "Redis fails; rate limits are no longer shared with other replicas.",
            metadata: ["error": "\(error)", "when_redis_fails": "\(self.whenRedisFails.rawValue)"]
        )
    }

    /// Asks Redis about a separate bucket, with a write. Returns true if it answers.
    @discardableResult
    package func probe() async -> Bool {
        var failure: RedisClientError?
        do throws(RedisClientError) {
            try await self.reckonProbe(by: self.probes)
        } catch {
            failure = error
        }
        switch self.health.withLock({ $0.probed(isAnswered: failure == nil) }) {
        case .failed:
            if let failure { self.beginFallback(failure) }
        case .recovered:
            self.metrics.show(isFallbackActive: false)
            self.logger.notice("Redis is back; rate limits are shared with other replicas again.")
        case nil:
            break
        }
        return failure == nil
    }

    /// Asks Redis once, with time to connect.
    package func ask(timeout: Duration = .seconds(2)) async throws(RedisClientError) {
        try await self.reckonProbe(by: self.redis, timeout: timeout)
    }

    /// Asks Redis, and throws if it can't be used with this configuration. A server that can't be reached may still
    /// come up, so that is no error.
    package func verify(timeout: Duration = .seconds(2)) async throws(RedisClientError) {
        do throws(RedisClientError) {
            try await self.ask(timeout: timeout)
        } catch {
            switch error.code {
            case .authenticationFailed, .clusterNode:
                throw error
            case .unavailable, .timedOut, .connectionClosed, .invalidReply, .unusableServer, .tooManyCommands,
                .shutDown:
                if self.health.withLock({ $0.fail() }) { self.beginFallback(error) }
            }
        }
    }

    private func reckonProbe(by redis: RedisClient, timeout: Duration? = nil) async throws(RedisClientError) {
        let request = LimitRequest(
            tenant: LimitKey(Pseudonym(bytes: [])),
            policies: LimitPolicies(
                tenant: RatePolicy.tenantDefaults,
                device: [],
                deviceCollapsible: [],
                topic: []
            ),
            recipients: .tenantOnly(1),
            isCollapsible: false
        )
        var reckoning = LimitReckoning(request, jitter: self.jitter)
        try await self.reckon(&reckoning, charges: true, by: redis, timeout: timeout)
    }

    /// Limits must be shared within two seconds of Redis's return. The client takes up to half a second to connect, and
    /// the required probes follow.
    private static let probeInterval = Duration.milliseconds(200)

    /// Probes Redis while limits are not shared. Closes the clients at shutdown.
    package func run() async throws {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            if !self.health.withLock({ $0.isShared }) { await self.probe() }
            self.refusals.removeExpired(at: self.uptime())
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.probeInterval) }
        }
        await self.redis.shutdown()
        await self.probes.shutdown()
    }
}

extension LimitRequest {
    /// True if it charges the buckets of more than one device, so that a run takes long.
    fileprivate var isList: Bool { self.recipientCount > 1 || !self.members.isEmpty }
}
