/// Buckets by key in one array: each with two arrival times, since most scopes have no more than two policies.
///
/// Open addressing with linear probing. A key is a uniform hash, so scaled to the array's size it is its place; the array
/// is at most three quarters full, so that a bucket is found in a cache line or two. No bucket leaves its place: those
/// that are dropped are left out when the array is made anew.
struct LimitSlots {
    /// A bucket and its key.
    struct Slot {
        /// The key's ``LimitKey/high`` with the version in the lowest 16 bits.
        private var tag: UInt64
        fileprivate let low: UInt64
        /// The arrival times of two policies.
        var first: Int64
        var second: Int64

        fileprivate static let empty = Slot(tag: 0, low: 0, first: 0, second: 0)

        private init(tag: UInt64, low: UInt64, first: Int64, second: Int64) {
            self.tag = tag
            self.low = low
            self.first = first
            self.second = second
        }

        /// A bucket that was charged under a version of its policies.
        init(_ key: LimitKey, version: UInt16, first: Int64, second: Int64) {
            self.init(tag: key.high | UInt64(version), low: key.low, first: first, second: second)
        }

        /// The version of the policies that it was charged under.
        var version: UInt16 {
            get { UInt16(truncatingIfNeeded: self.tag) }
            set { self.tag = self.tag & LimitKey.highMask | UInt64(newValue) }
        }

        /// Whose bucket it is.
        var key: LimitKey { LimitKey(high: self.tag, low: self.low) }
        /// When both policies are whole again.
        var latest: Int64 { max(self.first, self.second) }
        fileprivate var isEmpty: Bool { self.low == 0 }

        fileprivate func belongs(to key: LimitKey) -> Bool {
            self.low == key.low && self.tag & LimitKey.highMask == key.high
        }
    }

    private static let minRoom = 6

    private var slots: [Slot] = []
    /// How many buckets are held.
    private(set) var count = 0

    /// How many buckets fit before the array is made anew.
    private var room: Int { self.slots.count / 4 * 3 }

    /// Where a key's bucket is; `nil` where it has none.
    func index(of key: LimitKey) -> Int? {
        guard self.count > 0 else { return nil }
        let index = self.place(of: key)
        return self.slots[index].isEmpty ? nil : index
    }

    /// The bucket at a place.
    subscript(index: Int) -> Slot {
        get { self.slots[index] }
        set { self.slots[index] = newValue }
    }

    /// Every bucket.
    var all: some Sequence<Slot> { self.slots.lazy.filter { !$0.isEmpty } }

    /// Adds a bucket to a key that has none.
    ///
    /// Where that needs room, buckets that are whole are dropped; where that is not enough, those that are the fullest.
    ///
    /// - Parameters:
    ///   - slot: the bucket.
    ///   - bound: how many buckets there may be.
    ///   - now: the time at which a bucket is whole or not.
    mutating func insert(_ slot: Slot, bound: Int, now: Int64) {
        if self.count >= min(self.room, bound) {
            var oldest = now
            var kept = self.all.reduce(0) { $0 + ($1.latest > oldest ? 1 : 0) }
            if kept >= bound {
                let latest = self.all.map(\.latest).filter { $0 > now }.sorted()
                oldest = latest[latest.count / 2]
                kept = latest.count / 2
            }
            self.rebuild(room: min(bound, max(Self.minRoom, kept + kept / 2)), keeping: { $0.latest > oldest })
        }
        self.put(slot)
    }

    /// Makes room for so many buckets in all.
    mutating func reserve(_ count: Int) {
        if count > self.room { self.rebuild(room: count, keeping: { _ in true }) }
    }

    private mutating func rebuild(room: Int, keeping isKept: (Slot) -> Bool) {
        let former = self
        self.slots = Array(repeating: .empty, count: (room + 2) / 3 * 4)
        self.count = 0
        for slot in former.all where isKept(slot) { self.put(slot) }
    }

    private mutating func put(_ slot: Slot) {
        self.slots[self.place(of: slot.key)] = slot
        self.count += 1
    }

    /// The place of a key's bucket, or else the free one that it would get.
    private func place(of key: LimitKey) -> Int {
        var index = Int(truncatingIfNeeded: key.low.multipliedFullWidth(by: UInt64(self.slots.count)).high)
        while !self.slots[index].isEmpty, !self.slots[index].belongs(to: key) {
            index += 1
            if index == self.slots.count { index = 0 }
        }
        return index
    }
}
