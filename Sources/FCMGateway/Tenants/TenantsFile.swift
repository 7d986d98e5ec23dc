import EventLoopHTTP
import FCMModel
import Foundation
import GatewayCore
import GatewayService
import NIOCore
import StrictJSON
import Yams

/// The content of a tenants file, with the secrets from the files that the tenants file names.
///
/// The settings are checked as in the gateway, so that mistakes are found before the first change.
struct TenantsFile {
    /// The maximum size of a tenants file; a tenant takes a few hundred bytes.
    private static let maxBytes = 16 << 20

    private(set) var tenants: [DeclaredTenant] = []

    private let secrets: Secrets
    private var keyIDs: Set<String> = []

    /// Reads a file. Throws all its problems.
    init(path: String) throws(ConfigurationProblems) {
        try self.init(YAMLSource(path: path, maxBytes: Self.maxBytes))
    }

    init(name: String, text: String) throws(ConfigurationProblems) {
        try self.init(YAMLSource(name: name, text: text))
    }

    private init(_ source: YAMLSource) throws(ConfigurationProblems) {
        self.secrets = Secrets(besideFile: source.name)
        if let problem = source.problem { throw ConfigurationProblems([problem]) }
        let problems = NodeValue.Problems(file: source.name)
        if let root = source.root {
            self.read(NodeValue(root: root, problems: problems), problems)
        } else {
            problems.report(line: nil, nil, "is empty; it must hold a list under the key tenants")
        }
        if !problems.isEmpty { throw ConfigurationProblems(problems.byLine) }
    }

    private mutating func read(_ root: NodeValue, _ problems: NodeValue.Problems) {
        guard let members = root.members(known: ["tenants"]) else { return }
        guard let list = members["tenants"] else {
            if problems.isEmpty { root.report("is missing", member: "tenants") }
            return
        }
        var indices: [TenantID: Int] = [:]
        for value in list.elements() ?? [] {
            guard let tenant = self.tenant(value) else { continue }
            if let first = indices[tenant.id] {
                let line = self.tenants[first].line.map { " in line \($0)" } ?? ""
                value.report("declares the tenant \(tenant.id) again; the first is\(line)")
            } else {
                indices[tenant.id] = self.tenants.count
            }
            self.tenants.append(tenant)
        }
    }

    private mutating func tenant(_ value: NodeValue) -> DeclaredTenant? {
        let known = [
            "tenant", "display_name", "upstream", "project_id", "sender_id", "disabled", "client_names", "limits",
            "credentials", "keys",
        ]
        guard let members = value.members(known: known) else { return nil }
        guard let name = members["tenant"] else {
            value.report("is missing; it is the tenant's name", member: "tenant")
            return nil
        }
        guard let text = name.text() else { return nil }
        guard let id = TenantID(text) else {
            name.report("must be 1 to 63 characters of a-z 0-9 -, and not start with -")
            return nil
        }
        return DeclaredTenant(
            id: id,
            line: value.line,
            settings: Self.settings(members, of: id),
            limits: members["limits"].flatMap { Self.limits($0) },
            credentials: members["credentials"].map { self.credentials($0) } ?? [],
            keys: members["keys"].map { self.keys($0) } ?? []
        )
    }

    // MARK: Settings and limits

    private static func settings(_ members: [String: NodeValue], of id: TenantID) -> Tenant.Draft {
        var settings = Tenant.Draft(displayName: id.text)
        if let name = members["display_name"]?.text() { settings.displayName = name }
        settings.projectID = members["project_id"]?.text()
        if let upstream = members["upstream"]?.word(as: UpstreamKind.self) { settings.upstream = upstream }
        settings.senderID = members["sender_id"]?.text()
        if let sender = settings.senderID, !sender.isDigits {
            members["sender_id"]?.report("must be a number, in quotes")
        }
        settings.isDisabled = members["disabled"]?.bool() ?? false
        settings.clientNames = members["client_names"].map { self.clientNames($0) } ?? []
        return settings
    }

    private static func clientNames(_ value: NodeValue) -> [ClientName] {
        guard let elements = value.elements() else { return [] }
        guard elements.count <= Tenant.Draft.maxClientNames else {
            value.report("must have at most \(Tenant.Draft.maxClientNames) names")
            return []
        }
        var names: [ClientName] = []
        for element in elements {
            guard let text = element.text() else { continue }
            guard let name = ClientName(text) else {
                element.report("must be a DNS name without a wildcard, or a URI")
                continue
            }
            if names.contains(name) { element.report("is given twice") }
            names.append(name)
        }
        return names
    }

    private static func limits(_ value: NodeValue) -> [LimitScope: [RatePolicy]]? {
        guard let members = value.members(known: LimitScope.allCases.map(\.rawValue)) else { return nil }
        var limits: [LimitScope: [RatePolicy]] = [:]
        for scope in LimitScope.allCases {
            guard let list = members[scope.rawValue], let elements = list.elements() else { continue }
            let most = LimitPolicies.maxPoliciesPerScope
            guard (1...most).contains(elements.count) else {
                list.report("must have 1 to \(most) policies")
                continue
            }
            limits[scope] = elements.compactMap { self.policy($0) }
        }
        return limits
    }

    private static func policy(_ value: NodeValue) -> RatePolicy? {
        guard let text = value.text() else { return nil }
        do {
            return try RatePolicy(parsing: text)
        } catch {
            value.report("\(error)")
            return nil
        }
    }

    // MARK: Credentials and keys

    private func credentials(_ value: NodeValue) -> [DeclaredTenant.Credential] {
        let kinds = UpstreamKind.allCases
        guard let members = value.members(known: kinds.map(\.rawValue)) else { return [] }
        return kinds.compactMap { kind in members[kind.rawValue].flatMap { self.secrets.credential(kind, $0) } }
    }

    private mutating func keys(_ value: NodeValue) -> [DeclaredTenant.Key] {
        var keys: [DeclaredTenant.Key] = []
        for element in value.elements() ?? [] {
            guard let key = self.key(element) else { continue }
            let name = key.draft.name
            if keys.contains(where: { $0.draft.name == name }) {
                element.report("\(name) is the name of an earlier key of this tenant", member: "name")
            }
            if let id = key.imported?.id, !self.keyIDs.insert(id).inserted {
                element.report("holds a key that was declared earlier", member: "key_file")
            }
            keys.append(key)
        }
        return keys
    }

    private func key(_ value: NodeValue) -> DeclaredTenant.Key? {
        let known = ["name", "scopes", "topic_prefixes", "expires_at", "key_file"]
        guard let members = value.members(known: known) else { return nil }
        for name in ["name", "scopes"] where members[name] == nil { value.report("is missing", member: name) }
        guard let name = members["name"]?.text() else { return nil }
        var draft = APIKey.Draft(name: name, scopes: [])
        if let scopes = members["scopes"], let elements = scopes.elements() {
            draft.scopes = Set(elements.compactMap { $0.word(as: Scope.self) })
            if elements.isEmpty { scopes.report("must name at least one scope") }
        }
        for element in members["topic_prefixes"]?.elements() ?? [] {
            guard let prefix = element.text() else { continue }
            if TopicName(prefix) == nil { element.report("no topic can start like this") }
            draft.topicPrefixes.append(prefix)
        }
        draft.expiresAt = members["expires_at"]?.time()
        return DeclaredTenant.Key(draft: draft, imported: members["key_file"].flatMap { self.secrets.key($0) })
    }
}

extension TenantsFile {
    /// Reads the secrets from the files that a tenants file names.
    private struct Secrets {
        private let directory: URL

        /// File names are relative to the tenants file.
        init(besideFile path: String) {
            self.directory = URL(fileURLWithPath: path).deletingLastPathComponent()
        }

        func credential(_ kind: UpstreamKind, _ value: NodeValue) -> DeclaredTenant.Credential? {
            let fileMember =
                switch kind {
                case .legacy: "server_key_file"
                case .v1: "service_account_file"
                }
            guard let members = value.members(known: [fileMember, "endpoint"]) else { return nil }
            guard let file = members[fileMember] else {
                value.report("is missing", member: fileMember)
                return nil
            }
            let endpoint = members["endpoint"]?.text()
            if let endpoint, HTTPOrigin(endpoint) == nil {
                members["endpoint"]?.report("must be http(s)://host[:port] without a path")
            }
            guard let text = self.secret(file) else { return nil }
            switch kind {
            case .legacy:
                guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                    file.report("must hold one server key, without blanks, on one line")
                    return nil
                }
                return DeclaredTenant.Credential(
                    kind: kind,
                    fingerprint: LegacyCredential(serverKey: Secret(text), endpoint: nil).fingerprint,
                    endpoint: endpoint,
                    body: Redacted(CredentialCommand.body(serverKey: text, endpoint: endpoint))
                )
            case .v1:
                guard let account = Self.account(text, file) else { return nil }
                return DeclaredTenant.Credential(
                    kind: kind,
                    fingerprint: account.fingerprint,
                    endpoint: endpoint,
                    body: Redacted(CredentialCommand.body(serviceAccount: account.json, endpoint: endpoint))
                )
            }
        }

        func key(_ file: NodeValue) -> DeclaredTenant.Imported? {
            guard let text = self.secret(file) else { return nil }
            guard let key = APIKey(text) else {
                file.report("holds no key of the form fgw_…, or a mistyped one; key generate creates one")
                return nil
            }
            return DeclaredTenant.Imported(id: key.id, text: Redacted(text))
        }

        private static func account(_ text: String, _ file: NodeValue) -> (json: JSONValue, fingerprint: String)? {
            do {
                let fingerprint = try V1Credential.fingerprint(ofServiceAccount: Array(text.utf8))
                return (try JSONDocument(parsing: ByteBuffer(string: text), limits: .trusted).root, fingerprint)
            } catch let problem as CredentialProblem {
                let member = problem.member.map { "\($0): " } ?? ""
                file.report("holds no usable service account: \(member)\(problem.message)")
            } catch {
                file.report("holds no JSON")
            }
            return nil
        }

        private func secret(_ value: NodeValue) -> String? {
            guard let name = value.text() else { return nil }
            let file = URL(fileURLWithPath: name, relativeTo: self.directory).path
            // A value that names no file may be the secret itself, so the message does not quote it.
            guard FileManager.default.fileExists(atPath: file) else {
                value.report("must name an existing file; relative names begin at this file's folder")
                return nil
            }
            do {
                return try SecretVariable.read(file: file)
            } catch {
                value.report(error.message)
                return nil
            }
        }
    }
}
