import EventLoopHTTP
import GatewayCore
import Synchronization

/// The tenants' accounts, each made with its first call and again when its credential changes.
///
/// Whatever calls FCM for a tenant goes by the same one, and so by the same access token.
package final class V1Accounts: Sendable {
    private let accounts = Mutex<[TenantID: V1Account]>([:])
    private let defaultEndpoint: String
    private let pools: OriginPools
    private let tokens: AccessTokens
    private let metrics: ResilienceMetrics?

    /// No accounts yet.
    ///
    /// - Parameters:
    ///   - defaultEndpoint: where calls go unless a credential names another server.
    ///   - pools: the ways to FCM.
    ///   - tokens: the service that gets access tokens; without it running, calls wait in vain.
    ///   - metrics: what is counted of repeats and breakers.
    package init(defaultEndpoint: String, pools: OriginPools, tokens: AccessTokens, metrics: ResilienceMetrics? = nil) {
        self.defaultEndpoint = defaultEndpoint
        self.pools = pools
        self.tokens = tokens
        self.metrics = metrics
    }

    /// The account of a tenant; `nil` where its endpoint is none.
    func account(of profile: TenantProfile, _ credential: ServiceAccountCredential) -> V1Account? {
        let projectID = profile.tenant.projectID ?? credential.projectID
        let known = self.accounts.withLock { $0[profile.id] }
        if let known, known.serves(credential, projectID: projectID) { return known }
        guard let pool = self.pools.pool(for: credential.endpoint ?? self.defaultEndpoint) else { return nil }
        return self.accounts.withLock { accounts in
            let earlier = accounts[profile.id]
            if let earlier, earlier.serves(credential, projectID: projectID) { return earlier }
            // A token does not depend on where it is used.
            let kept = earlier?.credential.fingerprint == credential.fingerprint ? earlier?.tokens : nil
            let account = V1Account(
                credential: credential,
                projectID: projectID,
                pool: pool,
                tokens: kept ?? self.tokens.source(for: credential),
                health: UpstreamHealth(
                    gauge: self.metrics?.gauge(of: profile.id, api: .v1) ?? .none,
                    metrics: self.metrics
                )
            )
            accounts[profile.id] = account
            return account
        }
    }
}
