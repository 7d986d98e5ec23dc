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
        let name = nodes[key]
        let nameHash = name.isLong ? name.end : JSONText.hash(name, in: bytes)
        let entry = Entry(
            key: UInt32(truncatingIfNeeded: key),
            object: UInt32(truncatingIfNeeded: object),
            // Spreads the same name in many objects; names alone are what callers choose.
            hash: Int(nameHash) ^ object &* 0x9E37_79B9
        )
        if (self.used &+ 1) &* 2 > self.slots.count {
            self.grow()
        }
        var slot = entry.hash & (self.slots.count &- 1)
        while self.slots[slot].key != 0 {
            let other = self.slots[slot]
            if other.hash == entry.hash, other.object == entry.object,
                JSONText.areEqual(nodes[Int(other.key)], name, in: bytes)
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
