import FCMModel
import GatewayCore
import Logging

extension Micro {
    /// How long one look at the list of retired tokens takes.
    static func screening() async throws -> [String] {
        let count = 1_000_000
        let now = Timestamp(microseconds: 1_700_000_000_000_000)
        guard let tenant = TenantID("tenant") else { return [] }
        let entries = (0..<count)
            .map { number in
                RetiredToken.Entry(
                    tenant: tenant,
                    key: UInt64(number) &* 0x9E37_79B9_7F4A_7C15,
                    state: .unregistered,
                    reportedAt: now,
                    replacement: 0
                )
            }
        let empty = try await Self.screen("look for a token in an empty list of retired ones", [], tenant, now)
        let full = try await Self.screen("look for a token in a list of a million retired ones", entries, tenant, now)
        return [empty.row, full.row]
    }

    private static func screen(
        _ name: String,
        _ entries: [RetiredToken.Entry],
        _ tenant: TenantID,
        _ now: Timestamp
    ) async throws -> Measurement {
        let pseudonymizer = Pseudonymizer(auditKey: Secret(randomBytes: 32), tenantSalt: [1])
        let profile = TenantProfile(
            tenant: Tenant(id: tenant, displayName: "tenant", upstream: .legacy, createdAt: now, updatedAt: now),
            legacyCredential: nil,
            v1Credential: nil,
            storedCredentials: [],
            limits: LimitPolicies(),
            pseudonymizer: pseudonymizer
        )
        let list = RetiredTokens(
            store: FixedList(entries: entries),
            clock: SystemWallClock(),
            logger: Logger(label: "micro") { _ in SwiftLogNoOpLogHandler() },
            profiles: { [profile] }
        )
        try await list.load()
        let strangers = (0..<1_000).map { [pseudonymizer.pseudonym(of: "stranger \($0)")] }
        let target = Target.token("token")
        return await Measurement.measure(name, operations: 1_000_000) {
            for _ in 0..<1_000 {
                for stranger in strangers { _ = list.screen(target, stranger, of: profile, at: now) }
            }
        }
    }
}

/// A list that is read once and never written.
private struct FixedList: RetiredTokenStore {
    let entries: [RetiredToken.Entry]

    private static let readAt = Timestamp(microseconds: 0)

    func load() async throws(GatewayError) -> (entries: [RetiredToken.Entry], readAt: Timestamp) {
        (self.entries, Self.readAt)
    }

    func apply(_ changes: [RetiredToken.Change]) async throws(GatewayError) {}

    func remove(_ key: UInt64, of owner: RetiredToken.Owner) async throws(GatewayError) -> Bool { false }

    func settle(newsSince moment: Timestamp) async throws(GatewayError) -> RetiredTokenFeed.News {
        RetiredTokenFeed.News(spiking: [], changed: [], readAt: Self.readAt)
    }

    func feed(
        of owner: RetiredToken.Owner,
        after cursor: RetiredTokenFeed.Cursor?,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed {
        let end = RetiredTokenFeed.Cursor(epoch: "", position: 0)
        return RetiredTokenFeed(tokens: [], cursor: cursor ?? end, hasMore: false)
    }

    func trim(reportedBefore: Timestamp, keeping: Int) async throws(GatewayError) {}
}
