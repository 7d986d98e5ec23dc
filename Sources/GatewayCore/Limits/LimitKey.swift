/// What a bucket belongs to: 16 bytes that a keyed hash made of a tenant's token or topic.
///
/// The tenant is part of what was hashed, so no two tenants share a bucket.
package struct LimitKey: Sendable, Hashable {
    let high: UInt64
    let low: UInt64

    /// A key that was stored.
    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The key for a pseudonym.
    package init(_ pseudonym: Pseudonym) {
        self.high = pseudonym.high
        self.low = pseudonym.low
    }

    /// Which of so many parts holds the key; the hash is uniform, so its bits can be used as they are.
    func shard(of count: Int) -> Int {
        Int(truncatingIfNeeded: self.high % UInt64(count))
    }

    /// Hashes by the bits that are uniform already.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.low)
    }
}
