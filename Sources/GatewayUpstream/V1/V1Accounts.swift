import EventLoopHTTP
import FCMModel
package import GatewayCore
import Synchronization

/// The tenants' accounts, each made with its first call and again when its credential changes.
///
/// Whatever calls FCM for a tenant goes by the same one, and so by the same access token.
package final class V1Accounts: Sendable {
    private struct State {
        var accounts: [TenantID: V1Account] = [:]
        /// The tenants that there are; nil before that was told.
        var tenants: [TenantID: TenantProfile]?
    }

    private let state = Mutex(State())
    private let defaultEndpoint: String
    private let pools: OriginPools
    private let tokens: AccessTokens
    private let metrics: ResilienceMetrics

    /// No accounts yet.
    ///
    /// Without the service of access tokens running, calls wait until their deadline.
    package init(
        defaultEndpoint: String,
        pools: OriginPools,
        tokens: AccessTokens,
        metrics: GatewayMetrics = GatewayMetrics()
    ) {
        self.defaultEndpoint = defaultEndpoint
        self.pools = pools
        self.tokens = tokens
        self.metrics = ResilienceMetrics(.v1, metrics)
    }

    /// How many accounts are known.
    var count: Int { self.state.withLock { $0.accounts.count } }

    /// Forgets the accounts of all but these tenants, and those of credentials that were replaced; calls that are under way
    /// go on by theirs.
    package func keep(_ tenants: [TenantID: TenantProfile]) {
        let forgotten = self.state.withLock { state in
            state.tenants = tenants
            let forgotten = state.accounts.filter { id, account in !account.serves(tenants[id]) }
            for id in forgotten.keys { state.accounts[id] = nil }
            return forgotten.values
        }
        for account in forgotten { account.health.retire() }
    }

    /// Why a credential has no account.
    func obstacle(to credential: ServiceAccountCredential) -> (code: OutcomeCode, name: String) {
        self.pools.obstacle(at: credential.endpoint ?? self.defaultEndpoint)
    }

    /// The account of a tenant; `nil` where its endpoint is none.
    func account(of profile: TenantProfile, _ credential: ServiceAccountCredential) -> V1Account? {
        let projectID = profile.tenant.projectID ?? credential.projectID
        let known = self.state.withLock { $0.accounts[profile.id] }
        if let known, known.serves(credential, projectID: projectID) { return known }
        guard let pool = self.pools.pool(for: credential.endpoint ?? self.defaultEndpoint) else { return nil }
        return self.state.withLock { state in
            let earlier = state.accounts[profile.id]
            if let earlier, earlier.serves(credential, projectID: projectID) { return earlier }
            // A token does not depend on where it is used.
            let kept = earlier?.credential.fingerprint == credential.fingerprint ? earlier?.tokens : nil
            let account = V1Account(
                credential: credential,
                projectID: projectID,
                pool: pool,
                tokens: kept ?? self.tokens.source(for: credential),
                health: UpstreamHealth(of: profile.id, metrics: self.metrics)
            )
            // A call may still be under way for a tenant that is gone, or by a credential that was replaced.
            if let tenants = state.tenants, !account.serves(tenants[profile.id]) { return account }
            state.accounts[profile.id] = account
            return account
        }
    }
}
