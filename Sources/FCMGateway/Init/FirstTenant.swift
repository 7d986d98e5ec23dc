import EventLoopHTTP
import GatewayCore
import GatewayService
import GatewayUpstream
import Logging
import ServiceLifecycle

/// The tenant that `init` makes in a new store, with a service account and an API key.
struct FirstTenant {
    private static let origin = RequestOrigin(method: "", requestID: "init")

    let id: TenantID
    private let credential: ServiceAccountCredential
    private let keyName: String

    /// Checks an account; throws `CommandFailure` for one that a gateway of this configuration does not accept.
    init(
        account json: [UInt8],
        name: TenantID?,
        keyName: String,
        in configuration: GatewayConfiguration
    ) throws(CommandFailure) {
        do {
            let hosts = configuration.upstream.tokenHosts
            self.credential = try ServiceAccountCredential(json: json, endpoint: nil, allowing: hosts)
        } catch {
            throw CommandFailure(
                "the service account can't be used: \(error.member.map { "\($0): " } ?? "")\(error.message)"
            )
        }
        guard let id = name ?? TenantID(self.credential.projectID) else {
            throw CommandFailure(
                "the project \(self.credential.projectID) can't be a tenant's name; give one by --tenant"
            )
        }
        self.id = id
        self.keyName = keyName
    }

    /// Makes the tenant by a gateway that runs for just this, on ports of this machine that are free; returns its key.
    func make(in configuration: GatewayConfiguration, secrets: ServingSecrets) async throws -> APIKey {
        var configuration = configuration
        for server in [\GatewayConfiguration.http.server, \GatewayConfiguration.admin.server] {
            configuration[keyPath: server].host = "127.0.0.1"
            configuration[keyPath: server].port = 0
        }
        configuration.http.drainGrace = .zero
        let logger = LogConfiguration(level: .error, format: .text).bootstrap()
        defer { logger.flush() }
        let gateway = try await Gateway(configuration, secrets: secrets, logger: logger)
        let group = gateway.group(stoppedBy: [], logger: logger)
        async let end: Void = group.run()
        let key: Result<APIKey, any Error>
        do {
            key = .success(try await self.make(by: gateway.administration))
        } catch {
            key = .failure(error)
        }
        await group.triggerGracefulShutdown()
        try await end
        return try key.get()
    }

    private func make(by administration: Administration) async throws -> APIKey {
        let draft = TenantDraft(displayName: self.id.text, upstream: .v1, projectID: self.credential.projectID)
        _ = try await administration.put(draft, id: self.id, origin: Self.origin)
        _ = try await administration.put(self.credential, tenant: self.id, origin: Self.origin)
        let key = APIKeyDraft(name: self.keyName, scopes: Set(Scope.allCases))
        return try await administration.createKey(key, tenant: self.id, origin: Self.origin).0
    }
}
