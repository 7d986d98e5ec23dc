import GatewayCore
import Synchronization

/// The tenants' sources of access tokens, each made with its first call and again when its credential changes.
final class AccessTokenSources: Sendable {
    private let sources = Mutex<[TenantID: AccessTokenSource]>([:])

    /// The source of a tenant's present credential.
    func source(
        of tenant: TenantID,
        _ credential: ServiceAccountCredential,
        from tokens: AccessTokens
    ) -> AccessTokenSource {
        self.sources.withLock { sources in
            if let known = sources[tenant], known.credential.fingerprint == credential.fingerprint { return known }
            let source = tokens.source(for: credential)
            sources[tenant] = source
            return source
        }
    }
}
