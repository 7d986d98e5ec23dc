import FCMModel

/// A target's recipients as limits and audit know them: by pseudonym.
struct SendTargets: Sendable {
    /// The recipients, in the request's order.
    private(set) var pseudonyms: [Pseudonym]
    private let areTopics: Bool
    /// The buckets of recipients that are device groups, by their places: the group's own and those of its members.
    private var groups: [Int: [LimitKey]] = [:]

    init(_ target: Target, profile: TenantProfile) {
        let pseudonymizer = profile.pseudonymizer
        switch target {
        case .token(let text), .installation(let text), .notificationKey(let text), .deviceGroup(let text):
            self.pseudonyms = [pseudonymizer.pseudonym(of: text)]
            self.areTopics = false
        case .tokens(let texts), .installations(let texts):
            self.pseudonyms = texts.map(pseudonymizer.pseudonym(of:))
            self.areTopics = false
        case .topic, .condition:
            self.pseudonyms = target.topics.map { pseudonymizer.pseudonym(of: $0.text) }
            self.areTopics = true
        }
    }

    func charging(_ groups: [Int: [LimitKey]]) -> SendTargets {
        var targets = self
        targets.groups = groups
        return targets
    }

    func keeping(_ isKept: [Bool]) -> SendTargets {
        var targets = self
        targets.pseudonyms = zip(self.pseudonyms, isKept).compactMap { pseudonym, isKept in isKept ? pseudonym : nil }
        guard !self.groups.isEmpty else { return targets }
        targets.groups = [:]
        for (place, index) in isKept.indices.filter({ isKept[$0] }).enumerated() {
            targets.groups[place] = self.groups[index]
        }
        return targets
    }

    /// The number of events charged to the tenant.
    var count: Int { self.areTopics ? 1 : self.pseudonyms.count }

    var limited: LimitRequest.Recipients {
        var keys = self.pseudonyms.map(LimitKey.init)
        for (index, charged) in self.groups { keys[index] = charged[0] }
        return self.areTopics ? .topics(keys) : .devices(keys)
    }

    /// The members of device groups, by the groups' places.
    var members: [Int: [LimitKey]] { self.groups.isEmpty ? [:] : self.groups.mapValues { Array($0.dropFirst()) } }

    var auditBytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(self.pseudonyms.count * Pseudonym.byteCount)
        for pseudonym in self.pseudonyms { pseudonym.append(to: &bytes) }
        return bytes
    }
}

extension LimitRequest {
    init(_ command: SendCommand, _ targets: SendTargets) {
        self.init(
            tenant: command.profile.limitKey,
            policies: command.profile.limits,
            recipients: command.message.dryRun ? .tenantOnly(targets.count) : targets.limited,
            isCollapsible: command.message.isCollapsible
        )
        if !command.message.dryRun { self.members = targets.members }
    }

    /// Names a send's tenant alone, to read its quotas without a charge.
    static func nothing(of command: SendCommand) -> LimitRequest { LimitRequest(calls: 0, of: command.profile) }
}

extension LimitDecision.Denial {
    /// The denial by a tenant's quotas, until one message fits; `nil` where each quota has room for one.
    init?(_ quotas: [QuotaStatus]) {
        guard let wait = quotas.filter({ $0.remaining <= 0 }).map(\.resetSeconds).max() else { return nil }
        self.init(scope: .tenant, retryAfter: wait)
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
        case .token, .tokens, .installation, .installations, .notificationKey, .deviceGroup:
            return []
        }
    }

    /// Returns a list without the recipients whose entry is `false`, or `nil` if the target is no list.
    func keeping(_ isKept: [Bool]) -> Target? {
        func kept(_ texts: [String]) -> [String] {
            zip(texts, isKept).compactMap { text, isKept in isKept ? text : nil }
        }
        switch self {
        case .tokens(let tokens): return .tokens(kept(tokens))
        case .installations(let ids): return .installations(kept(ids))
        case .token, .installation, .topic, .condition, .notificationKey, .deviceGroup: return nil
        }
    }
}
