/// What a bucket belongs to: 14 bytes that a keyed hash made of a tenant's token or topic.
///
/// The tenant is part of what was hashed, so no two tenants share a bucket. The two bytes that are left out hold a
/// bucket's version where it is stored.
package struct LimitKey: Sendable, Hashable {
    /// The bits of ``high`` that belong to the key.
    static let highMask = ~UInt64(UInt16.max)

    /// The first six bytes.
    let high: UInt64
    /// The last eight bytes; never 0, which marks a place without a bucket.
    let low: UInt64

    /// A key that was stored.
    init(high: UInt64, low: UInt64) {
        self.high = high & Self.highMask
        self.low = max(1, low)
    }

    /// The key for a pseudonym.
    package init(_ pseudonym: Pseudonym) {
        self.init(high: pseudonym.high, low: pseudonym.low)
    }

    /// The key of everything that a tenant sends.
    init(tenant: TenantID, _ pseudonymizer: Pseudonymizer) {
        self.init(pseudonymizer.pseudonym(of: tenant.text))
    }

    /// Which of so many parts holds the key; the hash is uniform, so its bits can be used as they are.
    func shard(of count: Int) -> Int {
        Int(truncatingIfNeeded: self.low % UInt64(count))
    }

    /// Hashes by the bits that are uniform already.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.low)
    }
}
