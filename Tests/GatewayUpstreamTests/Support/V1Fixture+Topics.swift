import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

extension V1Fixture {
    /// A tenant with a server key, or one with a service account.
    func profile(
        _ upstream: UpstreamKind = .v1,
        isBare: Bool = false,
        endpoint: String? = nil
    ) throws -> TenantProfile {
        var tenant = try Tenant.sample()
        tenant.upstream = upstream
        let legacy = LegacyCredential(serverKey: Secret("AAAA:server-key"), endpoint: endpoint)
        let account = try endpoint.map { try V1Credential.sample(endpoint: $0) } ?? self.credential
        return TenantProfile(
            tenant: tenant,
            legacyCredential: upstream == .legacy && !isBare ? legacy : nil,
            v1Credential: upstream == .v1 && !isBare ? account : nil
        )
    }

    func change(
        _ change: SubscriptionChange,
        _ tokens: [String],
        topic: String = "news",
        of profile: TenantProfile? = nil,
        timeLeft: Duration = .seconds(600)
    ) async throws -> SubscriptionResult {
        await self.client.change(
            try .sample(tokens, change, topic: topic, of: profile ?? self.profile(), timeLeft: timeLeft)
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

    func look(
        up token: String,
        _ part: RegistrationCall.Part = .subscriptions,
        of profile: TenantProfile? = nil
    ) async throws -> RegistrationResult {
        await self.client.lookUp(try .sample(token, part, of: profile ?? self.profile()))
    }

    /// The requests about subscriptions so far, oldest first.
    var topicRequests: [JournalEntry] {
        self.emulator.journal().filter { $0.path.hasPrefix("/iid/") || $0.path.contains("topicSubscriptions") }
            .reversed()
    }
}

extension SubscriptionResult {
    /// The codes of the outcomes, `nil` for success.
    var codes: [OutcomeCode?] {
        self.outcomes.map { outcome in
            switch outcome {
            case .done: nil
            case .rejected(let rejection): rejection.code
            }
        }
    }
}

extension RegistrationResult {
    /// The registration, if it was found.
    var found: RegistrationInfo? { try? self.answer.get() }
}

extension JournalEntry {
    /// A request's field by its name in lower case.
    func field(_ name: String) -> String? {
        self.headers.first { $0.name.lowercased() == name }?.value
    }
}

extension SubscriptionCall {
    static func sample(
        _ tokens: [String],
        _ change: SubscriptionChange = .subscribe,
        topic: String = "news",
        kind: RetiredToken.Kind = .token,
        of profile: TenantProfile,
        origin: RequestOrigin = .sample,
        timeLeft: Duration = .seconds(600)
    ) throws -> SubscriptionCall {
        SubscriptionCall(
            change,
            of: tokens,
            kind,
            to: try #require(TopicName(topic)),
            by: Caller(
                principal: Principal(profile: profile, key: try .sample(of: .generate())),
                origin: origin,
                deadline: .now + timeLeft
            )
        )
    }
}

extension RegistrationCall {
    static func sample(
        _ token: String,
        _ part: Part,
        kind: RetiredToken.Kind = .token,
        of profile: TenantProfile,
        origin: RequestOrigin = .sample
    ) throws -> RegistrationCall {
        RegistrationCall(
            part,
            of: token,
            kind,
            by: Caller(
                principal: Principal(profile: profile, key: try .sample(of: .generate())),
                origin: origin,
                deadline: .now + .seconds(600)
            )
        )
    }
}
