/// One entry of the tape: a value or a member name, sixteen bytes, trivial to copy.
///
/// The tape holds them in the order of the text: a container, then its contents; a member is its name and then its
/// value.
struct JSONNode {
    /// Where the value starts, as an offset in the text; for strings the first byte inside the quotes.
    let start: UInt32
    /// Bytes for a scalar (strings without their quotes); members or elements for a container.
    var extent: UInt32
    /// The index of the first node after this one and all it contains; the parent's index while a container is open.
    ///
    /// A member's name has its value next to it and needs none: where it ``isLong``, its hash stands here.
    var end: UInt32
    /// What the node is; names are strings.
    let kind: JSONValue.Kind
    /// Whether a string holds escapes; whether a bool is true.
    let flag: Bool

    /// The parent's index for a root that is still open.
    static let noParent = UInt32.max

    /// Whether comparing a name with every other of its object could take long, so that hashes are compared first.
    @inline(__always)
    var isLong: Bool {
        self.flag || self.extent > 32
    }

    /// Creates a scalar's node.
    ///
    /// - Parameters:
    ///   - kind: A kind that has no contents.
    ///   - start: Where its bytes start.
    ///   - end: Where they end.
    ///   - index: The index it will have on the tape.
    ///   - flag: See ``flag``.
    @inline(__always)
    init(scalar kind: JSONValue.Kind, from start: Int, to end: Int, index: Int, flag: Bool = false) {
        self.start = UInt32(truncatingIfNeeded: start)
        self.extent = UInt32(truncatingIfNeeded: end &- start)
        self.end = UInt32(truncatingIfNeeded: index &+ 1)
        self.kind = kind
        self.flag = flag
    }

    /// Creates an open container's node.
    ///
    /// - Parameters:
    ///   - kind: Object or array.
    ///   - start: Where its bracket stands.
    ///   - parent: The index of the container around it, or ``noParent``.
    @inline(__always)
    init(container kind: JSONValue.Kind, at start: Int, parent: UInt32) {
        self.start = UInt32(truncatingIfNeeded: start)
        self.extent = 0
        self.end = parent
        self.kind = kind
        self.flag = false
    }
}
