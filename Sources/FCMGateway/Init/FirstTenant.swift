import GatewayCore
import GatewayService
import GatewayUpstream

/// The tenant that `init` creates in a new store, with a service account and an API key.
struct FirstTenant {
    private static let origin = RequestOrigin(method: "", requestID: "init")

    let id: TenantID
    private let credential: ServiceAccountCredential
    private let keyName: String

    /// Checks an account; throws `CommandFailure` if a gateway of this configuration would refuse it.
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

    /// Creates the tenant in a configuration's store, which no gateway serves; returns its key.
    func make(in configuration: GatewayConfiguration, secrets: ServingSecrets) async throws -> APIKey {
        try await Gateway.administering(configuration, secrets: secrets) { try await self.make(by: $0) }
    }

    private func make(by administration: Administration) async throws -> APIKey {
        let draft = Tenant.Draft(displayName: self.id.text, upstream: .v1, projectID: self.credential.projectID)
        _ = try await administration.put(draft, id: self.id, origin: Self.origin)
        _ = try await administration.put(self.credential, tenant: self.id, origin: Self.origin)
        let key = APIKey.Draft(name: self.keyName, scopes: Set(Scope.allCases))
        return try await administration.createKey(key, tenant: self.id, origin: Self.origin).0
    }
}
