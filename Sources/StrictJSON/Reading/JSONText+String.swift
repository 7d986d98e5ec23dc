extension JSONText {
    /// Makes a string of a node that has escapes, or of any node when speed is no matter.
    ///
    /// - Parameters:
    ///   - node: A string or name.
    ///   - bytes: The text it belongs to.
    /// - Returns: The unescaped string.
    static func string(_ node: JSONNode, in bytes: Span<UInt8>) -> String {
        String(decoding: Self.unescaped(node, in: bytes), as: UTF8.self)
    }

    /// Resolves a string's escapes; what stands between them is copied as a whole.
    ///
    /// - Parameters:
    ///   - node: A string or name.
    ///   - bytes: The text it belongs to.
    /// - Returns: The unescaped UTF-8.
    static func unescaped(_ node: JSONNode, in bytes: Span<UInt8>) -> ContiguousArray<UInt8> {
        var text = JSONText(node)
        var unescaped: ContiguousArray<UInt8> = []
        unescaped.append(addingCapacity: Int(node.extent)) { room in
            while true {
                for position in text.skipPlain(in: bytes) { room.append(bytes[position]) }
                guard let byte = text.next(in: bytes) else { return }
                room.append(byte)
            }
        }
        return unescaped
    }

    /// Counts the bytes of a string without its escapes.
    ///
    /// - Parameters:
    ///   - node: A string or name.
    ///   - bytes: The text it belongs to.
    /// - Returns: The length of the unescaped UTF-8.
    static func byteCount(_ node: JSONNode, in bytes: Span<UInt8>) -> Int {
        var text = JSONText(node)
        var count = 0
        while true {
            count &+= text.skipPlain(in: bytes).count
            guard text.next(in: bytes) != nil else { return count }
            count &+= 1
        }
    }
}
