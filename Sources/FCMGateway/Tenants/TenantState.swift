import GatewayCore
import GatewayService
import NIOCore
import StrictJSON

/// A tenant as a file declares it: the desired settings, without any state. See ``TenantPlan``.
struct DeclaredTenant: Sendable {
    /// A credential, read from its file.
    struct Credential: Sendable {
        var kind: UpstreamKind
        /// The fingerprint by which the gateway identifies the credential.
        var fingerprint: String
        /// A server other than FCM's; `nil` for FCM.
        var endpoint: String?
        /// The body of the call that stores the credential, with the secret.
        var body: Redacted<ByteBuffer>
    }

    /// An API key, identified by its name within the tenant.
    struct Key: Sendable {
        var draft: APIKey.Draft
        /// The existing key; `nil` if the gateway creates the key.
        var imported: Imported?
    }

    /// An existing key, read from its file.
    struct Imported: Sendable {
        /// The public part, which identifies the key.
        var id: String
        var text: Redacted<String>
    }

    var id: TenantID
    /// The line that declares the tenant.
    var line: Int?
    var settings: Tenant.Draft
    /// The tenant's own limits; `nil` leaves them unchanged.
    var limits: [LimitScope: [RatePolicy]]?
    /// The credentials that the tenant must have; its other credentials stay unchanged.
    var credentials: [Credential] = []
    /// The keys that the tenant must have; its other keys stay unchanged.
    var keys: [Key] = []
}

/// A tenant as it is in the gateway.
struct PresentTenant: Sendable {
    struct Credential: Sendable {
        var fingerprint: String?
        var endpoint: String?
    }

    struct Key: Sendable {
        var id: String
        var draft: APIKey.Draft
        var isRevoked: Bool
    }

    var id: TenantID
    var settings: Tenant.Draft
    /// The tenant's own limits by scope; empty until they are read.
    var limits: [LimitScope: [RatePolicy]] = [:]
    var credentials: [UpstreamKind: Credential] = [:]
    /// Oldest first; empty until they are read.
    var keys: [Key] = []

    /// Reads the settings, as the admin API shows them.
    init(_ json: JSONValue) throws(CommandFailure) {
        guard let id = json.text("tenant").flatMap({ TenantID($0) }) else { throw Self.unknown("tenant") }
        self.id = id
        let upstream = json.text("upstream").flatMap { UpstreamKind(rawValue: $0) }
        self.settings = Tenant.Draft(
            displayName: json.text("display_name") ?? id.text,
            upstream: upstream ?? .legacy,
            projectID: json.text("project_id"),
            senderID: json.text("sender_id"),
            isDisabled: json["disabled"]?.bool ?? false,
            clientNames: json.list("client_names").compactMap(\.string).compactMap { ClientName($0) }
        )
    }

    /// Reads limits, credentials and keys from a gateway.
    mutating func readAll(_ client: AdminClient) async throws {
        let path = ["tenants", self.id.text]
        self.limits = try Self.limits(try await client.get(path + ["limits"]))
        for kind in UpstreamKind.allCases {
            do {
                self.credentials[kind] = Credential(try await client.get(path + ["credentials", kind.rawValue]))
            } catch let refusal as APIError where refusal.status == 404 && refusal.code == "not_found" {
                continue
            }
        }
        try await self.readKeys(client)
    }

    mutating func readKeys(_ client: AdminClient) async throws {
        let keys = try await client.list(["tenants", self.id.text, "keys"], member: "keys")
        self.keys = try keys.map { try Key($0) }
    }

    static func limits(_ json: JSONValue) throws(CommandFailure) -> [LimitScope: [RatePolicy]] {
        var limits: [LimitScope: [RatePolicy]] = [:]
        for scope in json.list("own").compactMap(\.string).compactMap({ LimitScope(rawValue: $0) }) {
            var policies: [RatePolicy] = []
            for entry in json.list(scope.rawValue) {
                guard let rate = entry.integer("rate"), let period = entry.integer("per_s"),
                    let burst = entry.integer("burst"),
                    let policy = RatePolicy(rate: rate, periodSeconds: period, burst: burst)
                else { throw Self.unknown("policy") }
                policies.append(policy)
            }
            limits[scope] = policies
        }
        return limits
    }

    /// The failure for an object that this program does not understand, as from another version of the gateway.
    fileprivate static func unknown(_ object: String) -> CommandFailure {
        CommandFailure("the gateway's answer holds a \(object) that this program does not understand")
    }
}

extension PresentTenant.Credential {
    init(_ json: JSONValue) {
        self.init(fingerprint: json.text("fingerprint"), endpoint: json.text("endpoint"))
    }
}

extension PresentTenant.Key {
    init(_ json: JSONValue) throws(CommandFailure) {
        let names = json.list("scopes").compactMap(\.string)
        let scopes = names.compactMap { Scope(rawValue: $0) }
        guard let id = json.text("id"), scopes.count == names.count else { throw PresentTenant.unknown("key") }
        let draft = APIKey.Draft(
            name: json.text("name") ?? "",
            scopes: Set(scopes),
            topicPrefixes: json.list("topic_prefixes").compactMap(\.string),
            expiresAt: json.text("expires_at").flatMap { Timestamp(rfc3339: $0) }
        )
        self.init(id: id, draft: draft, isRevoked: json["revoked_at"] != nil)
    }
}
