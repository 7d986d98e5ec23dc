extension JSONText {
    /// Makes a string of a node that has escapes, or of any node when speed is no matter.
    ///
    /// - Parameters:
    ///   - node: A string or name.
    ///   - bytes: The text it belongs to.
    /// - Returns: The unescaped string.
    static func string(_ node: JSONNode, in bytes: Span<UInt8>) -> String {
        var text = JSONText(node)
        var unescaped: ContiguousArray<UInt8> = []
        unescaped.append(addingCapacity: Int(node.extent)) { room in
            while let byte = text.next(in: bytes) {
                room.append(byte)
            }
        }
        return String(decoding: unescaped, as: UTF8.self)
    }
}
