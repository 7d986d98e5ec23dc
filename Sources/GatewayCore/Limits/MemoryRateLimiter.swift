import Crypto
import Metrics
import Synchronization

/// Limits by what this process has let through.
package final class MemoryRateLimiter: RateLimiter {
    private let tenants: LimitTable
    private let devices: LimitTable
    private let collapsibles: LimitTable
    private let topics: LimitTable
    private let metrics: LimiterMetrics?

    /// A limiter with every quota whole; of the buckets of a scope, the fullest are forgotten beyond the bound.
    ///
    /// The source is what metrics call it.
    package init(maxEntries: Int = 4_000_000, metrics: GatewayMetrics? = nil, source: String = "memory") {
        self.tenants = LimitTable(.tenant, maxEntries: maxEntries)
        self.devices = LimitTable(.device, maxEntries: maxEntries)
        self.collapsibles = LimitTable(.deviceCollapsible, maxEntries: maxEntries)
        self.topics = LimitTable(.topic, maxEntries: maxEntries)
        self.metrics = metrics.map { LimiterMetrics($0, source: source) }
    }

    /// The tables of all scopes, in the order in which they are saved.
    var scopes: [LimitTable] { [self.tenants, self.topics, self.devices, self.collapsibles] }

    package var bucketCount: Int { self.scopes.reduce(0) { $0 + $1.count } }

    /// Charges the tenant first, then each recipient; what a recipient does not use goes back to the tenant.
    package func admit(_ request: LimitRequest, now: Timestamp) async -> LimitDecision {
        self.decide(request, now.microseconds * 1_000)
    }

    @inline(never)  // What it works with stays out of the frames of whoever awaits it.
    private func decide(_ request: LimitRequest, _ now: Int64) -> LimitDecision {
        let start = self.metrics?.began()
        let admission =
            switch request.recipients {
            case .devices(let keys): self.admitDevices(keys, request, now)
            case .topics(let keys): self.admitTopics(keys, request, now)
            case .tenantOnly(let count): self.admitTenantOnly(count, request, now)
            }
        let quotas = self.tenants.bucket(request.tenant, under: request.history).quotas(at: now)
        self.metrics?.count(admission)
        if let start { self.metrics?.ended(since: start) }
        return LimitDecision(admission: admission, tenantQuotas: quotas)
    }

    package func status(of request: LimitRequest, now: Timestamp) async -> LimitStatus {
        let now = now.microseconds * 1_000
        func entries(_ table: LimitTable, _ key: LimitKey, _ scope: LimitScope) -> [LimitStatus.Entry] {
            table.bucket(key, under: request.history).quotas(at: now)
                .map { LimitStatus.Entry(scope: scope, quota: $0) }
        }
        let recipients =
            switch request.recipients {
            case .devices(let keys):
                keys.map { key in
                    entries(self.devices, key, .device)
                        + (request.isCollapsible ? entries(self.collapsibles, key, .deviceCollapsible) : [])
                }
            case .topics(let keys):
                keys.map { entries(self.topics, $0, .topic) }
            case .tenantOnly:
                [[LimitStatus.Entry]]()
            }
        return LimitStatus(
            tenant: self.tenants.bucket(request.tenant, under: request.history).quotas(at: now),
            recipients: recipients
        )
    }

    private func admitDevices(_ keys: [LimitKey], _ request: LimitRequest, _ now: Int64) -> LimitDecision.Admission {
        let tenant = self.tenants.charge(request.tenant, keys.count, under: request.history, now: now)
        guard tenant.granted > 0 else { return .none(self.waits(request, now).tenantDenial) }

        // Nothing is allocated until the first refusal.
        var refused: [LimitWaits.Refused] = []
        var used = 0
        for (index, key) in keys.enumerated() {
            if used == tenant.granted {
                refused.append(LimitWaits.Refused(index: index, scope: .tenant))
            } else if let scope = self.chargeRecipient(index, key, request, now) {
                refused.append(LimitWaits.Refused(index: index, scope: scope))
            } else {
                used += 1
            }
        }
        self.tenants.refund(request.tenant, tenant.granted - used, under: request.history, now: now)
        if refused.isEmpty { return .all }
        return self.waits(request, now).admission(refusing: refused, of: keys.count)
    }

    /// Charges a recipient's own quotas, and those of all its members, or none; gives the scope of the quota that has
    /// no room.
    private func chargeRecipient(_ index: Int, _ key: LimitKey, _ request: LimitRequest, _ now: Int64) -> LimitScope? {
        if let scope = self.chargeDevice(key, request, now) { return scope }
        guard !request.members.isEmpty, let members = request.members[index] else { return nil }
        for (place, member) in members.enumerated() {
            guard let scope = self.chargeDevice(member, request, now) else { continue }
            for charged in [key] + members[..<place] {
                self.devices.refund(charged, 1, under: request.history, now: now)
                guard request.isCollapsible else { continue }
                self.collapsibles.refund(charged, 1, under: request.history, now: now)
            }
            return scope
        }
        return nil
    }

    /// Charges a device's own quotas, both or none; gives the scope of the quota that has no room.
    private func chargeDevice(_ key: LimitKey, _ request: LimitRequest, _ now: Int64) -> LimitScope? {
        guard self.devices.charge(key, 1, under: request.history, now: now).granted == 1 else { return .device }
        guard request.isCollapsible else { return nil }
        if self.collapsibles.charge(key, 1, under: request.history, now: now).granted == 1 { return nil }
        self.devices.refund(key, 1, under: request.history, now: now)
        return .deviceCollapsible
    }

    private func admitTopics(_ keys: [LimitKey], _ request: LimitRequest, _ now: Int64) -> LimitDecision.Admission {
        let tenant = self.tenants.charge(request.tenant, 1, under: request.history, now: now)
        guard tenant.granted == 1 else { return .none(self.waits(request, now).tenantDenial) }
        for (index, key) in keys.enumerated() {
            guard self.topics.charge(key, 1, under: request.history, now: now).granted == 1 else {
                for charged in keys[..<index] {
                    self.topics.refund(charged, 1, under: request.history, now: now)
                }
                self.tenants.refund(request.tenant, 1, under: request.history, now: now)
                let refused = [LimitWaits.Refused(index: 0, scope: .topic)]
                return self.waits(request, now).admission(refusing: refused, of: 1)
            }
        }
        return .all
    }

    private func admitTenantOnly(_ count: Int, _ request: LimitRequest, _ now: Int64) -> LimitDecision.Admission {
        let tenant = self.tenants.charge(request.tenant, count, under: request.history, now: now)
        if tenant.granted == count { return .all }
        guard tenant.granted > 0 else { return .none(self.waits(request, now).tenantDenial) }
        let refused = (tenant.granted..<count).map { LimitWaits.Refused(index: $0, scope: .tenant) }
        return self.waits(request, now).admission(refusing: refused, of: count)
    }

    private func waits(_ request: LimitRequest, _ now: Int64) -> LimitWaits {
        LimitWaits(request, now: Timestamp(microseconds: now / 1_000)) { scope, key in
            switch scope {
            case .tenant: self.tenants.bucket(key, under: request.history)
            // A charge of nothing, since what is told must hold: it writes down a time from before the clock was set back.
            case .device: self.devices.charge(key, 0, under: request.history, now: now).bucket
            case .deviceCollapsible: self.collapsibles.charge(key, 0, under: request.history, now: now).bucket
            case .topic: self.topics.charge(key, 0, under: request.history, now: now).bucket
            }
        }
    }
}

/// Counts a limiter's decisions, and times some of them.
package final class LimiterMetrics: Sendable {
    /// One decision of so many is timed: asking for the time twice would cost as much as the decision.
    private static let decisionsPerSample = 16

    private let admitted: Counter
    private let denied: [LimitScope: Counter]
    private let durations: Timer
    private let fallbackActive: Meter
    private let begun = Atomic(0)

    /// The source tells limiters apart.
    package init(_ metrics: GatewayMetrics, source: String) {
        self.admitted = metrics.counter(.limiterDecisions, LimitScope.tenant.rawValue, "admitted", source)
        self.denied = metrics.counters(.limiterDecisions, by: LimitScope.self, "denied", source)
        self.durations = metrics.timer(.limiterDuration, source)
        self.fallbackActive = metrics.gauge(.limiterFallbackActive)
        self.fallbackActive.set(0)
    }

    /// When a decision begins, if it is one of those that are timed: the first, and then every 16th.
    package func began() -> ContinuousClock.Instant? {
        let number = self.begun.wrappingAdd(1, ordering: .relaxed).oldValue
        return number % Self.decisionsPerSample == 0 ? .now : nil
    }

    package func ended(since start: ContinuousClock.Instant) {
        self.durations.record(duration: .now - start)
    }

    /// Shows whether limits that ought to be shared are not.
    package func show(isFallbackActive: Bool) {
        self.fallbackActive.set(isFallbackActive ? 1 : 0)
    }

    /// Counts a decision: once for a whole request, or once for each recipient of one that was admitted in part.
    package func count(_ admission: LimitDecision.Admission) {
        switch admission {
        case .all:
            self.admitted.increment()
        case .none(let denial):
            self.denied[denial.scope]?.increment()
        case .some(let denials):
            for denial in denials {
                if let denial { self.denied[denial.scope]?.increment() } else { self.admitted.increment() }
            }
        }
    }
}

extension MemoryRateLimiter {
    /// Why a snapshot can't be restored.
    package enum Damage: Error, Sendable, Hashable {
        /// It was written by something else, or by another version.
        case foreign
        case changed
    }

    /// What came of saving or restoring.
    package struct Saved: Sendable {
        package var buckets = 0
        /// Buckets beyond the bound, which start full again.
        package var leftOut = 0
        /// The policies that restored buckets were charged under, by tenants' keys.
        package var policies: [LimitKey: PolicyHistory] = [:]
    }

    /// More buckets than this are not saved: 128 MiB.
    package static let maxSavedBuckets = 4_000_000
    /// More than a snapshot ever has: those of the buckets, and as much again for tenants' policies.
    package static let maxSnapshotBytes = maxSavedBuckets * bucketBytes * 2

    private static let magic = Array("fcm-gateway limits 2\n".utf8)
    /// A key of 14 bytes, the version of its tenant's policies in two more, and two arrival times.
    private static let bucketBytes = 32

    /// All quotas that are not whole, as bytes: for each scope's tables a count and that many buckets, then the policies
    /// that they were charged under, with a digest over everything at the end.
    ///
    /// Whom a bucket belongs to can't be told from it: its key is a keyed hash.
    package func save(
        policies: [LimitKey: PolicyHistory],
        now: Timestamp,
        upTo maxBuckets: Int = maxSavedBuckets
    ) -> (bytes: [UInt8], saved: Saved) {
        let now = now.microseconds * 1_000
        var saved = Saved()
        var bytes = Self.magic
        bytes.reserveCapacity(Self.magic.count + 96 + min(self.bucketCount, maxBuckets) * Self.bucketBytes)
        for scope in self.scopes {
            for table in 0..<LimitTable.tableCount {
                let start = bytes.count
                bytes.append(word: 0)
                var count: UInt64 = 0
                scope.forEachBucket(ofTable: table, now: now) { slot in
                    guard saved.buckets < maxBuckets else {
                        saved.leftOut += 1
                        return
                    }
                    bytes.append(word: slot.key.high | UInt64(slot.version))
                    bytes.append(word: slot.key.low)
                    bytes.append(word: UInt64(bitPattern: slot.first))
                    bytes.append(word: UInt64(bitPattern: slot.second))
                    count += 1
                    saved.buckets += 1
                }
                for index in 0..<8 { bytes[start + index] = UInt8(truncatingIfNeeded: count >> UInt64(8 * index)) }
            }
        }
        bytes.append(word: UInt64(policies.count))
        for (tenant, history) in policies { history.write(to: &bytes, of: tenant) }
        bytes.append(contentsOf: Self.digest(of: bytes[...]))
        return (bytes, saved)
    }

    static func digest(of bytes: ArraySlice<UInt8>) -> [UInt8] {
        SHA256.hash(data: bytes).bytes
    }

    /// Restores what was saved; quotas that have become whole meanwhile are left out, and nothing is restored of bytes
    /// that don't have their digest.
    package func restore(_ bytes: [UInt8], now: Timestamp) throws(Damage) -> Saved {
        let digestBytes = 32
        guard bytes.starts(with: Self.magic) else { throw .foreign }
        guard bytes.count >= Self.magic.count + digestBytes,
            Self.digest(of: bytes[..<(bytes.count - digestBytes)]) == Array(bytes[(bytes.count - digestBytes)...])
        else { throw .changed }
        let now = now.microseconds * 1_000
        var reader = WordReader(bytes: bytes, position: Self.magic.count, end: bytes.count - digestBytes)
        var saved = Saved()
        for scope in self.scopes {
            for table in 0..<LimitTable.tableCount {
                let count = try reader.count(upTo: reader.left / Self.bucketBytes)
                scope.reserve(count, inTable: table)
                for _ in 0..<count {
                    let (high, low) = (try reader.next(), try reader.next())
                    let slot = LimitSlots.Slot(
                        LimitKey(high: high, low: low),
                        version: UInt16(truncatingIfNeeded: high),
                        first: Int64(bitPattern: try reader.next()),
                        second: Int64(bitPattern: try reader.next())
                    )
                    guard slot.latest > now else { continue }
                    if scope.restore(slot, toTable: table, now: now) {
                        saved.buckets += 1
                    } else {
                        saved.leftOut += 1
                    }
                }
            }
        }
        for _ in 0..<(try reader.count(upTo: reader.left)) {
            let tenant = LimitKey(high: try reader.next(), low: try reader.next())
            saved.policies[tenant] = try PolicyHistory(&reader)
        }
        return saved
    }
}

/// Reads a snapshot word by word.
private struct WordReader {
    let bytes: [UInt8]
    var position: Int
    let end: Int

    var left: Int { self.end - self.position }

    mutating func next() throws(MemoryRateLimiter.Damage) -> UInt64 {
        guard self.left >= 8 else { throw .changed }
        let start = self.position
        self.position += 8
        return (0..<8).reduce(0) { $0 | UInt64(self.bytes[start + $1]) << UInt64(8 * $1) }
    }

    mutating func count(upTo bound: Int) throws(MemoryRateLimiter.Damage) -> Int {
        guard let count = Int(exactly: try self.next()), count <= bound else { throw .changed }
        return count
    }
}

extension [UInt8] {
    fileprivate mutating func append(word: UInt64) {
        self.append(addingCapacity: 8) { room in
            for index in 0..<8 { room.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * index))) }
        }
    }
}

extension PolicyHistory {
    /// The tenant's key, the version, and all policies, the oldest first, each with the time until which they were in
    /// force; those that are have none.
    fileprivate func write(to bytes: inout [UInt8], of tenant: LimitKey) {
        bytes.append(word: tenant.high)
        bytes.append(word: tenant.low)
        bytes.append(word: UInt64(self.version))
        bytes.append(word: UInt64(self.former.count))
        for former in self.former {
            bytes.append(word: UInt64(bitPattern: former.until))
            former.policies.write(to: &bytes)
        }
        self.policies.write(to: &bytes)
    }

    fileprivate convenience init(_ reader: inout WordReader) throws(MemoryRateLimiter.Damage) {
        let version = try reader.count(upTo: Int(UInt16.max))
        var former: [Former] = []
        for _ in 0..<(try reader.count(upTo: Self.maxFormer)) {
            let until = Int64(bitPattern: try reader.next())
            former.append(Former(policies: try LimitPolicies(&reader), until: until))
        }
        self.init(try LimitPolicies(&reader), version: UInt16(version), former: former)
    }
}

extension LimitPolicies {
    fileprivate func write(to bytes: inout [UInt8]) {
        for scope in LimitScope.allCases {
            bytes.append(word: UInt64(self[scope].count))
            for policy in self[scope] {
                for number in [policy.rate, policy.periodSeconds, policy.burst] { bytes.append(word: UInt64(number)) }
            }
        }
    }

    fileprivate init(_ reader: inout WordReader) throws(MemoryRateLimiter.Damage) {
        var scopes: [[RatePolicy]] = []
        for _ in LimitScope.allCases {
            var policies: [RatePolicy] = []
            for _ in 0..<(try reader.count(upTo: Self.maxPoliciesPerScope)) {
                let numbers = (try reader.count(upTo: .max), try reader.count(upTo: .max), try reader.count(upTo: .max))
                guard let policy = RatePolicy(rate: numbers.0, periodSeconds: numbers.1, burst: numbers.2) else {
                    throw .changed
                }
                policies.append(policy)
            }
            scopes.append(policies)
        }
        self.init(tenant: scopes[0], device: scopes[1], deviceCollapsible: scopes[2], topic: scopes[3])
    }
}
