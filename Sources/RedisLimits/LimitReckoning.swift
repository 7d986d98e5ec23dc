import GatewayCore
import RedisClient

/// One request's way through the ``LimiterScript``: what is asked, chunk after chunk, and what came of it.
struct LimitReckoning {
    struct Chunk {
        var keys: [[UInt8]]
        var numbers: [Int64]
    }

    private struct BucketName: Hashable {
        var scope: LimitScope
        var key: LimitKey
    }

    private let request: LimitRequest
    private let prefix: [UInt8]
    /// The scopes of a recipient's own keys that have policies: its classes.
    private let scopes: [LimitScope]
    /// Each recipient's devices, itself first; all topics of a request are one recipient.
    private let recipients: [[LimitKey]]
    private let calls: Int

    private var now = Timestamp(microseconds: 0)
    private var tenant: [Int64] = []
    private var buckets: [BucketName: LimitBucket] = [:]
    private var refused: [LimitWaits.Refused] = []
    private var charges = true
    /// Of the calls that the tenant alone is charged for.
    private var granted = 0
    /// The recipients whose answers have come.
    private var done = 0
    /// Those of the chunk under way.
    private var asked = 0
    private var hasAnswer = false

    init(_ request: LimitRequest) {
        self.request = request
        self.prefix = Array("rl:{".utf8) + request.tenant.digits + Array("}:".utf8)
        let policies = request.history.policies
        switch request.recipients {
        case .devices(let keys):
            let scopes: [LimitScope] = request.isCollapsible ? [.device, .deviceCollapsible] : [.device]
            self.scopes = scopes.filter { !policies[$0].isEmpty }
            self.recipients =
                request.members.isEmpty
                ? keys.map { [$0] } : keys.enumerated().map { [$1] + (request.members[$0] ?? []) }
            self.calls = 0
        case .topics(let keys):
            self.scopes = policies[.topic].isEmpty ? [] : [.topic]
            self.recipients = [keys]
            self.calls = 0
        case .tenantOnly(let count):
            self.scopes = []
            self.recipients = []
            self.calls = count
        }
    }

    var isComplete: Bool { self.hasAnswer && self.done == self.recipients.count }

    // MARK: Asking

    mutating func nextChunk(charges: Bool) -> Chunk {
        self.charges = charges
        var keys = [self.prefix + [UInt8(ascii: "t")]]
        let policies = self.request.history.policies
        var numbers = [self.request.history.revision, charges ? 1 : 0, Int64(self.calls), Int64(self.scopes.count)]
        for scope in [.tenant] + self.scopes {
            numbers.append(Int64(policies[scope].count))
            for policy in policies[scope] { numbers += [policy.interval, Int64(policy.burst)] }
        }
        self.asked = 0
        for devices in self.recipients[self.done...].prefix(RedisRateLimiter.chunkRecipients) {
            // The first is the tenant's.
            let count = keys.count - 1 + devices.count * self.scopes.count
            guard self.asked == 0 || count <= RedisRateLimiter.chunkKeys else { break }
            for device in devices {
                for scope in self.scopes { keys.append(self.name(scope, device)) }
            }
            numbers.append(Int64(devices.count * self.scopes.count))
            self.asked += 1
        }
        return Chunk(keys: keys, numbers: numbers)
    }

    private func name(_ scope: LimitScope, _ key: LimitKey) -> [UInt8] {
        let kind =
            switch scope {
            case .tenant: UInt8(ascii: "t")
            case .device: UInt8(ascii: "d")
            case .deviceCollapsible: UInt8(ascii: "c")
            case .topic: UInt8(ascii: "o")
            }
        return self.prefix + [kind, UInt8(ascii: ":")] + key.digits
    }

    // MARK: Answers

    /// Takes the answer to the chunk; false where it is none.
    mutating func add(_ reply: RESPValue) -> Bool {
        let policies = self.request.history.policies
        guard case .bytes(let bytes) = reply, var rest = LimiterScript.numbers(bytes),
            let now = rest.popFirst(), let granted = rest.popFirst(),
            let outcomes = rest.popFirst(self.asked), let tenant = rest.popFirst(policies.tenant.count)
        else { return false }
        self.now = Timestamp(microseconds: now)
        self.tenant = tenant.map { now * 1_000 + $0 }
        for (place, outcome) in outcomes.enumerated() {
            let index = self.done + place
            if outcome != 0 {
                guard let scope = self.scope(of: outcome) else { return false }
                self.refused.append(LimitWaits.Refused(index: index, scope: scope))
            }
            guard outcome != 0 || !self.charges else { continue }
            for device in self.recipients[index] {
                for scope in self.scopes {
                    guard let backlogs = rest.popFirst(policies[scope].count) else { return false }
                    let bucket = LimitBucket(arrivals: backlogs.map { now * 1_000 + $0 }, policies: policies[scope])
                    self.buckets[BucketName(scope: scope, key: device)] = bucket
                }
            }
        }
        guard rest.isEmpty, (0...Int64(self.calls)).contains(granted) else { return false }
        self.granted = Int(granted)
        self.done += self.asked
        self.hasAnswer = true
        return true
    }

    private func scope(of outcome: Int64) -> LimitScope? {
        if outcome == -1 { return .tenant }
        guard outcome >= 1, outcome <= Int64(self.scopes.count) else { return nil }
        return self.scopes[Int(outcome) - 1]
    }

    // MARK: What is made of them

    var decision: LimitDecision {
        let waits = LimitWaits(self.request, now: self.now) { scope, key in self.bucket(scope, key) }
        let admission: LimitDecision.Admission
        switch self.request.recipients {
        case .devices, .topics:
            admission = waits.admission(refusing: self.refused, of: self.recipients.count)
        case .tenantOnly(let count) where count > 0 && self.granted == 0:
            admission = .none(waits.tenantDenial)
        case .tenantOnly(let count):
            let refused = (self.granted..<count).map { LimitWaits.Refused(index: $0, scope: .tenant) }
            admission = waits.admission(refusing: refused, of: count)
        }
        return LimitDecision(
            admission: admission,
            tenantQuotas: self.bucket(.tenant, self.request.tenant).quotas(at: self.now)
        )
    }

    var status: LimitStatus {
        func entries(_ key: LimitKey, _ scopes: [LimitScope]) -> [LimitStatus.Entry] {
            scopes.flatMap { scope in
                self.bucket(scope, key).quotas(at: self.now).map { LimitStatus.Entry(scope: scope, quota: $0) }
            }
        }
        let recipients =
            switch self.request.recipients {
            case .devices(let keys): keys.map { entries($0, self.scopes) }
            case .topics(let keys): keys.map { entries($0, self.scopes) }
            case .tenantOnly: [[LimitStatus.Entry]]()
            }
        return LimitStatus(
            tenant: self.bucket(.tenant, self.request.tenant).quotas(at: self.now),
            recipients: recipients
        )
    }

    /// A bucket as it is now; one that nothing was said of is not asked about.
    private func bucket(_ scope: LimitScope, _ key: LimitKey) -> LimitBucket {
        let policies = self.request.history.policies[scope]
        if scope == .tenant { return LimitBucket(arrivals: self.tenant, policies: policies) }
        return self.buckets[BucketName(scope: scope, key: key)] ?? LimitBucket(arrivals: [Int64](), policies: policies)
    }
}

extension ArraySlice<Int64> {
    /// Takes so many off the front; `nil` where there are fewer.
    fileprivate mutating func popFirst(_ count: Int) -> ArraySlice<Int64>? {
        guard self.count >= count else { return nil }
        defer { self.removeFirst(count) }
        return self.prefix(count)
    }
}
