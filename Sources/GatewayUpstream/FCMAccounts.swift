import EventLoopHTTP
import FCMModel
import GatewayCore
import Synchronization

/// What the calls of one tenant by one of its credentials share.
///
/// Another credential, or another tenant of the same name, has another account, whose breakers begin closed.
final class FCMAccount: Sendable {
    enum Credential {
        case serverKey(version: Int, endpoint: String?)
        case serviceAccount(ServiceAccountCredential)
    }

    /// How long v1's own API for topics is believed to be missing.
    private static let topicAPIMiss = Duration.seconds(600)

    /// The server that messages and device groups go to.
    let pool: HTTPClientPool
    let authorizer: Authorizer
    /// The project that calls by v1 are for; empty for a server key.
    let projectID: String
    /// Where messages go by v1.
    let messagePath: String
    private let credential: Credential
    private let tenantID: TenantID
    /// Tells a tenant from an earlier one of the same name.
    private let tenant: LimitKey
    private let messagingAPI: FCMAPI
    private let messaging: UpstreamHealth
    private let others = Mutex<[FCMAPI: UpstreamHealth]>([:])
    /// Until when v1's own API for topics is not asked, so that not every request finds out anew that it is not there.
    private let topicAPIMissingUntil = Mutex<ContinuousClock.Instant?>(nil)
    private let metrics: ResilienceMetrics

    init(
        _ credential: Credential,
        by authorizer: Authorizer,
        _ messagingAPI: FCMAPI,
        projectID: String,
        of profile: TenantProfile,
        pool: HTTPClientPool,
        metrics: ResilienceMetrics
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

    /// Whether the account is right for a tenant's present credential and project; for no tenant it never is.
    func serves(_ profile: TenantProfile?) -> Bool {
        guard let profile, self.tenant == profile.limitKey else { return false }
        switch self.credential {
        case .serverKey(let version, let endpoint):
            guard let present = profile.legacyCredential else { return false }
            return version == profile.legacyCredentialVersion && endpoint == present.endpoint
        case .serviceAccount(let credential):
            guard let present = profile.v1Credential else { return false }
            return
                (credential === present
                || (credential.fingerprint == present.fingerprint && credential.endpoint == present.endpoint))
                && self.projectID == profile.v1ProjectID
        }
    }

    func isTopicAPIMissing(at now: ContinuousClock.Instant) -> Bool {
        self.topicAPIMissingUntil.withLock { $0.map { now < $0 } ?? false }
    }

    func noteTopicAPI(isMissing: Bool, at now: ContinuousClock.Instant) {
        self.topicAPIMissingUntil.withLock { $0 = isMissing ? now.advanced(by: Self.topicAPIMiss) : nil }
    }

    /// No calls but those under way ask any more.
    func retire() {
        self.messaging.retire()
    }
}

/// The tenants' accounts, each made with its first call and again when its credential changes.
final class FCMAccounts: Sendable {
    private struct Key: Hashable {
        let tenant: TenantID
        let kind: UpstreamKind

        /// By the tenant alone, which has two at most: a kind is hashed as text.
        func hash(into hasher: inout Hasher) {
            hasher.combine(self.tenant)
        }
    }

    private struct State {
        var accounts: [Key: FCMAccount] = [:]
        /// `nil` before they were told.
        var tenants: [TenantID: TenantProfile]?
    }

    private let state = Mutex(State())
    private let settings: UpstreamSettings
    private let pools: OriginPools
    private let tokens: AccessTokens
    private let metrics: ResilienceMetrics

    init(settings: UpstreamSettings, pools: OriginPools, tokens: AccessTokens, metrics: ResilienceMetrics) {
        self.settings = settings
        self.pools = pools
        self.tokens = tokens
        self.metrics = metrics
    }

    var count: Int { self.state.withLock { $0.accounts.count } }

    /// Drops the accounts of all other tenants and of replaced credentials; calls under way keep theirs.
    func keep(_ tenants: [TenantID: TenantProfile]) {
        // The earlier tenants are released after the lock, which every send takes.
        let (forgotten, _) = self.state.withLock { state in
            let earlier = state.tenants
            state.tenants = tenants
            let forgotten = state.accounts.filter { key, account in !account.serves(tenants[key.tenant]) }
            for key in forgotten.keys { state.accounts[key] = nil }
            return (forgotten.values, earlier)
        }
        for account in forgotten { account.retire() }
    }

    /// A tenant's account by a protocol: `nil` without a credential for it, a failure where its server can't be called.
    func account(of profile: TenantProfile, _ kind: UpstreamKind) -> Result<FCMAccount, CallFailure>? {
        let key = Key(tenant: profile.id, kind: kind)
        if let known = self.state.withLock({ $0.accounts[key] }), known.serves(profile) { return .success(known) }
        return self.makeAccount(of: profile, kind)?
            .map { account in
                self.state.withLock { state in
                    if let earlier = state.accounts[key], earlier.serves(profile) { return earlier }
                    // A call may still be under way for a tenant that is gone, or by a credential that was replaced.
                    if let tenants = state.tenants, !account.serves(tenants[profile.id]) { return account }
                    state.accounts[key] = account
                    return account
                }
            }
    }

    private func makeAccount(of profile: TenantProfile, _ kind: UpstreamKind) -> Result<FCMAccount, CallFailure>? {
        switch kind {
        case .legacy:
            profile.legacyCredential.map { credential in
                self.pools.pool(for: credential.endpoint ?? self.settings.configuration.legacyEndpoint)
                    .map { pool in
                        FCMAccount(
                            .serverKey(version: profile.legacyCredentialVersion, endpoint: credential.endpoint),
                            by: .fixed(Authorization(serverKey: credential.serverKey)),
                            .legacy,
                            projectID: "",
                            of: profile,
                            pool: pool,
                            metrics: self.metrics
                        )
                    }
            }
        case .v1:
            profile.v1Credential.map { credential in
                self.pools.pool(for: credential.endpoint ?? self.settings.configuration.v1Endpoint)
                    .map { pool in
                        FCMAccount(
                            .serviceAccount(credential),
                            // A token does not depend on where it is used.
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
    }
}
