import NIOCore

/// The text and the tape that all values of a document share.
///
///     text:  {"a":[1,2]}
///     tape:  0 object, 1 member ─ 1 name "a" ─ 2 array, 2 elements ─ 3 number 1 ─ 4 number 2
///            end: 5               no end       end: 5                end: 4       end: 5
///
/// A class, so that a view of a value costs one reference count.
final class JSONTape: Sendable {
    let bytes: ByteBuffer
    let nodes: [JSONNode]

    init(bytes: ByteBuffer, nodes: [JSONNode]) {
        self.bytes = bytes
        self.nodes = nodes
    }

    func string(at index: Int) -> String {
        let node = self.nodes[index]
        guard node.flag else {
            return self.rawText(of: node)
        }
        let bytes = self.bytes
        return JSONText.string(node, in: bytes.readableBytesUInt8Span)
    }

    func byteCount(at index: Int) -> Int {
        let node = self.nodes[index]
        guard node.flag else { return Int(node.extent) }
        let bytes = self.bytes
        return JSONText.byteCount(node, in: bytes.readableBytesUInt8Span)
    }

    func rawText(of node: JSONNode) -> String {
        // Never nil: the node was made from these bytes.
        self.bytes.getString(at: self.bytes.readerIndex + Int(node.start), length: Int(node.extent)) ?? ""
    }

    func string(at index: Int, equals other: String) -> Bool {
        let bytes = self.bytes
        return JSONText.areEqual(self.nodes[index], other, in: bytes.readableBytesUInt8Span)
    }
}

/// One entry of the tape: a value or a member name. It takes sixteen bytes and is trivial to copy.
///
/// The tape has the order of the text: a container precedes its contents, and a member's name precedes its value.
struct JSONNode {
    /// The start of the value, as an offset in the text. For a string, the first byte inside the quotes.
    let start: UInt32
    /// The number of bytes of a scalar (a string without its quotes), or of members or elements of a container.
    var extent: UInt32
    /// The index of the first node after this one and its contents. While a container is open, its parent's index.
    ///
    /// A member's name needs none, because its value follows it. A name that ``isLong`` stores its hash here.
    var end: UInt32
    /// The kind of the node. Names are strings.
    let kind: JSONValue.Kind
    /// True if a string has escapes, or if a bool is true.
    let flag: Bool

    /// The index that stands for no container: the parent of an open root, or the innermost container if none is open.
    static let noParent = UInt32.max

    /// True if comparing a name with all others of its object could take long. Their hashes are compared first.
    @inline(__always)
    var isLong: Bool {
        self.flag || self.extent > 32
    }

    @inline(__always)
    init(scalar kind: JSONValue.Kind, from start: Int, to end: Int, index: Int, flag: Bool = false) {
        self.start = UInt32(truncatingIfNeeded: start)
        self.extent = UInt32(truncatingIfNeeded: end &- start)
        self.end = UInt32(truncatingIfNeeded: index &+ 1)
        self.kind = kind
        self.flag = flag
    }

    @inline(__always)
    init(container kind: JSONValue.Kind, at start: Int, parent: UInt32) {
        self.start = UInt32(truncatingIfNeeded: start)
        self.extent = 0
        self.end = parent
        self.kind = kind
        self.flag = false
    }
}

/// Reads a text in one pass and writes its values to a tape.
///
/// A loop without recursion: the stack of open containers is in their own nodes, whose `end` is the parent until they
/// close.
struct JSONTapeBuilder: ~Copyable {
    /// Objects up to this size are searched for duplicates name by name, larger ones through the hash table.
    private static let maxScannedMembers = 8

    private(set) var nodes: [JSONNode] = []
    private let limits: JSONLimits
    private var largeObjects = JSONKeyIndex()
    /// The node of the innermost open container.
    private var container = JSONNode.noParent
    private var isInObject = false
    /// The number of items in the innermost container so far. It is stored in the container's node when another
    /// container opens or this one closes.
    private var count = 0
    private var depth = 0
    private var memberCount = 0
    private var elementCount = 0
    private var specialCharacterBudget: Int
    /// True while an element, or a member with a known name, is being read: then errors point to it.
    private var isInsideItem = false

    init(limits: JSONLimits, byteCount: Int) {
        self.limits = limits
        self.specialCharacterBudget = limits.maxSpecialCharacters
        // Messages have a node for about every twelve bytes. A long text may be one long string, so at most 512 nodes
        // are reserved. The tape grows if it needs more.
        self.nodes.reserveCapacity(min(byteCount / 8 + 8, 512))
    }

    mutating func build(_ bytes: Span<UInt8>) throws(JSONFault) {
        var position = JSONByteClass.skipBlanks(bytes, from: 0)
        values: while true {
            // A value must follow, and `position` is at its first byte.
            guard position < bytes.count else { throw Self.endsEarly(bytes) }
            let byte = bytes[position]
            if byte == UInt8(ascii: "\"") {
                position = try self.readString(bytes, at: position)
            } else if byte == UInt8(ascii: "{") {
                try self.open(.object, at: position)
                position = JSONByteClass.skipBlanks(bytes, from: position &+ 1)
                guard position < bytes.count, bytes[position] == UInt8(ascii: "}") else {
                    position = try self.readKey(bytes, at: position)
                    continue values
                }
                self.close()
                position &+= 1
            } else if byte == UInt8(ascii: "[") {
                try self.open(.array, at: position)
                position = JSONByteClass.skipBlanks(bytes, from: position &+ 1)
                guard position < bytes.count, bytes[position] == UInt8(ascii: "]") else {
                    self.isInsideItem = position < bytes.count
                    continue values
                }
                self.close()
                position &+= 1
            } else {
                position = try self.readNumberOrWord(bytes, at: position, startingWith: byte)
            }
            // A value is complete. Closes what ends here, until another value must follow or the text ends.
            while true {
                self.isInsideItem = false
                position = JSONByteClass.skipBlanks(bytes, from: position)
                guard self.container != JSONNode.noParent else {
                    guard position == bytes.count else {
                        throw .malformed(at: position, "nothing may follow the document")
                    }
                    return
                }
                if !self.isInObject {
                    self.count &+= 1
                    self.elementCount &+= 1
                    guard self.elementCount <= self.limits.maxElements else {
                        throw JSONFault(
                            code: .tooManyMembers,
                            offset: position,
                            reason: "the document has too many elements"
                        )
                    }
                }
                guard position < bytes.count else { throw Self.endsEarly(bytes) }
                let byte = bytes[position]
                if byte == UInt8(ascii: ",") {
                    position = JSONByteClass.skipBlanks(bytes, from: position &+ 1)
                    if self.isInObject {
                        position = try self.readKey(bytes, at: position)
                    } else {
                        self.isInsideItem = true
                    }
                    continue values
                }
                guard byte == (self.isInObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                    throw .malformed(at: position, "a comma or the end of the object or array is expected here")
                }
                self.close()
                position &+= 1
            }
        }
    }

    /// Returns a pointer to the value or member being read. Used only for errors, so it may be slow.
    func pointer(in bytes: Span<UInt8>) -> JSONPointer {
        // The open containers, innermost first.
        var open: [Int] = []
        var index = self.container
        while index != JSONNode.noParent {
            open.append(Int(index))
            index = self.nodes[Int(index)].end
        }
        var pointer = JSONPointer()
        for (parent, child) in zip(open.reversed(), open.reversed().dropFirst()) {
            let node = self.nodes[parent]
            pointer =
                node.kind == .object
                ? pointer.appending(JSONText.string(self.nodes[child - 1], in: bytes))
                : pointer.appending(Int(node.extent))
        }
        guard self.isInsideItem else { return pointer }
        guard self.isInObject else { return pointer.appending(self.count) }
        return pointer.appending(JSONText.string(self.nodes[self.nodes.count - 1], in: bytes))
    }

    private static func endsEarly(_ bytes: Span<UInt8>) -> JSONFault {
        .malformed(at: bytes.count, "the text ends too early")
    }

    @inline(__always)
    private mutating func readString(_ bytes: Span<UInt8>, at position: Int) throws(JSONFault) -> Int {
        let start = position &+ 1
        let (end, hasEscapes) = try JSONScanner.string(bytes, from: start, budget: &self.specialCharacterBudget)
        self.nodes.append(JSONNode(scalar: .string, from: start, to: end, index: self.nodes.count, flag: hasEscapes))
        return end &+ 1
    }

    private mutating func readNumberOrWord(
        _ bytes: Span<UInt8>,
        at position: Int,
        startingWith byte: UInt8
    ) throws(JSONFault) -> Int {
        let kind: JSONValue.Kind
        let end: Int
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            kind = .number
            end = try JSONScanner.number(bytes, from: position)
            guard end &- position <= self.limits.maxNumberBytes else {
                throw .malformed(at: position, "a number is too long")
            }
        case UInt8(ascii: "t"):
            kind = .bool
            end = try Self.skip("true", bytes, at: position)
        case UInt8(ascii: "f"):
            kind = .bool
            end = try Self.skip("false", bytes, at: position)
        case UInt8(ascii: "n"):
            kind = .null
            end = try Self.skip("null", bytes, at: position)
        case UInt8(ascii: "'"):
            throw .malformed(at: position, "a string must be in double quotes")
        default:
            throw .malformed(at: position, "a value is expected here")
        }
        let isTrue = byte == UInt8(ascii: "t")
        self.nodes.append(JSONNode(scalar: kind, from: position, to: end, index: self.nodes.count, flag: isTrue))
        return end
    }

    private static func skip(_ word: String, _ bytes: Span<UInt8>, at start: Int) throws(JSONFault) -> Int {
        var position = start
        for byte in word.utf8 {
            guard position < bytes.count, bytes[position] == byte else {
                throw .malformed(at: position, "a value is expected here")
            }
            position &+= 1
        }
        return position
    }

    private mutating func open(_ kind: JSONValue.Kind, at position: Int) throws(JSONFault) {
        guard self.depth < self.limits.maxDepth else {
            throw JSONFault(code: .tooDeep, offset: position, reason: "objects and arrays are nested too deeply")
        }
        self.depth &+= 1
        if self.container != JSONNode.noParent {
            self.nodes[Int(self.container)].extent = UInt32(truncatingIfNeeded: self.count)
        }
        let index = UInt32(truncatingIfNeeded: self.nodes.count)
        self.nodes.append(JSONNode(container: kind, at: position, parent: self.container))
        self.container = index
        self.isInObject = kind == .object
        self.isInsideItem = false
        self.count = 0
    }

    private mutating func close() {
        let index = Int(self.container)
        let parent = self.nodes[index].end
        self.nodes[index].end = UInt32(truncatingIfNeeded: self.nodes.count)
        self.nodes[index].extent = UInt32(truncatingIfNeeded: self.count)
        self.depth &-= 1
        self.container = parent
        guard parent != JSONNode.noParent else { return }
        self.isInObject = self.nodes[Int(parent)].kind == .object
        self.count = Int(self.nodes[Int(parent)].extent)
    }

    /// Reads a member's name and its colon. Returns the start of the member's value.
    private mutating func readKey(_ bytes: Span<UInt8>, at position: Int) throws(JSONFault) -> Int {
        guard position < bytes.count else { throw Self.endsEarly(bytes) }
        guard bytes[position] == UInt8(ascii: "\"") else {
            throw .malformed(at: position, "a member's name in double quotes is expected here")
        }
        let end = try self.readString(bytes, at: position)
        self.count &+= 1
        self.memberCount &+= 1
        self.isInsideItem = true
        guard self.memberCount <= self.limits.maxMembers else {
            throw JSONFault(code: .tooManyMembers, offset: position, reason: "the document has too many members")
        }
        let key = self.nodes.count &- 1
        if self.nodes[key].isLong {
            self.nodes[key].end = JSONText.hash(self.nodes[key], in: bytes)
        }
        guard self.isNew(key, in: bytes) else {
            throw JSONFault(code: .duplicateKey, offset: position, reason: "the object has a member of this name")
        }
        let colon = JSONByteClass.skipBlanks(bytes, from: end)
        guard colon < bytes.count else { throw Self.endsEarly(bytes) }
        guard bytes[colon] == UInt8(ascii: ":") else {
            throw .malformed(at: colon, "a colon is expected here")
        }
        return JSONByteClass.skipBlanks(bytes, from: colon &+ 1)
    }

    /// Returns true if the innermost object has no other member with the name that was just added.
    @inline(__always)
    private mutating func isNew(_ key: Int, in bytes: Span<UInt8>) -> Bool {
        guard self.count <= Self.maxScannedMembers else {
            return self.isNewInLargeObject(key, in: bytes)
        }
        let name = self.nodes[key]
        var other = Int(self.container) &+ 1
        while other < key {
            let node = self.nodes[other]
            let mayBeEqual = !name.isLong || !node.isLong || name.end == node.end
            if mayBeEqual, JSONText.areEqual(node, name, in: bytes) {
                return false
            }
            other = Int(self.nodes[other &+ 1].end)
        }
        return true
    }

    private mutating func isNewInLargeObject(_ key: Int, in bytes: Span<UInt8>) -> Bool {
        let object = Int(self.container)
        if self.count == Self.maxScannedMembers + 1 {
            // The object has just become large. Its earlier names, which are known to differ, enter the table first.
            var other = object &+ 1
            while other < key {
                _ = self.largeObjects.insert(other, of: object, nodes: self.nodes, in: bytes)
                other = Int(self.nodes[other &+ 1].end)
            }
        }
        return self.largeObjects.insert(key, of: object, nodes: self.nodes, in: bytes)
    }
}

/// Finds duplicate names in large objects with one open-addressed hash table for the whole document.
///
/// The hash is the standard library's, keyed at random per process, so names can't be chosen to collide.
struct JSONKeyIndex {
    private struct Entry {
        /// The name's node. 0, which is always the root's, marks a free slot.
        var key: UInt32 = 0
        /// The node of the name's object.
        var object: UInt32 = 0
        var hash = 0
    }

    private var slots: [Entry] = []
    private var used = 0

    /// Returns true if the object had no such name before.
    mutating func insert(_ key: Int, of object: Int, nodes: [JSONNode], in bytes: Span<UInt8>) -> Bool {
        let name = nodes[key]
        let nameHash = name.isLong ? name.end : JSONText.hash(name, in: bytes)
        let entry = Entry(
            key: UInt32(truncatingIfNeeded: key),
            object: UInt32(truncatingIfNeeded: object),
            // Spreads the same name in many objects over the slots. A fixed factor is enough, because the sender of a
            // text can choose the names, but hardly the objects' indices.
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
