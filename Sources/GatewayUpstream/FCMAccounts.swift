import EventLoopHTTP
import FCMModel
import GatewayCore
import Synchronization

/// The state that one tenant's calls by one of its credentials share.
///
/// Another credential, or another tenant of the same name, gets another account; its breakers begin closed.
final class FCMAccount: Sendable {
    enum Credential {
        case serverKey(digest: UInt64, endpoint: String?)
        case v1(V1Credential)
    }

    /// The time for which v1's own API for topics is assumed to be missing.
    private static let topicAPIMiss = Duration.seconds(600)

    /// The server that messages and device groups go to.
    let pool: HTTPClientPool
    let authorizer: Authorizer
    /// The project of calls by v1; empty for a server key.
    let projectID: String
    /// The path of messages by v1.
    let messagePath: String
    private let credential: Credential
    private let tenantID: TenantID
    /// Distinguishes a tenant from an earlier one of the same name.
    private let tenant: LimitKey
    private let messagingAPI: FCMAPI
    private let messaging: UpstreamHealth
    private let others = Mutex<[FCMAPI: UpstreamHealth]>([:])
    /// Until then v1's own API for topics is not called, so that not every request rediscovers that it is missing.
    private let topicAPIMissingUntil = Mutex<Uptime?>(nil)
    private let metrics: UpstreamHealth.Metrics

    init(
        _ credential: Credential,
        by authorizer: Authorizer,
        _ messagingAPI: FCMAPI,
        projectID: String,
        of profile: TenantProfile,
        pool: HTTPClientPool,
        metrics: UpstreamHealth.Metrics
    ) {
        self.credential = credential
        self.authorizer = authorizer
        self.messagingAPI = messagingAPI
        (self.projectID, self.messagePath) = (projectID, V1Path.send(project: projectID))
        (self.tenantID, self.tenant) = (profile.id, profile.limitKey)
        self.pool = pool
        self.messaging = UpstreamHealth(messagingAPI, of: profile.id, metrics: metrics)
        self.metrics = metrics
    }

    func health(of api: FCMAPI) -> UpstreamHealth {
        if api == self.messagingAPI { return self.messaging }
        return self.others.withLock { others in
            if let known = others[api] { return known }
            let made = UpstreamHealth(api, of: self.tenantID, metrics: self.metrics)
            others[api] = made
            return made
        }
    }

    /// True if the account fits a tenant's present credential and project; false without a tenant.
    func serves(_ profile: TenantProfile?) -> Bool {
        guard let profile, self.tenant == profile.limitKey else { return false }
        switch self.credential {
        case .serverKey(let digest, let endpoint):
            guard let present = profile.legacyCredential else { return false }
            return digest == present.digest && endpoint == present.endpoint
        case .v1(let credential):
            guard let present = profile.v1Credential else { return false }
            return
                (credential === present
                || (credential.fingerprint == present.fingerprint && credential.endpoint == present.endpoint))
                && self.projectID == profile.v1ProjectID
        }
    }

    /// Stops messages for a while.
    func pause(for time: Duration, at now: Uptime) {
        self.messaging.pause(for: time, at: now)
    }

    func isTopicAPIMissing(at now: Uptime) -> Bool {
        self.topicAPIMissingUntil.withLock { $0.map { now < $0 } ?? false }
    }

    func noteTopicAPI(isMissing: Bool, at now: Uptime) {
        self.topicAPIMissingUntil.withLock { $0 = isMissing ? now.advanced(by: Self.topicAPIMiss) : nil }
    }

    /// Retires the account: only calls under way still use it.
    func retire() {
        self.messaging.retire()
    }
}

/// The tenants' accounts, each made with its first call and again when its credential changes.
final class FCMAccounts: Sendable {
    private struct Key: Hashable {
        let tenant: TenantID
        let kind: UpstreamKind

        /// Hashes the tenant only, which has at most two accounts: hashing a kind would hash text.
        func hash(into hasher: inout Hasher) {
            hasher.combine(self.tenant)
        }
    }

    private struct State {
        var accounts: [Key: FCMAccount] = [:]
        /// `nil` until they are first set.
        var tenants: [TenantID: TenantProfile]?
    }

    private let state = Mutex(State())
    private let settings: UpstreamSettings
    private let pools: OriginPools
    private let tokens: AccessTokens
    private let metrics: UpstreamHealth.Metrics

    init(settings: UpstreamSettings, pools: OriginPools, tokens: AccessTokens, metrics: UpstreamHealth.Metrics) {
        self.settings = settings
        self.pools = pools
        self.tokens = tokens
        self.metrics = metrics
    }

    var count: Int { self.state.withLock { $0.accounts.count } }

    /// Drops the accounts of all other tenants and of replaced credentials; calls under way keep theirs.
    func keep(_ tenants: [TenantID: TenantProfile]) {
        // The earlier tenants are released outside the lock, because every send takes it.
        let (forgotten, _) = self.state.withLock { state in
            let earlier = state.tenants
            state.tenants = tenants
            let forgotten = state.accounts.filter { key, account in !account.serves(tenants[key.tenant]) }
            for key in forgotten.keys { state.accounts[key] = nil }
            return (forgotten.values, earlier)
        }
        for account in forgotten { account.retire() }
    }

    /// A tenant's account by a protocol; `nil` without a credential for it. Throws if its server can't be called.
    func account(of profile: TenantProfile, _ kind: UpstreamKind) throws(CallFailure) -> FCMAccount? {
        let key = Key(tenant: profile.id, kind: kind)
        if let known = self.state.withLock({ $0.accounts[key] }), known.serves(profile) { return known }
        guard let account = try self.makeAccount(of: profile, kind) else { return nil }
        return self.state.withLock { state in
            if let earlier = state.accounts[key], earlier.serves(profile) { return earlier }
            // A call may still be under way for a deleted tenant or by a replaced credential.
            if let tenants = state.tenants, !account.serves(tenants[profile.id]) { return account }
            state.accounts[key] = account
            return account
        }
    }

    private func makeAccount(of profile: TenantProfile, _ kind: UpstreamKind) throws(CallFailure) -> FCMAccount? {
        let endpoint = self.settings.configuration.endpoint(for: profile, by: kind)
        switch kind {
        case .legacy:
            guard let credential = profile.legacyCredential else { return nil }
            let pool = try self.pools.pool(for: endpoint)
            return FCMAccount(
                .serverKey(digest: credential.digest, endpoint: credential.endpoint),
                by: .fixed(Authorization(serverKey: credential.serverKey)),
                .legacy,
                projectID: "",
                of: profile,
                pool: pool,
                metrics: self.metrics
            )
        case .v1:
            guard let credential = profile.v1Credential else { return nil }
            let pool = try self.pools.pool(for: endpoint)
            return FCMAccount(
                .v1(credential),
                // A token is valid at every endpoint.
                by: .tokens(self.tokens.source(for: credential)),
                .v1,
                projectID: profile.v1ProjectID ?? credential.projectID,
                of: profile,
                pool: pool,
                metrics: self.metrics
            )
        }
    }
}
