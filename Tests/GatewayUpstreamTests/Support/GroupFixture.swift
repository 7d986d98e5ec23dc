import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

/// An emulator, a tenant with groups there, and a store that outlives each `DeviceGroups`.
struct GroupFixture: Sendable {
    static let senderID = "123456789012"

    let emulator: FCMEmulator
    let client: FCMClient
    let store = TestGroupStore()
    let profile: TenantProfile
    let audit: AuditLog

    /// Runs a body for a tenant of a legacy upstream.
    static func legacy(
        log: AttemptRecorder.Log = AttemptRecorder.Log(),
        _ body: @Sendable (GroupFixture) async throws -> Void
    ) async throws {
        try await Self.run(.legacy, log: log, body)
    }

    static func run(
        _ upstream: UpstreamKind,
        fanOut: Int = 100,
        log: AttemptRecorder.Log = AttemptRecorder.Log(),
        _ body: @Sendable (GroupFixture) async throws -> Void
    ) async throws {
        try await V1Fixture.run(fanOut: fanOut, log: log) { fixture in
            var tenant = try Tenant.sample()
            (tenant.upstream, tenant.senderID) = (upstream, Self.senderID)
            let legacy = LegacyCredential(serverKey: Secret("AAAA:server-key"), endpoint: fixture.endpoint)
            let profile = TenantProfile(
                tenant: tenant,
                legacyCredential: upstream == .legacy ? legacy : nil,
                v1Credential: upstream == .v1 ? fixture.credential : nil
            )
            let audit = AuditLog.sample(
                store: TestDatabase().auditStore,
                configuration: .sample(queueCapacity: 1_000_000)
            )
            let groups = Self(emulator: fixture.emulator, client: fixture.client, profile: profile, audit: audit)
            try await audit.whileRunning { try await body(groups) }
        }
    }

    /// A fresh instance over the same store and the same FCM, as after a restart.
    func groups(over upstream: (any GroupUpstream)? = nil) -> DeviceGroups {
        DeviceGroups(
            store: self.store,
            upstream: upstream ?? self.client,
            limiter: MemoryRateLimiter.withoutJitter(),
            audit: self.audit,
            clock: ManualClock()
        )
    }

    /// Sends a request to FCM without a store.
    @discardableResult
    func perform(
        _ request: GroupRequest,
        of profile: TenantProfile? = nil,
        deadline: Uptime = .now + .seconds(600),
        origin: RequestOrigin = .untraced
    ) async -> GroupResult {
        await self.client.perform(request, of: profile ?? self.profile, deadline: deadline, origin: origin)
    }

    /// A caller of the tenant with a deadline in ten minutes.
    func caller() throws -> Caller {
        try .sample(Principal(profile: self.profile, key: .sample(of: .generate())), timeLeft: .seconds(600))
    }

    /// The members at FCM; `nil` if there is no such group.
    func upstreamMembers(_ name: String) -> Set<String>? {
        self.emulator.members(ofGroup: name, senderID: Self.senderID).map(Set.init)
    }

    /// The requests to manage groups so far, oldest first.
    var requests: [JournalEntry] {
        self.emulator.journal().filter { $0.path.hasPrefix("/fcm/notification") }.reversed()
    }
}

func expectRefusal<T>(
    _ code: OutcomeCode,
    sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> T
) async {
    let refusal = await #expect(throws: Refusal.self, sourceLocation: sourceLocation) { _ = try await body() }
    #expect(refusal?.code == code, sourceLocation: sourceLocation)
}
