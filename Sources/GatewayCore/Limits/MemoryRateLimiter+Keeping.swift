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
    package struct Kept: Sendable, Hashable {
        /// Buckets that were kept or taken back.
        package var buckets = 0
        /// Buckets beyond the bound, which start full again.
        package var leftOut = 0
    }

    /// More buckets than this are not kept: 128 MiB.
    package static let maxKeptBuckets = 4_000_000
    /// More bytes than kept limits ever have.
    package static let maxKeptBytes = maxKeptBuckets * 32 + 1_024

    /// Names the format and its version.
    private static let magic = Array("fcm-gateway limits 1\n".utf8)
    /// A key of 16 bytes and two arrival times.
    private static let bucketBytes = 32

    /// All quotas that are not whole, as bytes: for each scope's tables a count and that many buckets, with a digest
    /// over everything at the end.
    ///
    /// Whom a bucket belongs to can't be told from it: its key is a keyed hash.
    package func keep(now: Timestamp, upTo maxBuckets: Int = maxKeptBuckets) -> (bytes: [UInt8], kept: Kept) {
        let now = now.microseconds * 1_000
        var kept = Kept()
        var bytes = Self.magic
        bytes.reserveCapacity(Self.magic.count + 96 + min(self.bucketCount, maxBuckets) * Self.bucketBytes)
        for scope in self.scopes {
            for table in 0..<LimitTable.tableCount {
                let start = bytes.count
                bytes.append(word: 0)
                var count: UInt64 = 0
                scope.forEachBucket(ofTable: table, now: now) { bucket in
                    guard kept.buckets < maxBuckets else {
                        kept.leftOut += 1
                        return
                    }
                    bytes.append(word: bucket.key.high)
                    bytes.append(word: bucket.key.low)
                    bytes.append(word: UInt64(bitPattern: bucket.arrivals.0))
                    bytes.append(word: UInt64(bitPattern: bucket.arrivals.1))
                    count += 1
                    kept.buckets += 1
                }
                for index in 0..<8 { bytes[start + index] = UInt8(truncatingIfNeeded: count >> UInt64(8 * index)) }
            }
        }
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
    ///   - bytes: what ``keep(now:upTo:)`` gave.
    ///   - now: the time.
    /// - Returns: how many buckets there are again.
    /// - Throws: ``Damage``; nothing is taken back of bytes that don't have their digest.
    package func restore(_ bytes: [UInt8], now: Timestamp) throws(Damage) -> Kept {
        let digestBytes = 32
        guard bytes.starts(with: Self.magic) else { throw .foreign }
        guard bytes.count >= Self.magic.count + digestBytes,
            Self.digest(of: bytes[..<(bytes.count - digestBytes)]) == Array(bytes[(bytes.count - digestBytes)...])
        else { throw .changed }
        let now = now.microseconds * 1_000
        let end = bytes.count - digestBytes
        var position = Self.magic.count
        var kept = Kept()
        for scope in self.scopes {
            for table in 0..<LimitTable.tableCount {
                guard position + 8 <= end else { throw .changed }
                let count = Int(truncatingIfNeeded: bytes.word(at: position))
                position += 8
                guard count >= 0, count <= (end - position) / Self.bucketBytes else { throw .changed }
                scope.reserve(count, inTable: table)
                for _ in 0..<count {
                    let bucket = LimitTable.Bucket(
                        key: LimitKey(high: bytes.word(at: position), low: bytes.word(at: position + 8)),
                        arrivals: (
                            Int64(bitPattern: bytes.word(at: position + 16)),
                            Int64(bitPattern: bytes.word(at: position + 24))
                        )
                    )
                    position += Self.bucketBytes
                    guard max(bucket.arrivals.0, bucket.arrivals.1) > now else { continue }
                    if scope.restore(bucket, toTable: table) {
                        kept.buckets += 1
                    } else {
                        kept.leftOut += 1
                    }
                }
            }
        }
        return kept
    }
}

extension [UInt8] {
    /// Appends a number's eight bytes, lowest first.
    fileprivate mutating func append(word: UInt64) {
        self.append(addingCapacity: 8) { room in
            for index in 0..<8 { room.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * index))) }
        }
    }

    /// The number whose eight bytes begin at an index, lowest first.
    fileprivate func word(at index: Int) -> UInt64 {
        (0..<8).reduce(0) { $0 | UInt64(self[index + $1]) << UInt64(8 * $1) }
    }
}
