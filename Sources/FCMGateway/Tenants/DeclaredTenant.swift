import GatewayCore
import GatewayService

/// A tenant as a file declares it: what the gateway is to know of it, and nothing of how it stands.
struct DeclaredTenant: Sendable {
    /// A credential, read from its file.
    struct Credential: Sendable {
        /// The protocol it is for.
        var kind: UpstreamKind
        /// The member of the API's body that holds the secret, and the secret.
        var member: (name: String, secret: Redacted<JSONValue>)
        /// What the gateway knows it by.
        var fingerprint: String
        /// Another server than FCM; nil for FCM.
        var endpoint: String?
    }

    /// An API key.
    struct Key: Sendable {
        /// Its name, by which it is told from the tenant's other keys.
        var name: String
        /// What it may do, sorted.
        var scopes: [String] = []
        /// The topics it may address, by prefix; empty for all.
        var topicPrefixes: [String] = []
        /// When it ends; nil for never.
        var expiresAt: Timestamp?
        /// The key that exists already; nil to have one made.
        var imported: Imported?
    }

    /// A key that exists already, read from its file.
    struct Imported: Sendable {
        /// The public part that names it.
        var id: String
        /// The whole key.
        var text: Redacted<String>
    }

    /// The tenant's id.
    var id: String
    /// The line that declares it.
    var line: Int?
    /// The settings, by the names of the admin API, as `PUT /admin/v1/tenants/{tenant}` takes them.
    var settings: [String: JSONValue] = [:]
    /// The tenant's own limits, by scope; nil leaves them as they are.
    var limits: [String: [RatePolicy]]?
    /// The credentials it must have; others are left as they are.
    var credentials: [Credential] = []
    /// The keys it must have; others are left as they are.
    var keys: [Key] = []
}
