import FCMModel
package import GatewayCore
package import Logging
package import ServiceLifecycle
import ServiceLifecycleTestKit

extension Service {
    /// Runs during a body, then shuts down gracefully and waits for the end.
    package func whileRunning<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
        try await [self].whileRunning(body)
    }
}

extension BatchRunner {
    /// A runner of one process, which sends without a pace.
    package static func sample(
        store: any BatchStore,
        sends: IdempotentSends,
        limiter: any RateLimiter,
        directory: Directory,
        clock: any WallClock,
        pause: @escaping @Sendable (TenantProfile, Duration) -> Void = { _, _ in },
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
        decode: @escaping Decoder
    ) -> BatchRunner {
        BatchRunner(
            store: store,
            sends: sends,
            limiter: limiter,
            directory: directory,
            leases: .unshared,
            isShared: false,
            replicas: { 1 },
            room: { 1_000 },
            clock: clock,
            pause: pause,
            sleep: { _ in },
            metrics: metrics,
            logger: logger,
            decode: decode
        )
    }

    /// Commits what is created and sent during a body. Nothing is sent but by ``sendDue()``.
    package func whileWriting<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.runWriter() }
            defer { group.cancelAll() }
            return try await body()
        }
    }
}

extension Array where Element: Service {
    /// Runs all during a body, then shuts them down gracefully and waits for their end.
    package func whileRunning<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for service in self { group.addTask { try await service.run() } }
                let result = try await body()
                trigger.triggerGracefulShutdown()
                try await group.waitForAll()
                return result
            }
        }
    }
}

extension Directory {
    /// A directory with the sample master key. Its reads have no timeout unless a test sets one.
    package static func sample(
        store: any DirectoryStore,
        defaultLimits: LimitPolicies = LimitPolicies(),
        maxStale: Duration? = nil,
        uptime: @escaping @Sendable () -> Uptime = { .now },
        readingTimeout: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: .seconds(3_600)) },
        observer: @escaping @Sendable (DirectorySnapshot) -> Void = { _ in },
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    ) async throws -> Directory {
        try await Directory(
            store: store,
            masterKey: try .sample(),
            auditKey: .sample("audit"),
            defaultLimits: defaultLimits,
            maxStale: maxStale,
            uptime: uptime,
            readingTimeout: readingTimeout,
            observer: observer,
            metrics: metrics,
            logger: logger
        )
    }

    /// Applies a change to the current snapshot.
    package func apply(_ change: Directory.Change) async throws {
        guard try await self.apply(change, plannedAt: self.snapshot.version(of: change.tenant)) else {
            throw SampleError(what: "snapshot that shows its tenant")
        }
    }
}

extension AuditLog.Configuration {
    /// No pause between batches, a millisecond between attempts, and timeouts longer than a test.
    package static func sample(queueCapacity: Int = 10_000, commitTimeout: Duration = .seconds(600)) -> Self {
        var configuration = AuditLog.Configuration()
        configuration.queueRecords = queueCapacity
        configuration.flushInterval = .zero
        configuration.retryInterval = .milliseconds(1)
        configuration.commitTimeout = commitTimeout
        configuration.spoolAfter = .seconds(3_600)
        return configuration
    }
}

extension AuditLog {
    package static func sample(
        store: any AuditStore,
        spool: (any AuditSpoolFile)? = nil,
        spoolBytes: Int = 1 << 24,
        clock: any WallClock = ManualClock(),
        auditKey: Secret = .sample("audit"),
        configuration: AuditLog.Configuration = .sample(),
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
        afterCheckpoint: Int = 0,
        sharing: AuditSharing? = nil
    ) -> AuditLog {
        AuditLog(
            store: store,
            spool: spool.map { AuditSpool(file: $0, auditKey: auditKey, maxBytes: spoolBytes) },
            sealer: AuditSealer(auditKey: auditKey),
            clock: clock,
            configuration: configuration,
            metrics: metrics,
            logger: logger,
            afterCheckpoint: afterCheckpoint,
            sharing: sharing
        )
    }

    package func place(of tenant: UInt64 = noTenant) throws -> AuditLog.Reservation {
        guard let place = self.reserve(for: tenant) else { throw SampleError(what: "place in the audit") }
        return place
    }

    package var hasPlace: Bool {
        guard let place = self.reserve() else { return false }
        _ = consume place
        return true
    }
}

extension AuditRecord {
    package static func sample(_ action: String = "sample") -> AuditRecord {
        AuditRecord(
            time: .sample,
            tenant: nil,
            principal: "gateway",
            action: action,
            outcome: .done,
            requestID: "request"
        )
    }

    package var pseudonyms: [Pseudonym] {
        stride(from: 0, to: self.targets.count, by: Pseudonym.byteCount)
            .map { Pseudonym(bytes: self.targets[$0...].prefix(Pseudonym.byteCount)) }
    }
}

extension IdempotentRequest {
    /// A request with an empty message.
    package static func sample(_ key: IdempotencyKey) -> IdempotentRequest {
        IdempotentRequest(key: key, route: .messages, method: "POST", path: [], target: .token("t"), message: Message())
    }
}

extension IdempotentSends {
    /// Sends with an empty store. Only a test purges expired records; by default, the uptime follows the clock.
    package static func sample(
        pipeline: SendPipeline,
        store: any IdempotencyStore = TestIdempotencyStore(),
        clock: any WallClock,
        uptime: (@Sendable () -> Uptime)? = nil,
        startsPerMark: Int = 200,
        leases: LeaseTerms? = nil,
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    ) -> IdempotentSends {
        let (wall, start) = (clock.now(), Uptime.now)
        var configuration = IdempotentSends.Configuration()
        configuration.startsPerMark = startsPerMark
        configuration.purgeInterval = .seconds(3_600)
        configuration.purgeBatch = 2
        return IdempotentSends(
            pipeline: pipeline,
            store: store,
            clock: clock,
            uptime: uptime ?? { start.advanced(by: .microseconds(clock.now().microseconds - wall.microseconds)) },
            configuration: configuration,
            leases: leases,
            metrics: metrics,
            logger: logger
        )
    }
}

extension RetiredTokens.Configuration {
    /// A running service writes immediately. Only a test settles and trims.
    package static func sample(
        queueCapacity: Int = 50_000,
        queueBytes: Int = 32 * 1024 * 1024,
        maxEntries: Int = 2_000_000
    ) -> Self {
        var configuration = RetiredTokens.Configuration()
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
    package static func sample(
        store: (any RetiredTokenStore)? = nil,
        clock: any WallClock,
        configuration: RetiredTokens.Configuration = .sample(),
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
        profiles: @escaping @Sendable () -> [TenantProfile] = { [] }
    ) -> RetiredTokens {
        RetiredTokens(
            store: store ?? TestRetiredTokenStore(clock: clock),
            clock: clock,
            configuration: configuration,
            metrics: metrics,
            logger: logger,
            profiles: profiles
        )
    }

    /// Does the service's periodic work: writes reports and counts, feeds due tokens, and reads the news.
    package func settleAndFlush() async {
        await self.flush()
        // The second settling judges the counts of the first.
        await self.settle()
        await self.flush()
        await self.settle()
    }
}
