import Crypto

extension MemoryRateLimiter {
    /// Why kept limits can't be taken back.
    package enum Damage: Error, Sendable, Hashable {
        /// They were written by something else, or by another version.
        case foreign
        /// They are not what was written.
        case changed
    }

    /// What came of keeping or taking back.
    package struct Kept: Sendable {
        /// Buckets that were kept or taken back.
        package var buckets = 0
        /// Buckets beyond the bound, which start full again.
        package var leftOut = 0
        /// The policies that taken back buckets were charged under, by tenants' keys.
        package var policies: [LimitKey: PolicyHistory] = [:]

        /// Nothing kept yet.
        package init() {}
    }

    /// More buckets than this are not kept: 128 MiB.
    package static let maxKeptBuckets = 4_000_000
    /// More bytes than kept limits ever have: those of the buckets, and as much again for tenants' policies.
    package static let maxKeptBytes = maxKeptBuckets * bucketBytes * 2

    /// Names the format and its version.
    private static let magic = Array("fcm-gateway limits 2\n".utf8)
    /// A key of 14 bytes, the version of its tenant's policies in two more, and two arrival times.
    private static let bucketBytes = 32

    /// All quotas that are not whole, as bytes: for each scope's tables a count and that many buckets, then the policies
    /// that they were charged under, with a digest over everything at the end.
    ///
    /// Whom a bucket belongs to can't be told from it: its key is a keyed hash.
    ///
    /// - Parameters:
    ///   - policies: the policies of tenants by their keys.
    ///   - now: the time.
    ///   - maxBuckets: how many are kept at most.
    /// - Returns: the bytes, and how many buckets they hold.
    package func keep(
        policies: [LimitKey: PolicyHistory],
        now: Timestamp,
        upTo maxBuckets: Int = maxKeptBuckets
    ) -> (bytes: [UInt8], kept: Kept) {
        let now = now.microseconds * 1_000
        var kept = Kept()
        var bytes = Self.magic
        bytes.reserveCapacity(Self.magic.count + 96 + min(self.bucketCount, maxBuckets) * Self.bucketBytes)
        for scope in self.scopes {
            for table in 0..<LimitTable.tableCount {
                let start = bytes.count
                bytes.append(word: 0)
                var count: UInt64 = 0
                scope.forEachBucket(ofTable: table, now: now) { slot in
                    guard kept.buckets < maxBuckets else {
                        kept.leftOut += 1
                        return
                    }
                    bytes.append(word: slot.key.high | UInt64(slot.version))
                    bytes.append(word: slot.key.low)
                    bytes.append(word: UInt64(bitPattern: slot.first))
                    bytes.append(word: UInt64(bitPattern: slot.second))
                    count += 1
                    kept.buckets += 1
                }
                for index in 0..<8 { bytes[start + index] = UInt8(truncatingIfNeeded: count >> UInt64(8 * index)) }
            }
        }
        bytes.append(word: UInt64(policies.count))
        for (tenant, history) in policies { history.write(to: &bytes, of: tenant) }
        bytes.append(contentsOf: Self.digest(of: bytes[...]))
        return (bytes, kept)
    }

    /// The digest at the end of kept limits, over all that precedes it.
    static func digest(of bytes: ArraySlice<UInt8>) -> [UInt8] {
        SHA256.hash(data: bytes).bytes
    }

    /// Takes back what was kept; quotas that have become whole meanwhile are left out.
    ///
    /// - Parameters:
    ///   - bytes: what ``keep(policies:now:upTo:)`` gave.
    ///   - now: the time.
    /// - Returns: how many buckets there are again, and the policies that they were charged under.
    /// - Throws: ``Damage``; nothing is taken back of bytes that don't have their digest.
    package func restore(_ bytes: [UInt8], now: Timestamp) throws(Damage) -> Kept {
        let digestBytes = 32
        guard bytes.starts(with: Self.magic) else { throw .foreign }
        guard bytes.count >= Self.magic.count + digestBytes,
            Self.digest(of: bytes[..<(bytes.count - digestBytes)]) == Array(bytes[(bytes.count - digestBytes)...])
        else { throw .changed }
        let now = now.microseconds * 1_000
        var reader = WordReader(bytes, from: Self.magic.count, to: bytes.count - digestBytes)
        var kept = Kept()
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
                        kept.buckets += 1
                    } else {
                        kept.leftOut += 1
                    }
                }
            }
        }
        for _ in 0..<(try reader.count(upTo: reader.left)) {
            let tenant = LimitKey(high: try reader.next(), low: try reader.next())
            kept.policies[tenant] = try PolicyHistory(&reader)
        }
        return kept
    }
}

/// Reads kept limits word by word.
private struct WordReader {
    private let bytes: [UInt8]
    private var position: Int
    private let end: Int

    init(_ bytes: [UInt8], from start: Int, to end: Int) {
        self.bytes = bytes
        self.position = start
        self.end = end
    }

    /// How many bytes are left.
    var left: Int { self.end - self.position }

    /// The next eight bytes, lowest first.
    mutating func next() throws(MemoryRateLimiter.Damage) -> UInt64 {
        guard self.left >= 8 else { throw .changed }
        let start = self.position
        self.position += 8
        return (0..<8).reduce(0) { $0 | UInt64(self.bytes[start + $1]) << UInt64(8 * $1) }
    }

    /// A number that is not above a bound.
    mutating func count(upTo bound: Int) throws(MemoryRateLimiter.Damage) -> Int {
        guard let count = Int(exactly: try self.next()), count <= bound else { throw .changed }
        return count
    }
}

extension [UInt8] {
    /// Appends a number's eight bytes, lowest first.
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
