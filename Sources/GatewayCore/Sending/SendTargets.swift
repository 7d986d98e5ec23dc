import FCMModel

/// A target's recipients as limits and audit know them: by pseudonym.
struct SendTargets: Sendable {
    /// The recipients' pseudonyms, 16 bytes each, in the request's order.
    let pseudonyms: [Pseudonym]
    /// The tenant's own bucket.
    let tenantKey: LimitKey
    private let areTopics: Bool
    /// What recipients that are device groups are charged to, by their places: the group's own bucket and its members'.
    private var groups: [Int: [LimitKey]] = [:]

    init(_ target: Target, profile: TenantProfile) {
        let pseudonymizer = profile.pseudonymizer
        switch target {
        case .token(let text), .installation(let text), .notificationKey(let text):
            self.pseudonyms = [pseudonymizer.pseudonym(of: text)]
            self.areTopics = false
        case .tokens(let texts), .installations(let texts):
            self.pseudonyms = texts.map(pseudonymizer.pseudonym(of:))
            self.areTopics = false
        case .topic, .condition:
            self.pseudonyms = target.topics.map { pseudonymizer.pseudonym(of: $0.text) }
            self.areTopics = true
        }
        self.tenantKey = profile.limitKey
    }

    private init(pseudonyms: [Pseudonym], tenantKey: LimitKey, areTopics: Bool, groups: [Int: [LimitKey]]) {
        self.pseudonyms = pseudonyms
        self.tenantKey = tenantKey
        self.areTopics = areTopics
        self.groups = groups
    }

    /// The same with what recipients that are device groups are charged to.
    func charging(_ groups: [Int: [LimitKey]]) -> SendTargets {
        var targets = self
        targets.groups = groups
        return targets
    }

    /// The same without the recipients whose entry is `false`.
    func keeping(_ isKept: [Bool]) -> SendTargets {
        var groups: [Int: [LimitKey]] = [:]
        if !self.groups.isEmpty {
            for (place, index) in isKept.indices.filter({ isKept[$0] }).enumerated() {
                groups[place] = self.groups[index]
            }
        }
        return SendTargets(
            pseudonyms: zip(self.pseudonyms, isKept).compactMap { pseudonym, isKept in isKept ? pseudonym : nil },
            tenantKey: self.tenantKey,
            areTopics: self.areTopics,
            groups: groups
        )
    }

    /// How many events the tenant pays for.
    var count: Int { self.areTopics ? 1 : self.pseudonyms.count }

    /// What the limiter is asked about.
    var limited: LimitRequest.Recipients {
        var keys = self.pseudonyms.map(LimitKey.init)
        for (index, charged) in self.groups { keys[index] = charged[0] }
        return self.areTopics ? .topics(keys) : .devices(keys)
    }

    /// The devices to which messages to groups go as well, by the groups' places.
    var members: [Int: [LimitKey]] { self.groups.isEmpty ? [:] : self.groups.mapValues { Array($0.dropFirst()) } }

    /// The pseudonyms as the audit stores them.
    var auditBytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(self.pseudonyms.count * Pseudonym.byteCount)
        for pseudonym in self.pseudonyms {
            pseudonym.append(to: &bytes)
        }
        return bytes
    }
}

extension LimitRequest {
    /// What a send charges.
    init(_ command: SendCommand, _ targets: SendTargets) {
        self.init(
            tenant: targets.tenantKey,
            history: command.principal.profile.policyHistory,
            recipients: command.message.dryRun ? .tenantOnly(targets.count) : targets.limited,
            isCollapsible: command.message.collapseKey != nil
        )
        if !command.message.dryRun { self.members = targets.members }
    }

    /// A send's tenant alone, to look at its quotas without charging them.
    static func nothing(of command: SendCommand, _ targets: SendTargets) -> LimitRequest {
        LimitRequest(
            tenant: targets.tenantKey,
            history: command.principal.profile.policyHistory,
            recipients: .tenantOnly(0),
            isCollapsible: false
        )
    }
}

extension Target {
    /// The topics that a send counts on, each once.
    var topics: [TopicName] {
        switch self {
        case .topic(let topic):
            return [topic]
        case .condition(let condition):
            var seen: Set<TopicName> = []
            return condition.topics.filter { seen.insert($0).inserted }
        case .token, .tokens, .installation, .installations, .notificationKey:
            return []
        }
    }

    /// A list without the recipients whose entry is `false`; `nil` for anything that is no list.
    func keeping(_ isKept: [Bool]) -> Target? {
        func kept(_ texts: [String]) -> [String] {
            zip(texts, isKept).compactMap { text, isKept in isKept ? text : nil }
        }
        switch self {
        case .tokens(let tokens): return .tokens(kept(tokens))
        case .installations(let ids): return .installations(kept(ids))
        case .token, .installation, .topic, .condition, .notificationKey: return nil
        }
    }

    /// The recipients that are listed; `nil` for anything that is no list.
    var listed: [String]? {
        switch self {
        case .tokens(let texts), .installations(let texts): texts
        case .token, .installation, .topic, .condition, .notificationKey: nil
        }
    }

    /// Whether the answer is a list of results even for one recipient.
    var isList: Bool {
        switch self {
        case .tokens, .installations: true
        case .token, .installation, .topic, .condition, .notificationKey: false
        }
    }
}
