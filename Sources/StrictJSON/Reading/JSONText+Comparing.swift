extension JSONText {
    /// Compares two strings of one text after unescaping, without Unicode normalisation.
    ///
    /// - Parameters:
    ///   - first: A string or name.
    ///   - second: Another one.
    ///   - bytes: The text both belong to.
    /// - Returns: Whether they have the same bytes.
    @inline(__always)
    static func areEqual(_ first: JSONNode, _ second: JSONNode, in bytes: Span<UInt8>) -> Bool {
        guard first.flag || second.flag else {
            // Nothing to unescape: nearly always the lengths decide.
            return first.extent == second.extent && Self.haveEqualBytes(first, second, in: bytes)
        }
        return Self.areEqualUnescaped(first, second, in: bytes)
    }

    private static func haveEqualBytes(_ first: JSONNode, _ second: JSONNode, in bytes: Span<UInt8>) -> Bool {
        let count = Int(first.extent)
        let firstStart = Int(first.start)
        let secondStart = Int(second.start)
        var offset = 0
        while offset < count {
            guard bytes[firstStart &+ offset] == bytes[secondStart &+ offset] else { return false }
            offset &+= 1
        }
        return true
    }

    private static func areEqualUnescaped(_ first: JSONNode, _ second: JSONNode, in bytes: Span<UInt8>) -> Bool {
        var left = JSONText(first)
        var right = JSONText(second)
        while let byte = left.next(in: bytes) {
            guard byte == right.next(in: bytes) else { return false }
        }
        return right.next(in: bytes) == nil
    }

    /// Compares a string of a text with another string, without Unicode normalisation.
    ///
    /// - Parameters:
    ///   - node: A string or name.
    ///   - other: The string to compare with.
    ///   - bytes: The text the node belongs to.
    /// - Returns: Whether they have the same bytes after unescaping.
    @inline(__always)
    static func areEqual(_ node: JSONNode, _ other: String, in bytes: Span<UInt8>) -> Bool {
        guard node.flag else {
            return Int(node.extent) == other.utf8.count && Self.hasBytes(node, of: other, in: bytes)
        }
        return Self.isEqualUnescaped(node, other, in: bytes)
    }

    private static func hasBytes(_ node: JSONNode, of other: String, in bytes: Span<UInt8>) -> Bool {
        var position = Int(node.start)
        for byte in other.utf8 {
            guard byte == bytes[position] else { return false }
            position &+= 1
        }
        return true
    }

    private static func isEqualUnescaped(_ node: JSONNode, _ other: String, in bytes: Span<UInt8>) -> Bool {
        var text = JSONText(node)
        for byte in other.utf8 {
            guard byte == text.next(in: bytes) else { return false }
        }
        return text.next(in: bytes) == nil
    }

    /// Hashes a string after unescaping, so that strings `areEqual` finds equal hash alike.
    ///
    /// The hash is the standard library's, keyed at random per process: nobody can choose names that collide.
    ///
    /// - Parameters:
    ///   - node: A string or name.
    ///   - bytes: The text it belongs to.
    /// - Returns: The hash.
    static func hash(_ node: JSONNode, in bytes: Span<UInt8>) -> UInt32 {
        if node.flag {
            let name = Self.unescaped(node, in: bytes)
            return Self.hash(name.span)
        }
        return Self.hash(bytes.extracting(Int(node.start)..<Int(node.start) + Int(node.extent)))
    }

    private static func hash(_ name: Span<UInt8>) -> UInt32 {
        var hasher = Hasher()
        // Unsafe: the bytes are read while the span lives. Word by word, hashing takes twice as long.
        unsafe name.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return UInt32(truncatingIfNeeded: hasher.finalize())
    }
}
