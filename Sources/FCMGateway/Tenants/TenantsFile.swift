import FCMModel
import GatewayCore
import GatewayService
import Yams

/// What a file for `tenant apply` declares, and everything wrong with it.
///
/// The settings are checked here as the gateway checks them, so that a mistake is found before the first change.
struct TenantsFile {
    /// The largest file read; a tenant takes some hundred bytes.
    static let maxBytes = 16 << 20

    /// The path as the operator wrote it.
    let name: String

    /// The tenants, in the file's order.
    private(set) var tenants: [DeclaredTenant] = []

    private var reader: NodeReader
    private let secrets: DeclaredSecrets
    /// Where each id of an imported key was declared.
    private var keyIDs: Set<String> = []

    /// Reads a file and the secrets that it names, whose paths are relative to it.
    ///
    /// - Parameter path: The file's path.
    /// - Throws: Everything wrong with it.
    init(path: String) throws(ConfigurationProblems) {
        try self.init(YAMLSource(path: path, maxBytes: Self.maxBytes), secrets: DeclaredSecrets(besideFile: path))
    }

    /// Reads text under a file's name.
    ///
    /// - Throws: Everything wrong with it.
    init(name: String, text: String) throws(ConfigurationProblems) {
        try self.init(YAMLSource(name: name, text: text), secrets: DeclaredSecrets(besideFile: name))
    }

    private init(_ source: YAMLSource, secrets: DeclaredSecrets) throws(ConfigurationProblems) {
        self.name = source.name
        self.secrets = secrets
        self.reader = NodeReader(file: source.name)
        if let problem = source.problem { throw ConfigurationProblems([problem]) }
        if let root = source.root {
            self.walk(root)
        } else {
            self.reader.report(nil, nil, "is empty; it must have the key tenants, with a list")
        }
        if !self.reader.problems.isEmpty { throw ConfigurationProblems(self.reader.problemsByLine) }
    }

    private mutating func walk(_ root: Node) {
        guard let members = self.reader.members(root, "", known: ["tenants"]) else { return }
        guard let list = members["tenants"] else {
            if self.reader.problems.isEmpty { self.reader.report(root, "tenants", "is missing") }
            return
        }
        for (node, path) in self.reader.elements(list, "tenants") ?? [] {
            guard let tenant = self.tenant(node, path) else { continue }
            if let first = self.tenants.first(where: { $0.id == tenant.id }) {
                let line = first.line.map { " in line \($0)" } ?? ""
                self.reader.report(node, path, "declares the tenant \(tenant.id) again; the first is\(line)")
            }
            self.tenants.append(tenant)
        }
    }

    private mutating func tenant(_ node: Node, _ path: String) -> DeclaredTenant? {
        let known = [
            "tenant", "display_name", "upstream", "project_id", "sender_id", "disabled", "client_names", "limits",
            "credentials", "keys",
        ]
        guard let members = self.reader.members(node, path, known: known) else { return nil }
        guard let idNode = members["tenant"] else {
            self.reader.report(node, "\(path).tenant", "is missing; it is the tenant's name")
            return nil
        }
        guard let id = self.reader.text(idNode, "\(path).tenant") else { return nil }
        guard TenantID(id) != nil else {
            self.reader.report(idNode, "\(path).tenant", "must be 1 to 63 of a-z 0-9 -, the first of them no -")
            return nil
        }
        var tenant = DeclaredTenant(id: id, line: node.mark?.line)
        tenant.settings = self.settings(members, path, id: id)
        if let node = members["limits"] { tenant.limits = self.limits(node, "\(path).limits") }
        if let node = members["credentials"] {
            tenant.credentials = self.credentials(node, "\(path).credentials")
        }
        if let node = members["keys"] { tenant.keys = self.keys(node, "\(path).keys") }
        return tenant
    }

    private mutating func settings(_ members: [String: Node], _ path: String, id: String) -> [String: JSONValue] {
        var settings: [String: JSONValue] = [
            "display_name": .string(id), "upstream": .string(UpstreamKind.legacy.rawValue), "disabled": .bool(false),
        ]
        for name in ["display_name", "project_id"] {
            guard let node = members[name] else { continue }
            settings[name] = self.reader.text(node, "\(path).\(name)").map(JSONValue.string)
        }
        if let node = members["upstream"] {
            let words = UpstreamKind.allCases.map(\.rawValue)
            settings["upstream"] = self.reader.word(node, "\(path).upstream", among: words).map(JSONValue.string)
        }
        if let node = members["sender_id"], let text = self.reader.text(node, "\(path).sender_id") {
            if !text.isDigits {
                self.reader.report(node, "\(path).sender_id", "must be a number, in quotes")
            }
            settings["sender_id"] = .string(text)
        }
        if let node = members["disabled"] {
            settings["disabled"] = self.reader.bool(node, "\(path).disabled").map(JSONValue.bool)
        }
        if let node = members["client_names"], let names = self.clientNames(node, "\(path).client_names") {
            settings["client_names"] = names.isEmpty ? nil : .array(names.map(JSONValue.string))
        }
        return settings
    }

    private mutating func clientNames(_ node: Node, _ path: String) -> [String]? {
        guard let elements = self.reader.elements(node, path) else { return nil }
        guard elements.count <= TenantDraft.maxClientNames else {
            self.reader.report(node, path, "must have at most \(TenantDraft.maxClientNames) names")
            return nil
        }
        var names: [String] = []
        for (node, path) in elements {
            guard let text = self.reader.text(node, path) else { continue }
            if let name = ClientName(text)?.text {
                if names.contains(name) { self.reader.report(node, path, "is given twice") }
                names.append(name)
            } else {
                self.reader.report(node, path, "must be a DNS name without a wildcard, or a URI")
            }
        }
        return names
    }

    private mutating func limits(_ node: Node, _ path: String) -> [String: [RatePolicy]]? {
        let scopes = LimitScope.allCases.map(\.rawValue)
        guard let members = self.reader.members(node, path, known: scopes) else { return nil }
        var limits: [String: [RatePolicy]] = [:]
        for scope in scopes {
            guard let node = members[scope] else { continue }
            let path = "\(path).\(scope)"
            guard let elements = self.reader.elements(node, path) else { continue }
            let most = LimitPolicies.maxPoliciesPerScope
            guard (1...most).contains(elements.count) else {
                self.reader.report(node, path, "must have 1 to \(most) policies")
                continue
            }
            limits[scope] = elements.compactMap { self.policy($0.node, $0.path) }
        }
        return limits
    }

    private mutating func policy(_ node: Node, _ path: String) -> RatePolicy? {
        let names = ["rate", "per_s", "burst"]
        guard let members = self.reader.members(node, path, known: names) else { return nil }
        var numbers: [Int] = []
        for name in names {
            guard let node = members[name] else {
                self.reader.report(node, "\(path).\(name)", "is missing")
                continue
            }
            let most = name == "per_s" ? RatePolicy.maxPeriodSeconds : RatePolicy.maxCount
            guard let number = self.reader.wholeNumber(node, "\(path).\(name)", in: 1...most) else { continue }
            numbers.append(number)
        }
        guard numbers.count == names.count else { return nil }
        guard let policy = RatePolicy(rate: numbers[0], periodSeconds: numbers[1], burst: numbers[2]) else {
            self.reader.report(node, path, "must refill its burst within 30 days")
            return nil
        }
        return policy
    }

    private mutating func credentials(_ node: Node, _ path: String) -> [DeclaredTenant.Credential] {
        let kinds = UpstreamKind.allCases
        guard let members = self.reader.members(node, path, known: kinds.map(\.rawValue)) else { return [] }
        return kinds.compactMap { kind in
            guard let node = members[kind.rawValue] else { return nil }
            return self.secrets.credential(kind, node, "\(path).\(kind.rawValue)", &self.reader)
        }
    }

    private mutating func keys(_ node: Node, _ path: String) -> [DeclaredTenant.Key] {
        var keys: [DeclaredTenant.Key] = []
        for (node, path) in self.reader.elements(node, path) ?? [] {
            guard let key = self.key(node, path) else { continue }
            if keys.contains(where: { $0.name == key.name }) {
                self.reader.report(node, "\(path).name", "\(key.name) is the name of an earlier key of this tenant")
            }
            if let id = key.imported?.id, !self.keyIDs.insert(id).inserted {
                self.reader.report(node, "\(path).key_file", "holds a key that is declared before")
            }
            keys.append(key)
        }
        return keys
    }

    private mutating func key(_ node: Node, _ path: String) -> DeclaredTenant.Key? {
        let known = ["name", "scopes", "topic_prefixes", "expires_at", "key_file"]
        guard let members = self.reader.members(node, path, known: known) else { return nil }
        for name in ["name", "scopes"] where members[name] == nil {
            self.reader.report(node, "\(path).\(name)", "is missing")
        }
        guard let nameNode = members["name"], let name = self.reader.text(nameNode, "\(path).name") else { return nil }
        var key = DeclaredTenant.Key(name: name)
        if let node = members["scopes"], let elements = self.reader.elements(node, "\(path).scopes") {
            let words = Scope.allCases.map(\.rawValue)
            key.scopes = Set(elements.compactMap { self.reader.word($0.node, $0.path, among: words) }).sorted()
            if elements.isEmpty { self.reader.report(node, "\(path).scopes", "must name at least one scope") }
        }
        for (node, path) in members["topic_prefixes"].flatMap({ self.reader.elements($0, "\(path).topic_prefixes") })
            ?? []
        {
            guard let prefix = self.reader.text(node, path) else { continue }
            if TopicName(prefix) == nil { self.reader.report(node, path, "no topic can start like this") }
            key.topicPrefixes.append(prefix)
        }
        if let node = members["expires_at"] { key.expiresAt = self.reader.time(node, "\(path).expires_at") }
        if let node = members["key_file"] {
            key.imported = self.secrets.key(node, "\(path).key_file", &self.reader)
        }
        return key
    }
}
