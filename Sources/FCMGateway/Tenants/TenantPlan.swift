import GatewayCore
import GatewayService
import NIOCore
import StrictJSON

/// One change that brings a gateway closer to what a file declares.
struct TenantChange: Sendable {
    enum Action: String, Sendable {
        case create
        case change
        case delete

        var mark: String {
            switch self {
            case .create: "+"
            case .change: "~"
            case .delete: "-"
            }
        }

        fileprivate var tone: StyledText.Tone {
            switch self {
            case .create: .good
            case .change: .caution
            case .delete: .bad
            }
        }
    }

    /// The kind of thing that changes: the settings of a tenant, or something that it owns.
    enum Object: String, Sendable {
        case tenant
        case limits
        case credential
        case key
    }

    /// A field that differs; `nil` for no value.
    struct Field: Sendable, Equatable {
        var name: String
        var old: String?
        var new: String?
    }

    var action: Action
    var object: Object
    var tenant: TenantID
    /// The credential's kind or the key's name; `nil` if a tenant has only one such object.
    var name: String?
    var fields: [Field] = []
    /// The body of the admin API's call, which may hold a secret; `nil` for a call without a body.
    var body: Redacted<ByteBuffer>?
    /// True if the gateway creates a key. Only the answer to this call shows the key.
    var makesKey = false

    var method: APIClient.Method {
        switch (self.object, self.action) {
        case (.key, _): .post
        case (.tenant, .delete): .delete
        case (.tenant, _), (.limits, _), (.credential, _): .put
        }
    }

    var path: [String] {
        let tenant = ["tenants", self.tenant.text]
        return switch self.object {
        case .tenant: tenant
        case .limits: tenant + ["limits"]
        case .credential: tenant + ["credentials", self.name ?? ""]
        case .key: tenant + ["keys"]
        }
    }

    /// The change in a few words, as in `key orders of tenant shop`.
    var title: String {
        switch self.object {
        case .tenant: "tenant \(self.tenant)"
        case .limits: "limits of tenant \(self.tenant)"
        case .credential: "\(self.name ?? "") credential of tenant \(self.tenant)"
        case .key: "key \(self.name ?? "") of tenant \(self.tenant)"
        }
    }

    /// The lines of a diff: the title, then a line per field.
    var lines: StyledText {
        let title = StyledText("\(self.action.mark) \(self.title.printable)", self.action.tone)
        return StyledText(lines: [title] + self.fields.map(Self.line))
    }

    private static func line(_ field: Field) -> StyledText {
        let name = field.name
        return switch (field.old?.printable, field.new?.printable) {
        case (let old?, let new?): StyledText("    ~ \(name): \(old) → \(new)", .caution)
        case (let old?, nil): StyledText("    - \(name): \(old)", .bad)
        case (nil, let new): StyledText("    + \(name): \(new ?? "")", .good)
        }
    }

    func write(to writer: inout JSONWriter) {
        func write(_ text: String?, to writer: inout JSONWriter) {
            if let text { writer.string(text) } else { writer.null() }
        }
        writer.object { writer in
            writer.member("action", self.action.rawValue)
            writer.member("object", self.object.rawValue)
            writer.member("tenant", self.tenant.text)
            writer.member("name", ifPresent: self.name)
            writer.array("fields", self.fields) { writer, field in
                writer.object { writer in
                    writer.member("name", field.name)
                    writer.key("old")
                    write(field.old, to: &writer)
                    writer.key("new")
                    write(field.new, to: &writer)
                }
            }
        }
    }
}

/// The changes that turn a gateway's state into the state that a file declares. Computing them changes nothing.
///
///     TenantsFile -> DeclaredTenant --+
///                                     +--> TenantPlan -> TenantChange … -> TenantApplication
///     admin API  --> PresentTenant  --+
struct TenantPlan: Sendable {
    private(set) var changes: [TenantChange] = []
    /// Messages about problems, each of which prevents the whole plan.
    private(set) var conflicts: [String] = []
    /// Messages about tenants that stay because the file does not name them, and about expired keys.
    private(set) var remarks: [String] = []

    /// Descriptions of keys in force, credentials and limits that a declared tenant has and the file does not name.
    private(set) var unnamed: [String] = []

    private let isPruning: Bool
    private let declaredTenants: Set<TenantID>
    /// The tenant of each key, by the key's id.
    private let owners: [String: TenantID]

    /// Compares a file with the gateway's tenants. Pruning deletes tenants that the file does not name.
    init(_ declared: [DeclaredTenant], present: [PresentTenant], isPruning: Bool, now: Timestamp) {
        let presentByID = Dictionary(present.map { ($0.id, $0) }) { first, _ in first }
        let names = Set(declared.map(\.id))
        self.isPruning = isPruning
        self.declaredTenants = names
        self.owners = Self.owners(of: present)
        for tenant in declared {
            let known = presentByID[tenant.id]
            self.compareSettings(tenant, known)
            self.compareLimits(tenant, known)
            for credential in tenant.credentials { self.compare(credential, of: tenant.id, known) }
            for key in tenant.keys { self.compare(key, of: tenant.id, known, now: now) }
            if let known { self.unnamed += Self.unnamed(by: tenant, known, now: now) }
        }
        let others = present.map(\.id).filter { !names.contains($0) }
        if isPruning {
            let early = Set(self.deletedTenants)
            self.changes += others.filter { !early.contains($0) }.map(Self.deletion)
        } else if !others.isEmpty {
            let names = others.map(\.text).joined(separator: ", ")
            self.remarks.append("not in the file, and left as they are: \(names) (--prune deletes such tenants)")
        }
        self.checkSizes()
    }

    /// True if a declared tenant lacks a key that it imports. The keys of all tenants are then needed to find the key's
    /// owner.
    static func asksWhoseKeys(_ declared: [DeclaredTenant], _ present: [PresentTenant]) -> Bool {
        let owners = Self.owners(of: present)
        return declared.contains { tenant in
            tenant.keys.contains { key in key.imported.map { owners[$0.id] != tenant.id } ?? false }
        }
    }

    /// ``unnamed`` as one remark; empty if the file names everything.
    var unnamedRemarks: [String] {
        guard !self.unnamed.isEmpty else { return [] }
        return ["not in the file, and left as they are: \(self.unnamed.joined(separator: ", "))"]
    }

    private static func unnamed(by declared: DeclaredTenant, _ present: PresentTenant, now: Timestamp) -> [String] {
        let kinds = Set(declared.credentials.map(\.kind))
        let limits = declared.limits == nil && !present.limits.isEmpty ? ["limits of tenant \(declared.id)"] : []
        let credentials = UpstreamKind.allCases.filter { present.credentials[$0] != nil && !kinds.contains($0) }
        let keys = present.keys.filter { key in
            let isInForce = !key.isRevoked && key.draft.expiresAt.map { $0 > now } ?? true
            return isInForce
                && !declared.keys.contains { $0.imported.map { $0.id == key.id } ?? ($0.draft.name == key.draft.name) }
        }
        return limits + credentials.map { "\($0.rawValue) credential of tenant \(declared.id)" }
            + keys.map { "key \($0.draft.name) (\($0.id)) of tenant \(declared.id)" }
    }

    private static func owners(of present: [PresentTenant]) -> [String: TenantID] {
        let pairs = present.flatMap { tenant in tenant.keys.map { ($0.id, tenant.id) } }
        return Dictionary(pairs) { first, _ in first }
    }

    static func count(_ count: Int) -> String {
        count == 1 ? "1 change" : "\(count) changes"
    }

    private mutating func checkSizes() {
        for change in self.changes {
            let bytes = change.body?.revealed.readableBytes ?? 0
            guard bytes > Administration.maxBodyBytes else { continue }
            self.conflicts.append(
                "the \(change.title) takes \(bytes) bytes, but the gateway accepts at most \(Administration.maxBodyBytes)"
            )
        }
    }

    var deletedTenants: [TenantID] {
        self.changes.filter { $0.object == .tenant && $0.action == .delete }.map(\.tenant)
    }

    /// The fields that differ; all fields of a new object.
    private static func differences(
        _ old: [(name: String, value: String?)]?,
        _ new: [(name: String, value: String?)]
    ) -> [TenantChange.Field] {
        new.enumerated()
            .map { TenantChange.Field(name: $1.name, old: old?[$0].value, new: $1.value) }
            .filter { $0.old != $0.new }
    }

    // MARK: Settings

    private mutating func compareSettings(_ tenant: DeclaredTenant, _ present: PresentTenant?) {
        let fields = Self.differences(present.map { Self.fields($0.settings) }, Self.fields(tenant.settings))
        guard !fields.isEmpty else { return }
        self.changes.append(
            TenantChange(
                action: present == nil ? .create : .change,
                object: .tenant,
                tenant: tenant.id,
                fields: fields,
                body: Redacted(TenantCommand.body(tenant.settings))
            )
        )
    }

    private static func fields(_ settings: Tenant.Draft) -> [(name: String, value: String?)] {
        let clients = settings.clientNames.map(\.text).joined(separator: ",")
        return [
            ("display_name", settings.displayName), ("upstream", settings.upstream.rawValue),
            ("project_id", settings.projectID), ("sender_id", settings.senderID),
            ("disabled", settings.isDisabled ? "true" : "false"), ("client_names", clients.isEmpty ? nil : clients),
        ]
    }

    private static func deletion(_ id: TenantID) -> TenantChange {
        TenantChange(action: .delete, object: .tenant, tenant: id)
    }

    // MARK: Limits

    private mutating func compareLimits(_ tenant: DeclaredTenant, _ present: PresentTenant?) {
        guard let limits = tenant.limits else { return }
        let own = present?.limits ?? [:]
        let fields = Self.differences(Self.fields(own), Self.fields(limits))
        guard !fields.isEmpty else { return }
        self.changes.append(
            TenantChange(
                action: own.isEmpty ? .create : limits.isEmpty ? .delete : .change,
                object: .limits,
                tenant: tenant.id,
                fields: fields,
                body: Redacted(LimitCommand.body(limits))
            )
        )
    }

    /// Policies in the notation of `limit put`.
    private static func fields(_ limits: [LimitScope: [RatePolicy]]) -> [(name: String, value: String?)] {
        LimitScope.allCases.map { scope in
            (name: scope.rawValue, value: limits[scope]?.map(\.text).joined(separator: ", "))
        }
    }

    // MARK: Credentials

    private mutating func compare(
        _ credential: DeclaredTenant.Credential,
        of tenant: TenantID,
        _ present: PresentTenant?
    ) {
        let kind = credential.kind
        let known = present?.credentials[kind]
        let fields = Self.differences(
            known.map { [("fingerprint", $0.fingerprint), ("endpoint", $0.endpoint)] },
            [("fingerprint", credential.fingerprint), ("endpoint", credential.endpoint)]
        )
        guard !fields.isEmpty else { return }
        self.changes.append(
            TenantChange(
                action: known == nil ? .create : .change,
                object: .credential,
                tenant: tenant,
                name: kind.rawValue,
                fields: fields,
                body: credential.body
            )
        )
    }

    // MARK: Keys

    private mutating func compare(
        _ key: DeclaredTenant.Key,
        of tenant: TenantID,
        _ present: PresentTenant?,
        now: Timestamp
    ) {
        let name = key.draft.name
        let candidates = (present?.keys ?? [])
            .filter { known in
                if let id = key.imported?.id { return known.id == id }
                // A revoked key does not count, so a new key is created.
                return known.draft.name == name && !known.isRevoked
            }
        if candidates.contains(where: \.isRevoked) {
            self.conflicts.append(
                "the key \(name) of tenant \(tenant) was revoked, which is final; declare another key"
            )
            return
        }
        let differences = candidates.map { Self.differences(key.draft, from: $0.draft) }
        guard !differences.contains(where: \.isEmpty) else { return }
        if let difference = differences.last, let id = candidates.last?.id {
            self.conflicts.append(
                "the key \(name) of tenant \(tenant) has other \(difference.joined(separator: ", ")) in the "
                    + "gateway than in the file, and a key can't be changed: declare another key with another name, or "
                    + "revoke this key first (fcm-gateway key revoke \(tenant) \(id))"
            )
            return
        }
        if let end = key.draft.expiresAt, end <= now {
            self.remarks.append("the key \(name) of tenant \(tenant) has expired and is not created")
            return
        }
        if let id = key.imported?.id, let owner = self.owners[id] {
            guard self.isPruning, !self.declaredTenants.contains(owner) else {
                self.conflicts.append(self.conflict(name, id, of: tenant, with: owner))
                return
            }
            // The owner is deleted right before the import, because the gateway does not accept the key in between.
            if !self.deletedTenants.contains(owner) { self.changes.append(Self.deletion(owner)) }
        }
        self.changes.append(Self.creation(key, of: tenant))
    }

    /// Returns the reason that another tenant's key can't be imported. Even a revoked key keeps its id.
    private func conflict(_ name: String, _ id: String, of tenant: TenantID, with owner: TenantID) -> String {
        let advice =
            self.declaredTenants.contains(owner)
            ? "a key can't change its tenant: declare another key"
            : "declare another key, or delete that tenant first (--prune deletes tenants that the file does not name)"
        return "the key \(name) of tenant \(tenant) (\(id)) belongs to tenant \(owner): \(advice)"
    }

    private static func differences(_ key: APIKey.Draft, from known: APIKey.Draft) -> [String] {
        [
            ("name", known.name == key.name), ("scopes", known.scopes == key.scopes),
            ("topic_prefixes", known.topicPrefixes == key.topicPrefixes),
            ("expires_at", known.expiresAt?.milliseconds == key.expiresAt?.milliseconds),
        ]
        .filter { !$0.1 }
        .map(\.0)
    }

    private static func creation(_ key: DeclaredTenant.Key, of tenant: TenantID) -> TenantChange {
        let draft = key.draft
        let prefixes = draft.topicPrefixes.joined(separator: ",")
        let fields = Self.differences(
            nil,
            [
                ("id", key.imported?.id ?? "(made by the gateway)"),
                ("scopes", draft.scopes.map(\.rawValue).sorted().joined(separator: ",")),
                ("topic_prefixes", prefixes.isEmpty ? nil : prefixes), ("expires_at", draft.expiresAt?.rfc3339),
            ]
        )
        return TenantChange(
            action: .create,
            object: .key,
            tenant: tenant,
            name: draft.name,
            fields: fields,
            body: Redacted(KeyCommand.body(draft, imported: key.imported?.text)),
            makesKey: key.imported == nil
        )
    }
}
