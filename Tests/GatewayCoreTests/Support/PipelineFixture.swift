import FCMModel
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayCore

/// A send pipeline with test doubles for its dependencies.
struct PipelineFixture {
    let clock: ManualClock
    let store = InMemoryAuditStore()
    let metrics = TestMetrics()
    let limiter: MemoryRateLimiter
    let retiredStore: TestRetiredTokenStore
    let retired: RetiredTokens
    let upstream: ScriptedUpstream
    let audit: AuditLog
    let pipeline: SendPipeline

    init(
        queueCapacity: Int = 100,
        isStrict: Bool = false,
        spool: InMemorySpoolFile? = nil,
        commitTimeout: Duration = .seconds(600),
        clock: ManualClock = ManualClock(),
        retiredStore: TestRetiredTokenStore? = nil,
        retiredConfiguration: RetiredTokens.Configuration = .sample(),
        profiles: [TenantProfile] = [],
        upstream respond: @escaping ScriptedUpstream.Responder = { ScriptedUpstream.accepting($0) }
    ) {
        self.clock = clock
        let retiredStore = retiredStore ?? TestRetiredTokenStore(clock: clock)
        self.limiter = MemoryRateLimiter.withoutJitter(metrics: GatewayMetrics(factory: self.metrics))
        self.upstream = ScriptedUpstream(respond)
        self.retiredStore = retiredStore
        self.retired = .sample(
            store: retiredStore,
            clock: self.clock,
            configuration: retiredConfiguration,
            metrics: GatewayMetrics(factory: self.metrics),
            profiles: { profiles }
        )
        var configuration = AuditLog.Configuration.sample(queueCapacity: queueCapacity, commitTimeout: commitTimeout)
        configuration.mode = isStrict ? .strict : .bounded
        self.audit = .sample(store: self.store, spool: spool, clock: self.clock, configuration: configuration)
        self.pipeline = SendPipeline(
            retired: self.retired,
            limiter: self.limiter,
            upstream: self.upstream,
            audit: self.audit,
            clock: self.clock,
            metrics: GatewayMetrics(factory: self.metrics)
        )
    }

    /// The records of all sends so far. It runs the audit log, so it can be called once.
    func records() async throws -> [AuditRecord] {
        try await self.audit.whileRunning {}
        return self.store.current.records.map(\.record).filter { $0.action.hasPrefix("message.") }
    }

    func record() async throws -> AuditRecord {
        let records = try await self.records()
        #expect(records.count == 1)
        return try #require(records.first)
    }
}

extension Target {
    static func condition(parsing text: String) throws -> Target {
        .condition(try TopicCondition(parsing: text))
    }

    static func topic(named name: String) throws -> Target {
        .topic(try #require(TopicName(name)))
    }
}
