/// Finds duplicate names in large objects: one open-addressed hash table for all of a document.
///
/// The hash is the standard library's, keyed at random per process, so names cannot be chosen to collide.
struct JSONKeyIndex {
    private struct Entry {
        /// The name's node; 0, which is always the root's, marks a free slot.
        var key: UInt32 = 0
        /// The node of the object the name belongs to.
        var object: UInt32 = 0
        var hash = 0
    }

    private var slots: [Entry] = []
    private var used = 0

    /// Adds a name.
    ///
    /// - Parameters:
    ///   - key: The index of the name's node.
    ///   - object: The index of its object's node.
    ///   - nodes: The tape.
    ///   - bytes: The text.
    /// - Returns: Whether the object had no such name before.
    mutating func insert(_ key: Int, of object: Int, nodes: [JSONNode], in bytes: Span<UInt8>) -> Bool {
        var hasher = Hasher()
        hasher.combine(object)
        JSONText.hash(nodes[key], in: bytes, into: &hasher)
        let entry = Entry(
            key: UInt32(truncatingIfNeeded: key),
            object: UInt32(truncatingIfNeeded: object),
            hash: hasher.finalize()
        )
        if (self.used &+ 1) &* 2 > self.slots.count {
            self.grow()
        }
        var slot = entry.hash & (self.slots.count &- 1)
        while self.slots[slot].key != 0 {
            let other = self.slots[slot]
            if other.hash == entry.hash, other.object == entry.object,
                JSONText.areEqual(nodes[Int(other.key)], nodes[key], in: bytes)
            {
                return false
            }
            slot = (slot &+ 1) & (self.slots.count &- 1)
        }
        self.slots[slot] = entry
        self.used &+= 1
        return true
    }

    private mutating func grow() {
        let old = self.slots
        // A power of two, so that masking replaces division.
        self.slots = Array(repeating: Entry(), count: max(64, old.count * 2))
        for entry in old where entry.key != 0 {
            var slot = entry.hash & (self.slots.count &- 1)
            while self.slots[slot].key != 0 {
                slot = (slot &+ 1) & (self.slots.count &- 1)
            }
            self.slots[slot] = entry
        }
    }
}
