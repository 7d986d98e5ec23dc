import NIOCore

/// What all values of a document share: the text and its tape.
///
/// A class, so that a view of a value costs one reference count.
final class JSONTape: Sendable {
    /// The text: the readable bytes.
    let bytes: ByteBuffer
    /// The tape; the root is the first node.
    let nodes: [JSONNode]

    /// Creates a tape.
    ///
    /// - Parameters:
    ///   - bytes: The text.
    ///   - nodes: Its nodes, all closed.
    init(bytes: ByteBuffer, nodes: [JSONNode]) {
        self.bytes = bytes
        self.nodes = nodes
    }

    /// Makes a string of a string's or name's node.
    ///
    /// - Parameter index: The node.
    /// - Returns: The unescaped string.
    func string(at index: Int) -> String {
        let node = self.nodes[index]
        guard node.flag else {
            return self.rawText(of: node)
        }
        let bytes = self.bytes
        return JSONText.string(node, in: bytes.readableBytesUInt8Span)
    }

    /// Counts the bytes of a string's or name's node.
    ///
    /// - Parameter index: The node.
    /// - Returns: The length of the unescaped string in UTF-8.
    func byteCount(at index: Int) -> Int {
        let node = self.nodes[index]
        guard node.flag else { return Int(node.extent) }
        let bytes = self.bytes
        return JSONText.byteCount(node, in: bytes.readableBytesUInt8Span)
    }

    /// Makes a string of a node's bytes as they stand in the text.
    ///
    /// - Parameter node: A scalar's node.
    /// - Returns: The bytes; for strings those inside the quotes.
    func rawText(of node: JSONNode) -> String {
        // Never nil: the node was made from these bytes.
        self.bytes.getString(at: self.bytes.readerIndex + Int(node.start), length: Int(node.extent)) ?? ""
    }

    /// Compares a string or name with another string in place.
    ///
    /// - Parameters:
    ///   - index: The node of a string or name.
    ///   - other: What to compare with.
    /// - Returns: Whether both have the same bytes after unescaping.
    func string(at index: Int, equals other: String) -> Bool {
        let bytes = self.bytes
        return JSONText.areEqual(self.nodes[index], other, in: bytes.readableBytesUInt8Span)
    }
}
