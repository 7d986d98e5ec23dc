import EventLoopHTTP
import GatewayCore

/// What the calls of one tenant by the v1 protocol share.
final class V1Account: Sendable {
    /// The credential that the calls go by.
    let credential: ServiceAccountCredential
    /// The project that the messages are for.
    let projectID: String
    /// The path that they go to.
    let path: String
    /// The way to the server.
    let pool: HTTPClientPool
    /// The credential's access tokens.
    let tokens: AccessTokenSource
    /// What is known of the way.
    let health: UpstreamHealth

    init(
        credential: ServiceAccountCredential,
        projectID: String,
        pool: HTTPClientPool,
        tokens: AccessTokenSource,
        health: UpstreamHealth
    ) {
        self.credential = credential
        self.projectID = projectID
        self.path = V1Path.send(project: projectID)
        self.pool = pool
        self.tokens = tokens
        self.health = health
    }

    /// Whether the account is right for a tenant; for none it never is.
    func serves(_ profile: TenantProfile?) -> Bool {
        guard let profile, let credential = profile.v1Credential else { return false }
        return self.serves(credential, projectID: profile.tenant.projectID ?? credential.projectID)
    }

    /// Whether the account is still right for a tenant's present credential and project.
    func serves(_ credential: ServiceAccountCredential, projectID: String) -> Bool {
        (self.credential === credential
            || (self.credential.fingerprint == credential.fingerprint
                && self.credential.endpoint == credential.endpoint))
            && self.projectID == projectID
    }
}
