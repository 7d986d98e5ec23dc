import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import Logging
import NIOPosix
import ServiceLifecycle

@testable import GatewayUpstream

/// An emulator, a tenant whose groups live there, and a store that outlives whoever manages them.
struct GroupFixture: Sendable {
    static let senderID = "123456789012"

    let emulator: FCMEmulator
    let sender: GroupSender
    let store = InMemoryGroupStore()
    let profile: TenantProfile
    let audit: AuditLog

    /// Runs a body for a tenant of a legacy upstream.
    static func legacy(
        log: AttemptLog = AttemptLog(),
        _ body: @Sendable (GroupFixture) async throws -> Void
    ) async throws {
        try await Self.run { emulator, endpoint, tokens, _ in
            let credential = LegacyCredential(serverKey: Secret("AAAA:server-key"), endpoint: endpoint)
            try await Self.run(emulator, tokens: tokens, upstream: .legacy, credential, nil, log: log, body)
        }
    }

    /// Runs a body for a tenant of a v1 upstream.
    static func v1(
        log: AttemptLog = AttemptLog(),
        _ body: @Sendable (GroupFixture) async throws -> Void
    ) async throws {
        try await Self.run { emulator, endpoint, tokens, hosts in
            let file = try await emulator.makeServiceAccount(projectID: "demo-project")
            let credential = try ServiceAccountCredential(
                json: Array(file.json.utf8),
                endpoint: endpoint,
                allowing: hosts
            )
            try await Self.run(emulator, tokens: tokens, upstream: .v1, nil, credential, log: log, body)
        }
    }

    /// Runs a body with an emulator and what gets access tokens from it.
    private static func run(
        _ body: (FCMEmulator, _ endpoint: String, AccessTokens, TokenHosts) async throws -> Void
    ) async throws {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let clock = ManualClock(at: SystemWallClock().now())
        let emulator = FCMEmulator(configuration: EmulatorConfiguration(port: 0), logger: logger)
        try await Self.whileRunning(emulator, logger) {
            let endpoint = try await emulator.baseURL()
            let hosts = TokenHosts([String(endpoint.dropFirst("http://".count))])
            let settings = UpstreamSettings.sample(tokenHosts: hosts, client: .patient) { $0.v1Endpoint = endpoint }
            let exchange = JWTBearerExchange(
                settings: settings,
                eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
                clock: clock,
                logger: logger
            )
            let tokens = AccessTokens(exchange: exchange)
            try await Self.whileRunning(tokens, logger) {
                try await body(emulator, endpoint, tokens, hosts)
            }
        }
    }

    private static func run(
        _ emulator: FCMEmulator,
        tokens: AccessTokens,
        upstream: UpstreamKind,
        _ legacy: LegacyCredential?,
        _ v1: ServiceAccountCredential?,
        log: AttemptLog,
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
        let pools = OriginPools.sample()
        let sender = GroupSender(
            settings: .sample(),
            pools: pools,
            accounts: V1Accounts(defaultEndpoint: try await emulator.baseURL(), pools: pools, tokens: tokens),
            clock: ManualClock(),
            log: log
        )
        let audit = AuditLog.sample(store: InMemoryAuditStore(), configuration: .sample(queueCapacity: 1_000_000))
        let fixture = GroupFixture(emulator: emulator, sender: sender, profile: profile, audit: audit)
        let result = await Self.result { try await audit.whileRunning { try await body(fixture) } }
        await pools.shutdown()
        try result.get()
    }

    private init(emulator: FCMEmulator, sender: GroupSender, profile: TenantProfile, audit: AuditLog) {
        self.emulator = emulator
        self.sender = sender
        self.profile = profile
        self.audit = audit
    }

    /// A fresh instance over the same store and the same FCM, as after a restart.
    func groups(over upstream: (any GroupUpstream)? = nil) -> DeviceGroups {
        DeviceGroups(
            store: self.store,
            upstream: upstream ?? self.sender,
            limiter: MemoryRateLimiter(),
            audit: self.audit,
            clock: ManualClock()
        )
    }

    /// The tenant, waiting ten minutes.
    func caller() throws -> GroupCaller {
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

    private static func result(_ body: () async throws -> Void) async -> Result<Void, any Error> {
        do {
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }

    private static func whileRunning(
        _ service: any Service,
        _ logger: Logger,
        _ body: () async throws -> Void
    ) async throws {
        let services = ServiceGroup(configuration: ServiceGroupConfiguration(services: [service], logger: logger))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await services.run() }
            let result = await Self.result(body)
            await services.triggerGracefulShutdown()
            try await group.waitForAll()
            try result.get()
        }
    }
}
