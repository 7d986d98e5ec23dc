import CoreMetrics
import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import Logging
import NIOPosix
import Testing

@testable import GatewayUpstream

/// An emulator, and what keeps subscriptions there for tenants of both protocols.
struct TopicFixture: Sendable {
    let v1: V1Fixture
    let caller: TopicCaller

    /// Runs a body, then shuts everything down.
    static func run(
        api: TopicAPI = .v1,
        fanOut: Int = 100,
        metrics: any MetricsFactory = NOOPMetricsHandler.instance,
        log: AttemptLog = AttemptLog(),
        _ body: (TopicFixture) async throws -> Void
    ) async throws {
        try await V1Fixture.run { fixture in
            let caller = TopicCaller(
                settings: .sample {
                    $0.v1Endpoint = fixture.endpoint
                    $0.iidEndpoint = fixture.endpoint
                    $0.topicAPI = api
                    $0.fanOut = fanOut
                },
                accounts: fixture.accounts,
                pools: fixture.pools,
                clock: fixture.clock,
                metrics: GatewayMetrics(factory: metrics),
                log: log
            )
            try await body(TopicFixture(v1: fixture, caller: caller))
        }
    }

    var emulator: FCMEmulator { self.v1.emulator }

    /// A tenant with a server key, or one with a service account.
    func profile(
        _ upstream: UpstreamKind = .v1,
        isBare: Bool = false,
        endpoint: String? = nil,
        projectID: String? = nil
    ) throws -> TenantProfile {
        var tenant = try Tenant.sample()
        tenant.upstream = upstream
        tenant.projectID = projectID
        let legacy = LegacyCredential(serverKey: Secret("AAAA:server-key"), endpoint: endpoint)
        let account = try endpoint.map { try ServiceAccountCredential.sample(endpoint: $0) } ?? self.v1.credential
        return TenantProfile(
            tenant: tenant,
            legacyCredential: upstream == .legacy && !isBare ? legacy : nil,
            v1Credential: upstream == .v1 && !isBare ? account : nil,
            storedCredentials: [],
            limits: LimitPolicies(),
            pseudonymizer: .sample()
        )
    }

    /// Changes subscriptions to a topic.
    func change(
        _ change: SubscriptionChange,
        _ tokens: [String],
        topic: String = "news",
        of profile: TenantProfile? = nil,
        timeLeft: Duration = .seconds(600)
    ) async throws -> SubscriptionResult {
        await self.caller.change(
            SubscriptionCall(
                profile: try profile ?? self.profile(),
                change: change,
                topic: try #require(TopicName(topic)),
                tokens: tokens,
                deadline: .now + timeLeft,
                origin: .sample
            )
        )
    }

    /// Subscribes devices to a topic.
    func change(
        _ tokens: [String],
        topic: String = "news",
        of profile: TenantProfile? = nil,
        timeLeft: Duration = .seconds(600)
    ) async throws -> SubscriptionResult {
        try await self.change(.subscribe, tokens, topic: topic, of: profile, timeLeft: timeLeft)
    }

    /// Looks a device up.
    func look(
        up token: String,
        _ part: RegistrationCall.Part = .subscriptions,
        of profile: TenantProfile? = nil
    ) async throws -> RegistrationResult {
        await self.caller.look(
            up: RegistrationCall(
                profile: try profile ?? self.profile(),
                token: token,
                part: part,
                deadline: .now + .seconds(600),
                origin: .sample
            )
        )
    }

    /// The requests about subscriptions so far, oldest first.
    var requests: [JournalEntry] {
        self.emulator.journal().filter { $0.path.hasPrefix("/iid/") || $0.path.contains("topicSubscriptions") }
            .reversed()
    }

    /// The codes of a result; `nil` for what is done.
    static func codes(_ result: SubscriptionResult) -> [OutcomeCode?] {
        result.outcomes.map { outcome in
            switch outcome {
            case .done: nil
            case .rejected(let rejection): rejection.code
            }
        }
    }
}

extension JournalEntry {
    /// A request's field by its name in lower case.
    func field(_ name: String) -> String? {
        self.headers.first { $0.name.lowercased() == name }?.value
    }
}
