import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Stores credentials and proves them, but never returns them.
struct CredentialRoutes {
    let administration: Administration
    let prover: any CredentialProver
    let tokenHosts: Setting<TokenHosts>

    var endpoints: [any Endpoint] {
        UpstreamKind.allCases.map { kind in
            Handler(.get, "/admin/v1/tenants/{tenant}/credentials/\(kind.rawValue)") { exchange in
                Self.response(try self.stored(kind, exchange))
            }
        }
            + UpstreamKind.allCases.map { kind in
                Handler(.delete, "/admin/v1/tenants/{tenant}/credentials/\(kind.rawValue)") { exchange in
                    let id = try exchange.tenantID
                    try await self.administration.deleteCredential(kind, tenant: id, origin: exchange.origin)
                    return HTTPServerResponse(status: .noContent)
                }
            } + [
                Handler(.put, "/admin/v1/tenants/{tenant}/credentials/legacy", self.putLegacy),
                Handler(.put, "/admin/v1/tenants/{tenant}/credentials/v1", self.putServiceAccount),
                Handler(.post, "/admin/v1/tenants/{tenant}/credentials/check", self.check),
            ]
    }

    private func stored(_ kind: UpstreamKind, _ exchange: Exchange) throws -> StoredCredential {
        let profile = try self.administration.profile(of: exchange.tenantID)
        guard let stored = profile.storedCredentials.first(where: { $0.kind == kind }) else {
            throw Refusal(.notFound, "The tenant has no \(kind.rawValue) credential")
        }
        return stored
    }

    @Sendable
    private func putLegacy(_ exchange: Exchange) async throws -> HTTPServerResponse {
        try await self.put(exchange) { members throws(Refusal) in
            try LegacyCredential(members, allowing: self.tokenHosts.current.plainHTTP)
        }
    }

    @Sendable
    private func putServiceAccount(_ exchange: Exchange) async throws -> HTTPServerResponse {
        try await self.put(exchange) { members throws(Refusal) in
            try V1Credential(members, allowing: self.tokenHosts.current)
        }
    }

    private func put<Given: TenantCredential>(
        _ exchange: Exchange,
        _ read: (JSONMembers) throws(Refusal) -> Given
    ) async throws -> HTTPServerResponse {
        let id = try exchange.tenantID
        let credential = try read(exchange.members(limits: .small))
        return Self.response(try await self.administration.put(credential, tenant: id, origin: exchange.origin))
    }

    /// Proves the credential that the tenant's sends use, and any other it has.
    @Sendable
    private func check(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let profile = try self.administration.profile(of: exchange.tenantID)
        let inUse = profile.tenant.upstream
        let kinds = UpstreamKind.allCases.filter { kind in
            kind == inUse || profile.storedCredentials.contains { $0.kind == kind }
        }
        var writer = JSONWriter()
        writer.beginObject()
        writer.beginArray("checks")
        for kind in kinds {
            let report = await self.prover.prove(kind, of: profile, origin: exchange.origin)
            writer.write(report, of: kind, isInUse: kind == inUse)
        }
        writer.endArray()
        writer.endObject()
        return HTTPServerResponse(json: writer.finish())
    }

    private static func response(_ stored: StoredCredential) -> HTTPServerResponse {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("kind", stored.kind.rawValue)
        writer.member("fingerprint", stored.fingerprint)
        if let endpoint = stored.endpoint { writer.member("endpoint", endpoint) }
        writer.member("version", stored.version)
        writer.member("created_at", stored.createdAt.rfc3339)
        writer.endObject()
        return HTTPServerResponse(json: writer.finish())
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ report: CredentialReport, of kind: UpstreamKind, isInUse: Bool) {
        self.beginObject()
        self.member("kind", kind.rawValue)
        self.member("in_use", isInUse)
        self.member("finding", report.finding.rawValue)
        self.member("detail", report.detail)
        if let code = report.upstreamCode { self.member("upstream_code", code) }
        self.endObject()
    }
}

extension LegacyCredential {
    init(_ members: JSONMembers, allowing plainHTTP: PlainHTTP) throws(Refusal) {
        var problems = FieldProblems()
        var serverKey: String?
        var endpoint: String?
        for member in members where !problems.isFull {
            let key = member.key
            let pointer = JSONPointer().appending(key)
            switch key.protocolWord {
            case "server_key":
                serverKey = problems.text(member.value, at: pointer)
                if let key = serverKey, key.utf8.count > 1_024 || !key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
                    problems.report(
                        .invalidField,
                        at: pointer,
                        "A server key has at most 1024 characters, neither blanks nor controls"
                    )
                }
            case "endpoint":
                endpoint = problems.endpoint(member.value, at: pointer, allowing: plainHTTP)
            default:
                problems.unknown(key, among: ["server_key", "endpoint"])
            }
        }
        guard let serverKey, problems.list.isEmpty else {
            throw problems.orMissing("server_key")
        }
        self.init(serverKey: Secret(serverKey), endpoint: endpoint)
    }
}

extension V1Credential {
    private static let sources = ["service_account", "external_account", "metadata_server"]

    /// Reads the body that stores a v1 credential.
    ///
    /// - Throws: all faulty fields of the body, or all members of a service account that are not strings, or else the
    ///   credential's first fault.
    convenience init(_ members: JSONMembers, allowing hosts: TokenHosts) throws(Refusal) {
        var problems = FieldProblems()
        var given: (name: String, value: JSONValue)?
        var (endpoint, project): (String?, String?)
        for member in members where !problems.isFull {
            let key = member.key
            let pointer = JSONPointer().appending(key)
            switch key.protocolWord {
            case "service_account", "external_account":
                guard problems.members(member.value, at: pointer) != nil else { break }
                if given != nil { problems.report(.invalidField, at: pointer, "Give one kind of credential alone") }
                given = (key.protocolWord ?? "", member.value)
            case "metadata_server":
                guard problems.bool(member.value, at: pointer) == true else { break }
                if given != nil { problems.report(.invalidField, at: pointer, "Give one kind of credential alone") }
                given = ("metadata_server", member.value)
            case "project_id": project = problems.text(member.value, at: pointer)
            case "endpoint":
                endpoint = problems.endpoint(member.value, at: pointer, allowing: hosts.plainHTTP)
            default:
                problems.unknown(key, among: Self.sources + ["project_id", "endpoint"])
            }
        }
        guard let given, problems.list.isEmpty else { throw problems.orMissing("service_account") }
        let pointer = JSONPointer().appending(given.name)
        let isAccount = given.name == "service_account"
        if !isAccount, project == nil { throw problems.orMissing("project_id") }
        if isAccount, project != nil {
            let detail = "A service account names its project itself"
            problems.report(.invalidField, at: JSONPointer().appending("project_id"), detail)
        }
        let json = isAccount ? Self.strings(of: given.value, at: pointer, &problems) : given.value.bytes
        guard problems.list.isEmpty else { throw Refusal(problems.list) }
        do throws(CredentialProblem) {
            switch given.name {
            case "service_account": try self.init(serviceAccount: json, endpoint: endpoint, allowing: hosts)
            case "external_account":
                try self.init(
                    externalAccount: json,
                    projectID: project ?? "",
                    endpoint: endpoint,
                    allowing: hosts
                )
            default: try self.init(metadataServerFor: project ?? "", endpoint: endpoint, allowing: hosts)
            }
        } catch {
            let isOutside = error.member == "project_id" && !isAccount
            let place = isOutside ? JSONPointer().appending("project_id") : error.member.map { pointer.appending($0) }
            problems.report(.invalidField, at: place ?? pointer, error.message)
            throw Refusal(problems.list)
        }
    }

    /// The members of a service account that are checked and stored, which are all strings.
    private static func strings(
        of account: JSONValue,
        at pointer: JSONPointer,
        _ problems: inout FieldProblems
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        for member in account.members.map(Array.init) ?? [] {
            guard let name = member.key.protocolWord, Self.serviceAccountMembers.contains(name) else { continue }
            guard member.value.string != nil else {
                problems.report(.invalidField, at: pointer.appending(name), "This must be a string")
                continue
            }
            writer.key(name)
            writer.value(member.value)
        }
        writer.endObject()
        return Array(writer.finish().readableBytesView)
    }
}

extension JSONValue {
    fileprivate var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return Array(writer.finish().readableBytesView)
    }
}

extension FieldProblems {
    fileprivate mutating func endpoint(
        _ value: JSONValue,
        at pointer: JSONPointer,
        allowing plainHTTP: PlainHTTP
    ) -> String? {
        guard let endpoint = self.text(value, at: pointer) else { return nil }
        if HTTPOrigin(endpoint) == nil {
            self.report(.invalidField, at: pointer, "An endpoint is http(s)://host[:port] without a path")
        } else if !plainHTTP.admits(endpoint: endpoint) {
            self.report(.invalidField, at: pointer, "An endpoint must be https; \(PlainHTTP.exception)")
        }
        return endpoint
    }
}
