import GatewayCore
import RedisClient

/// The questions that one request asks the ``LimiterScript``, chunk by chunk, and their answers.
///
/// The script checks the tenant's bucket first. When that refuses, the rest of the request is refused without asking.
struct LimitReckoning {
    struct Chunk {
        let tenant: LimitKey
        /// The buckets to charge, the tenant's own first.
        var buckets: [RefusalCache.BucketName] = []
        var numbers: [Int64] = []
    }

    /// A bucket without room for one message.
    struct RefusedBucket {
        var name: RefusalCache.BucketName
        /// The nanoseconds until it has room for one.
        var wait: Int64
    }

    let request: LimitRequest
    /// The scopes of a recipient's own keys that have policies: its classes.
    private let scopes: [LimitScope]
    /// All topics of a request count as one recipient.
    private let recipientCount: Int
    private let calls: Int
    private let jitter: RetryJitter

    /// The server's time of the last answer.
    private(set) var now = Timestamp(microseconds: 0)
    private(set) var tenant = LimitBucket(arrivals: [], policies: [])
    /// Buckets that have no room for one message now, for ``RefusalCache``.
    private(set) var refusedBuckets: [RefusedBucket] = []
    /// Each recipient's refusal. Empty before the first one.
    private var denials: [LimitDecision.Denial?] = []
    /// The recipients that the tenant's bucket refused.
    private var refusedByTenant: [Int] = []
    /// The remainder of each recipient's quotas, if nothing is charged.
    private var statuses: [[LimitStatus.Entry]] = []
    private var charges = true
    /// The granted part of `calls`, for which only the tenant is charged.
    private var granted = 0
    /// The first recipient without a question.
    private var next = 0
    /// The recipients of the current chunk.
    private var asked: [Int] = []
    private var hasAnswer = false

    /// Recipients with known refusals are not asked about.
    init(_ request: LimitRequest, known: [Int: LimitDecision.Denial] = [:], jitter: @escaping RetryJitter) {
        self.request = request
        self.jitter = jitter
        let scopes: [LimitScope] =
            switch request.recipients {
            case .devices: request.isCollapsible ? [.device, .deviceCollapsible] : [.device]
            case .topics: [.topic]
            case .tenantOnly: []
            }
        self.scopes = scopes.filter { !request.policies[$0].isEmpty }
        self.recipientCount = request.recipientCount
        self.calls = request.count - request.recipientCount
        for (index, denial) in known { self.deny(index, denial) }
    }

    var isComplete: Bool { self.hasAnswer && self.next == self.recipientCount }

    private mutating func deny(_ index: Int, _ denial: LimitDecision.Denial) {
        if self.denials.isEmpty { self.denials = Array(repeating: nil, count: self.recipientCount) }
        self.denials[index] = denial
    }

    /// The buckets that a recipient's message is charged to, in the order of asking.
    private func keys(of recipient: Int) -> ArraySlice<LimitKey> {
        switch self.request.recipients {
        case .devices(let keys):
            self.request.members.isEmpty
                ? keys[recipient...recipient] : [keys[recipient]] + (self.request.members[recipient] ?? [])
        case .topics(let keys): keys[...]
        case .tenantOnly: []
        }
    }

    // MARK: Asking

    mutating func nextChunk(charges: Bool) -> Chunk {
        self.charges = charges
        let (tenant, policies) = (self.request.tenant, self.request.policies)
        let recipients = min(self.recipientCount - self.next, RedisRateLimiter.chunkRecipients)
        var chunk = Chunk(tenant: tenant)
        chunk.buckets.reserveCapacity(1 + recipients * self.scopes.count)
        // The numbers of two policies for each class.
        chunk.numbers.reserveCapacity(8 + 5 * self.scopes.count + recipients)
        chunk.buckets.append(.init(.tenant, tenant, policies))
        chunk.numbers.append(charges ? 1 : 0)
        chunk.numbers.append(Int64(self.calls))
        chunk.numbers.append(Int64(self.scopes.count))
        chunk.add(policies.tenant)
        for scope in self.scopes { chunk.add(policies[scope]) }
        self.asked.removeAll(keepingCapacity: true)
        while self.next < self.recipientCount, self.asked.count < RedisRateLimiter.chunkRecipients {
            guard self.denials.isEmpty || self.denials[self.next] == nil else {
                self.next += 1
                continue
            }
            let devices = self.keys(of: self.next)
            let count = devices.count * self.scopes.count
            // The first bucket is the tenant's.
            guard self.asked.isEmpty || chunk.buckets.count - 1 + count <= RedisRateLimiter.chunkKeys else { break }
            for device in devices {
                for scope in self.scopes { chunk.buckets.append(.init(scope, device, policies)) }
            }
            chunk.numbers.append(Int64(count))
            self.asked.append(self.next)
            self.next += 1
        }
        return chunk
    }

    // MARK: Answers

    /// Reads the answer to the chunk. Returns false if it is not a valid one.
    mutating func add(_ reply: RESPValue) -> Bool {
        let policies = self.request.policies
        guard case .bytes(let bytes) = reply, var rest = LimiterScript.numbers(bytes),
            let now = rest.popFirst(), let granted = rest.popFirst(),
            let tenant = rest.popFirst(policies.tenant.count), (0...Int64(self.calls)).contains(granted)
        else { return false }
        self.now = Timestamp(microseconds: now)
        self.tenant = self.bucket(.tenant, tenant)
        self.granted = Int(granted)
        for recipient in self.asked {
            let isUnderstood =
                self.charges ? self.addOutcome(of: recipient, &rest) : self.addStatus(of: recipient, &rest)
            guard isUnderstood else { return false }
        }
        guard rest.isEmpty else { return false }
        self.hasAnswer = true
        if !self.refusedByTenant.isEmpty {
            while self.next < self.recipientCount {
                if self.denials.isEmpty || self.denials[self.next] == nil { self.refusedByTenant.append(self.next) }
                self.next += 1
            }
        }
        let wait = self.tenant.wait(at: self.now)
        if wait > 0 {
            let name = RefusalCache.BucketName(.tenant, self.request.tenant, policies)
            self.refusedBuckets.append(RefusedBucket(name: name, wait: wait))
        }
        return true
    }

    private mutating func addOutcome(of recipient: Int, _ rest: inout ArraySlice<Int64>) -> Bool {
        guard let outcome = rest.popFirst() else { return false }
        if outcome == 0 { return true }
        if outcome == -1 {
            self.refusedByTenant.append(recipient)
            return true
        }
        let keys = self.keys(of: recipient)
        guard let wait = rest.popFirst(), wait > 0, outcome >= 1, outcome <= keys.count * self.scopes.count else {
            return false
        }
        let scope = self.scopes[(Int(outcome) - 1) % self.scopes.count]
        let key = keys[keys.startIndex + (Int(outcome) - 1) / self.scopes.count]
        let name = RefusalCache.BucketName(scope, key, self.request.policies)
        self.refusedBuckets.append(RefusedBucket(name: name, wait: wait))
        self.deny(recipient, LimitDecision.Denial(scope, wait: wait, self.jitter))
        return true
    }

    private mutating func addStatus(of recipient: Int, _ rest: inout ArraySlice<Int64>) -> Bool {
        // Each topic is reported separately, and a device group without its members.
        let isTopic = if case .topics = self.request.recipients { true } else { false }
        var entries: [[LimitStatus.Entry]] = []
        for _ in self.keys(of: recipient) {
            var own: [LimitStatus.Entry] = []
            for scope in self.scopes {
                guard let backlogs = rest.popFirst(self.request.policies[scope].count) else { return false }
                let quotas = self.bucket(scope, backlogs).quotas(at: self.now)
                own += quotas.map { LimitStatus.Entry(scope: scope, quota: $0) }
            }
            entries.append(own)
        }
        self.statuses += isTopic ? entries : Array(entries.prefix(1))
        return true
    }

    private func bucket(_ scope: LimitScope, _ backlogs: ArraySlice<Int64>) -> LimitBucket {
        let now = self.now.microseconds * 1_000
        return LimitBucket(arrivals: backlogs.map { now + $0 }, policies: self.request.policies[scope])
    }

    // MARK: Results

    var decision: LimitDecision {
        LimitDecision(admission: self.admission, tenantQuotas: self.tenant.quotas(at: self.now))
    }

    private var admission: LimitDecision.Admission {
        if self.calls > 0 {
            if self.granted == self.calls { return .all }
            let denial = self.tenantDenial(for: self.calls - self.granted)
            return self.granted == 0 ? .none(denial) : .some((0..<self.calls).map { $0 < self.granted ? nil : denial })
        }
        guard !self.refusedByTenant.isEmpty else { return LimitDecision.Admission(self.denials) }
        var denials = self.denials.isEmpty ? Array(repeating: nil, count: self.recipientCount) : self.denials
        let denial = self.tenantDenial(for: self.refusedByTenant.count)
        for index in self.refusedByTenant { denials[index] = denial }
        return LimitDecision.Admission(denials)
    }

    private func tenantDenial(for count: Int) -> LimitDecision.Denial {
        LimitDecision.Denial(.tenant, wait: self.tenant.wait(for: count, at: self.now), self.jitter)
    }

    var status: LimitStatus {
        LimitStatus(tenant: self.tenant.quotas(at: self.now), recipients: self.statuses)
    }
}

extension LimitReckoning.Chunk {
    /// Adds the policies of a class of buckets.
    fileprivate mutating func add(_ policies: [RatePolicy]) {
        self.numbers.append(Int64(policies.count))
        for policy in policies {
            self.numbers.append(policy.interval)
            self.numbers.append(Int64(policy.burst))
        }
    }
}

extension ArraySlice<Int64> {
    /// Removes `count` numbers from the front. `nil` if there are fewer.
    fileprivate mutating func popFirst(_ count: Int) -> ArraySlice<Int64>? {
        guard self.count >= count else { return nil }
        defer { self.removeFirst(count) }
        return self.prefix(count)
    }
}
