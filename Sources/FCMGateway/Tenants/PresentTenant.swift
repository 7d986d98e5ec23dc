import GatewayCore

/// A tenant as the gateway has it, as far as a file declares something of it.
struct PresentTenant: Sendable {
    /// The settings, as the admin API shows them.
    var settings: JSONValue
    /// The limits in force; nil where nobody asked.
    var limits: JSONValue?
    /// The credentials by kind; absent where there is none, or nobody asked.
    var credentials: [String: JSONValue] = [:]
    /// The keys, oldest first; empty where nobody asked.
    var keys: [JSONValue] = []

    /// The tenant's id.
    var id: String { self.settings["tenant"]?.text ?? "" }

    /// Asks a gateway for everything of a tenant that a declaration speaks of.
    ///
    /// - Throws: `APIError` or `CommandFailure`.
    static func read(_ settings: JSONValue, for declared: DeclaredTenant, _ client: AdminClient) async throws -> Self {
        var present = PresentTenant(settings: settings)
        let path = ["tenants", declared.id]
        if declared.limits != nil {
            present.limits = try await client.call(.get, path + ["limits"])
        }
        for credential in declared.credentials {
            let kind = credential.kind.rawValue
            do {
                present.credentials[kind] = try await client.call(.get, path + ["credentials", kind])
            } catch let refusal as APIError where refusal.status == 404 && refusal.code == "not_found" {
                continue
            }
        }
        if !declared.keys.isEmpty {
            present.keys = try await client.list(path + ["keys"], member: "keys")
        }
        return present
    }
}
