import GatewayCore
import GatewayService

/// What is to be done so that a gateway has what a file declares.
///
/// Pure: it reads nothing and changes nothing.
struct TenantPlan: Sendable {
    /// The changes, in the order they are made.
    private(set) var changes: [TenantChange] = []
    /// What stands in the way of the whole plan, in words.
    private(set) var conflicts: [String] = []
    /// What is left as it is, though the file does not say so, in words.
    private(set) var remarks: [String] = []

    private let isPruning: Bool
    private let declaredNames: Set<String>
    /// The tenant of each key, by the key's id.
    private let owners: [String: String]

    /// Compares.
    ///
    /// - Parameters:
    ///   - declared: What the file declares.
    ///   - present: The gateway's tenants, each with what the file speaks of.
    ///   - isPruning: Whether tenants that the file does not name are removed.
    ///   - now: The present moment.
    init(_ declared: [DeclaredTenant], present: [PresentTenant], isPruning: Bool, now: Timestamp) {
        let presentByID = Dictionary(present.map { ($0.id, $0) }) { first, _ in first }
        let names = Set(declared.map(\.id))
        self.isPruning = isPruning
        self.declaredNames = names
        self.owners = Self.owners(of: present)
        for tenant in declared {
            let known = presentByID[tenant.id]
            self.compareSettings(tenant, known)
            self.compareLimits(tenant, known)
            for credential in tenant.credentials { self.compare(credential, of: tenant, known) }
            for key in tenant.keys { self.compare(key, of: tenant, known, now: now) }
        }
        let others = present.map(\.id).filter { !names.contains($0) }
        if isPruning {
            let early = self.deletedTenants
            self.changes += others.filter { !early.contains($0) }.map(Self.deletion)
        } else if !others.isEmpty {
            let names = others.joined(separator: ", ")
            self.remarks.append("not in the file, and left as they are: \(names) (--prune deletes such tenants)")
        }
        self.checkSizes()
    }

    /// Whether an imported key is not where the file wants it, so that only all tenants' keys tell whose it is.
    static func asksWhoseKeys(_ declared: [DeclaredTenant], _ present: [PresentTenant]) -> Bool {
        let owners = Self.owners(of: present)
        return declared.contains { tenant in
            tenant.keys.contains { key in key.imported.map { owners[$0.id] != tenant.id } ?? false }
        }
    }

    /// The tenant of each key, by the key's id.
    private static func owners(of present: [PresentTenant]) -> [String: String] {
        let pairs = present.flatMap { tenant in tenant.keys.compactMap { $0["id"]?.text }.map { ($0, tenant.id) } }
        return Dictionary(pairs) { first, _ in first }
    }

    /// A number of changes in words.
    static func count(_ count: Int) -> String {
        count == 1 ? "1 change" : "\(count) changes"
    }

    /// Finds calls that the gateway would refuse for their size.
    private mutating func checkSizes() {
        for change in self.changes {
            let bytes = (try? change.call.body?.revealed.encoded().count) ?? 0
            guard bytes > Administration.maxBodyBytes else { continue }
            self.conflicts.append(
                "the \(change.title) takes \(bytes) bytes, and the gateway takes at most \(Administration.maxBodyBytes)"
            )
        }
    }

    /// The tenants that the plan deletes.
    var deletedTenants: [String] {
        self.changes.filter { $0.object == .tenant && $0.action == .delete }.map(\.tenant)
    }

    // MARK: Settings

    private static let settingNames = [
        "display_name", "upstream", "project_id", "sender_id", "disabled", "client_names",
    ]

    private mutating func compareSettings(_ tenant: DeclaredTenant, _ present: PresentTenant?) {
        let fields = Self.settingNames.compactMap { name -> TenantChange.Field? in
            let (old, new) = (present?.settings[name], tenant.settings[name])
            guard old != new else { return nil }
            return TenantChange.Field(name: name, old: old?.cell, new: new?.cell)
        }
        guard present == nil || !fields.isEmpty else { return }
        let call = TenantChange.Call(
            method: .put,
            path: ["tenants", tenant.id],
            body: Redacted(.object(tenant.settings))
        )
        self.changes.append(
            TenantChange(
                action: present == nil ? .create : .change,
                object: .tenant,
                tenant: tenant.id,
                fields: fields,
                call: call
            )
        )
    }

    private static func deletion(_ id: String) -> TenantChange {
        TenantChange(
            action: .delete,
            object: .tenant,
            tenant: id,
            fields: [],
            call: TenantChange.Call(method: .delete, path: ["tenants", id])
        )
    }

    // MARK: Limits

    private mutating func compareLimits(_ tenant: DeclaredTenant, _ present: PresentTenant?) {
        guard let limits = tenant.limits else { return }
        let own = Set((present?.limits?["own"]?.elements ?? []).compactMap(\.text))
        let fields = LimitScope.allCases.map(\.rawValue)
            .compactMap { scope -> TenantChange.Field? in
                let new = limits[scope].map { .array($0.map(Self.json)) } as JSONValue?
                let old = own.contains(scope) ? present?.limits?[scope] : nil
                guard old != new else { return nil }
                return TenantChange.Field(name: scope, old: old.map(Self.text), new: new.map(Self.text))
            }
        guard !fields.isEmpty else { return }
        let body = limits.mapValues { JSONValue.array($0.map(Self.json)) }
        self.changes.append(
            TenantChange(
                action: own.isEmpty ? .create : limits.isEmpty ? .delete : .change,
                object: .limits,
                tenant: tenant.id,
                fields: fields,
                call: TenantChange.Call(
                    method: .put,
                    path: ["tenants", tenant.id, "limits"],
                    body: Redacted(.object(body))
                )
            )
        )
    }

    private static func json(_ policy: RatePolicy) -> JSONValue {
        .object([
            "rate": .integer(policy.rate), "per_s": .integer(policy.periodSeconds), "burst": .integer(policy.burst),
        ])
    }

    /// Policies as the options of `limit put` write them.
    private static func text(_ policies: JSONValue) -> String {
        (policies.elements ?? [])
            .map { "\($0["rate"]?.cell ?? "")/\($0["per_s"]?.cell ?? "")s:\($0["burst"]?.cell ?? "")" }
            .joined(separator: ", ")
    }

    // MARK: Credentials

    private mutating func compare(
        _ credential: DeclaredTenant.Credential,
        of tenant: DeclaredTenant,
        _ present: PresentTenant?
    ) {
        let kind = credential.kind.rawValue
        let known = present?.credentials[kind]
        let values = [
            ("fingerprint", known?["fingerprint"]?.text, credential.fingerprint),
            ("endpoint", known?["endpoint"]?.text, credential.endpoint),
        ]
        let fields = values.filter { $0.1 != $0.2 }.map { TenantChange.Field(name: $0.0, old: $0.1, new: $0.2) }
        guard !fields.isEmpty else { return }
        var body = [credential.member.name: credential.member.secret.revealed]
        body["endpoint"] = credential.endpoint.map(JSONValue.string)
        self.changes.append(
            TenantChange(
                action: known == nil ? .create : .change,
                object: .credential,
                tenant: tenant.id,
                name: kind,
                fields: fields,
                call: TenantChange.Call(
                    method: .put,
                    path: ["tenants", tenant.id, "credentials", kind],
                    body: Redacted(.object(body))
                )
            )
        )
    }

    // MARK: Keys

    private mutating func compare(
        _ key: DeclaredTenant.Key,
        of tenant: DeclaredTenant,
        _ present: PresentTenant?,
        now: Timestamp
    ) {
        let candidates = (present?.keys ?? [])
            .filter { known in
                if let id = key.imported?.id { return known["id"]?.text == id }
                // A revoked key is none; one is made in its place.
                return known["name"]?.text == key.name && known["revoked_at"] == nil
            }
        if candidates.contains(where: { $0["revoked_at"] != nil }) {
            self.conflicts.append(
                "the key \(key.name) of tenant \(tenant.id) was revoked, which is for good; declare another one"
            )
            return
        }
        let differences = candidates.map { Self.differences(key, from: $0) }
        guard !differences.contains(where: \.isEmpty) else { return }
        if let difference = differences.last, let id = candidates.last?["id"]?.text {
            self.conflicts.append(
                "the key \(key.name) of tenant \(tenant.id) has other \(difference.joined(separator: ", ")) than the "
                    + "file says, and a key never changes: give it another name there with a key of its own, or revoke "
                    + "it first (fcm-gateway key revoke \(tenant.id) \(id))"
            )
            return
        }
        if let end = key.expiresAt, end <= now {
            self.remarks.append("the key \(key.name) of tenant \(tenant.id) has expired, and is not made")
            return
        }
        if let id = key.imported?.id, let owner = self.owners[id] {
            guard self.isPruning, !self.declaredNames.contains(owner) else {
                self.conflicts.append(self.conflict(key, id, of: tenant, with: owner))
                return
            }
            // As late as can be: from then on nobody takes the key until it is imported.
            if !self.deletedTenants.contains(owner) { self.changes.append(Self.deletion(owner)) }
        }
        self.changes.append(Self.creation(key, of: tenant))
    }

    /// Why a key can't be imported that another tenant has: what was revoked there keeps its id, too.
    private func conflict(
        _ key: DeclaredTenant.Key,
        _ id: String,
        of tenant: DeclaredTenant,
        with owner: String
    ) -> String {
        let advice =
            self.declaredNames.contains(owner)
            ? "a key stays with its tenant: declare another one"
            : "it is free when that tenant is deleted, as --prune does with tenants that the file does not name; or "
                + "declare another one"
        return "the key \(key.name) of tenant \(tenant.id) (\(id)) belongs to tenant \(owner): \(advice)"
    }

    /// The names of the properties in which a key differs from the one that the gateway has.
    private static func differences(_ key: DeclaredTenant.Key, from known: JSONValue) -> [String] {
        let scopes = (known["scopes"]?.elements ?? []).compactMap(\.text).sorted()
        let prefixes = (known["topic_prefixes"]?.elements ?? []).compactMap(\.text)
        let end = known["expires_at"]?.text.flatMap { Timestamp(rfc3339: $0) }
        return [
            ("name", known["name"]?.text == key.name), ("scopes", scopes == key.scopes),
            ("topic_prefixes", prefixes == key.topicPrefixes),
            ("expires_at", end?.milliseconds == key.expiresAt?.milliseconds),
        ]
        .filter { !$0.1 }
        .map(\.0)
    }

    private static func creation(_ key: DeclaredTenant.Key, of tenant: DeclaredTenant) -> TenantChange {
        var body: [String: JSONValue] = [
            "name": .string(key.name), "scopes": .array(key.scopes.map(JSONValue.string)),
        ]
        if !key.topicPrefixes.isEmpty {
            body["topic_prefixes"] = .array(key.topicPrefixes.map(JSONValue.string))
        }
        body["expires_at"] = key.expiresAt.map { .string($0.rfc3339) }
        let fields = ["scopes", "topic_prefixes", "expires_at"]
            .compactMap { name in
                body[name].map { TenantChange.Field(name: name, old: nil, new: $0.cell) }
            }
        let id = TenantChange.Field(name: "id", old: nil, new: key.imported?.id ?? "(made by the gateway)")
        body["key"] = key.imported.map { .string($0.text.revealed) }
        return TenantChange(
            action: .create,
            object: .key,
            tenant: tenant.id,
            name: key.name,
            fields: [id] + fields,
            call: TenantChange.Call(
                method: .post,
                path: ["tenants", tenant.id, "keys"],
                body: Redacted(.object(body))
            )
        )
    }
}
