import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit

@testable import GatewayUpstream

/// An emulator, a tenant whose groups live there, and a store that outlives whoever manages them.
struct GroupFixture: Sendable {
    static let senderID = "123456789012"

    let emulator: FCMEmulator
    let client: FCMClient
    let store = InMemoryGroupStore()
    let profile: TenantProfile
    let audit: AuditLog

    /// Runs a body for a tenant of a legacy upstream.
    static func legacy(
        log: AttemptLog = AttemptLog(),
        _ body: @Sendable (GroupFixture) async throws -> Void
    ) async throws {
        try await V1Fixture.run(log: log) { fixture in
            let credential = LegacyCredential(serverKey: Secret("AAAA:server-key"), endpoint: fixture.endpoint)
            try await Self.run(fixture, upstream: .legacy, credential, nil, body)
        }
    }

    /// Runs a body for a tenant of a v1 upstream.
    static func v1(
        log: AttemptLog = AttemptLog(),
        _ body: @Sendable (GroupFixture) async throws -> Void
    ) async throws {
        try await V1Fixture.run(log: log) { fixture in
            try await Self.run(fixture, upstream: .v1, nil, fixture.credential, body)
        }
    }

    private static func run(
        _ fixture: V1Fixture,
        upstream: UpstreamKind,
        _ legacy: LegacyCredential?,
        _ v1: ServiceAccountCredential?,
        _ body: @Sendable (GroupFixture) async throws -> Void
    ) async throws {
        var tenant = try Tenant.sample()
        tenant.upstream = upstream
        tenant.senderID = Self.senderID
        let profile = TenantProfile(
            tenant: tenant,
            legacyCredential: legacy,
            v1Credential: v1,
            storedCredentials: [],
            limits: LimitPolicies(),
            pseudonymizer: .sample()
        )
        let audit = AuditLog.sample(store: InMemoryAuditStore(), configuration: .sample(queueCapacity: 1_000_000))
        let groups = GroupFixture(emulator: fixture.emulator, client: fixture.client, profile: profile, audit: audit)
        try await audit.whileRunning { try await body(groups) }
    }

    private init(emulator: FCMEmulator, client: FCMClient, profile: TenantProfile, audit: AuditLog) {
        self.emulator = emulator
        self.client = client
        self.profile = profile
        self.audit = audit
    }

    /// A fresh instance over the same store and the same FCM, as after a restart.
    func groups(over upstream: (any GroupUpstream)? = nil) -> DeviceGroups {
        DeviceGroups(
            store: self.store,
            upstream: upstream ?? self.client,
            limiter: MemoryRateLimiter(),
            audit: self.audit,
            clock: ManualClock()
        )
    }

    /// The tenant, waiting ten minutes.
    func caller() throws -> Caller {
        try .sample(Principal(profile: self.profile, key: .sample(of: .generate())), timeLeft: .seconds(600))
    }

    /// The members at FCM; `nil` where there is no such group.
    func upstreamMembers(_ name: String) -> Set<String>? {
        self.emulator.members(ofGroup: name, senderID: Self.senderID).map(Set.init)
    }

    /// The requests to manage groups so far, oldest first.
    var requests: [JournalEntry] {
        self.emulator.journal().filter { $0.path.hasPrefix("/fcm/notification") }.reversed()
    }
}
