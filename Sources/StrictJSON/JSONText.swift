package import NIOCore

/// Reads a string's contents byte by byte, with escapes resolved. The scanner has validated them.
struct JSONText {
    private var position: Int
    private let end: Int
    /// The rest of an escape's UTF-8, the next byte lowest.
    private var pending: UInt32 = 0
    private var pendingCount = 0

    init(_ node: JSONNode) {
        self.position = Int(node.start)
        self.end = Int(node.start) + Int(node.extent)
    }

    /// Returns the next byte of the unescaped UTF-8; nil at the end.
    @inline(__always)
    mutating func next(in bytes: Span<UInt8>) -> UInt8? {
        if self.pendingCount == 0 {
            guard self.position < self.end else { return nil }
            let byte = bytes[self.position]
            guard byte == UInt8(ascii: "\\") else {
                self.position &+= 1
                return byte
            }
            if let byte = JSONEscape.meaning(of: bytes[self.position &+ 1]) {
                self.position &+= 2
                return byte
            }
            self.resolveUnicodeEscape(in: bytes)
        }
        let byte = UInt8(truncatingIfNeeded: self.pending)
        self.pending &>>= 8
        self.pendingCount &-= 1
        return byte
    }

    /// Skips everything before the next escape.
    ///
    /// Returns the skipped positions. The range is empty in the middle of an escape's bytes.
    mutating func skipPlain(in bytes: Span<UInt8>) -> Range<Int> {
        let start = self.position
        guard self.pendingCount == 0 else { return start..<start }
        while self.position &+ 8 <= self.end {
            let backslashes = JSONByteClass.backslashes(in: bytes.word(at: self.position))
            guard backslashes == 0 else {
                self.position &+= backslashes.trailingZeroBitCount / 8
                return start..<self.position
            }
            self.position &+= 8
        }
        while self.position < self.end, bytes[self.position] != UInt8(ascii: "\\") { self.position &+= 1 }
        return start..<self.position
    }

    private mutating func resolveUnicodeEscape(in bytes: Span<UInt8>) {
        var scalar = JSONEscape.unit(in: bytes, at: self.position &+ 2) ?? 0
        self.position &+= 6
        if scalar >= 0xD800, scalar < 0xDC00, let low = JSONEscape.lowSurrogate(in: bytes, at: self.position) {
            self.position &+= 6
            scalar = 0x1_0000 &+ (scalar &- 0xD800) &<< 10 &+ (low &- 0xDC00)
        }
        self.encode(scalar)
    }

    private mutating func encode(_ scalar: UInt32) {
        let last = 0x80 | scalar & 0x3F
        switch scalar {
        case 0..<0x80:
            self.pending = scalar
            self.pendingCount = 1
        case 0x80..<0x800:
            self.pending = 0xC0 | scalar &>> 6 | last &<< 8
            self.pendingCount = 2
        case 0x800..<0x1_0000:
            self.pending = 0xE0 | scalar &>> 12 | (0x80 | scalar &>> 6 & 0x3F) &<< 8 | last &<< 16
            self.pendingCount = 3
        default:
            self.pending =
                0xF0 | scalar &>> 18 | (0x80 | scalar &>> 12 & 0x3F) &<< 8 | (0x80 | scalar &>> 6 & 0x3F) &<< 16
                | last &<< 24
            self.pendingCount = 4
        }
    }
}

extension JSONText {
    /// Compares two strings of one text after unescaping, without Unicode normalisation.
    @inline(__always)
    static func areEqual(_ first: JSONNode, _ second: JSONNode, in bytes: Span<UInt8>) -> Bool {
        guard first.flag || second.flag else {
            // There is nothing to unescape, and the lengths nearly always decide.
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
    @inline(__always)
    static func areEqual(_ node: JSONNode, _ other: String, in bytes: Span<UInt8>) -> Bool {
        guard node.flag else {
            return Int(node.extent) == other.utf8.count && Self.hasBytes(node, of: other, in: bytes)
        }
        return Self.isEqualUnescaped(node, other, in: bytes)
    }

    private static func hasBytes(_ node: JSONNode, of other: String, in bytes: Span<UInt8>) -> Bool {
        let start = Int(node.start)
        let name = other.utf8.span
        for index in name.indices {
            guard name[index] == bytes[start &+ index] else { return false }
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

    /// Hashes a string after unescaping, so that strings that `areEqual` finds equal have equal hashes.
    ///
    /// The hash is the standard library's, keyed at random per process: names can't be chosen to collide.
    static func hash(_ node: JSONNode, in bytes: Span<UInt8>) -> UInt32 {
        if node.flag {
            let name = Self.unescaped(node, in: bytes)
            return Self.hash(name.span)
        }
        return Self.hash(bytes.extracting(Int(node.start)..<Int(node.start) + Int(node.extent)))
    }

    private static func hash(_ name: Span<UInt8>) -> UInt32 {
        var hasher = Hasher()
        // Unsafe: the bytes are read while the span lives. Hashing word by word takes twice as long.
        unsafe name.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return UInt32(truncatingIfNeeded: hasher.finalize())
    }
}

extension JSONText {
    /// Makes a string of a node with escapes, or of any node if speed does not matter.
    static func string(_ node: JSONNode, in bytes: Span<UInt8>) -> String {
        String(decoding: Self.unescaped(node, in: bytes), as: UTF8.self)
    }

    /// Resolves a string's escapes. Plain text between them is copied as a whole.
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

/// Writes string contents with the escapes they need, and no others.
enum JSONStringEncoder {
    /// Writes a string without its quotes. Hardly any string needs an escape, so the string is checked and then copied.
    static func write(_ value: String, to bytes: inout UniqueBytes) {
        value.withUTF8Span { span in
            guard Self.needsEscape(span) else { return bytes.append(span) }
            for index in span.indices {
                if JSONByteClass.needsEscape(span[index]) {
                    Self.appendEscape(of: span[index], to: &bytes)
                } else {
                    bytes.append(span[index])
                }
            }
        }
    }

    fileprivate static func escaped(_ value: String) -> ByteBuffer {
        var bytes = UniqueBytes(reservingCapacity: value.utf8.count + 16)
        Self.write(value, to: &bytes)
        return bytes.buffer
    }

    static func needsEscape(_ span: Span<UInt8>) -> Bool {
        let lastWord = span.count &- 8
        var position = 0
        while position >= 0, position <= lastWord {
            guard !JSONByteClass.needsEscape(in: span.word(at: position)) else { return true }
            position &+= 8
        }
        // The remaining bytes are the end of the last word, if there is one.
        if position < span.count, lastWord >= 0 {
            return JSONByteClass.needsEscape(in: span.word(at: lastWord))
        }
        while position < span.count {
            guard !JSONByteClass.needsEscape(span[position]) else { return true }
            position &+= 1
        }
        return false
    }

    /// The number of bytes that ``write(_:to:)`` writes.
    static func byteCount(of value: String) -> Int {
        var count = value.utf8.count
        for byte in value.utf8 where JSONByteClass.needsEscape(byte) {
            switch byte {
            case 0x08, 0x09, 0x0A, 0x0C, 0x0D, UInt8(ascii: "\""), UInt8(ascii: "\\"): count &+= 1
            default: count &+= 5
            }
        }
        return count
    }

    private static func appendEscape(of byte: UInt8, to bytes: inout UniqueBytes) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0..<0x20:
            let low = byte & 0x0F
            bytes.append("u00")
            bytes.append(byte < 0x10 ? UInt8(ascii: "0") : UInt8(ascii: "1"))
            bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        default: bytes.append(byte)
        }
    }
}

extension ByteBuffer {
    /// Writes a text as a JSON string, with its quotes.
    package mutating func writeJSONString(_ text: String) {
        self.writeInteger(UInt8(ascii: "\""))
        if JSONStringEncoder.needsEscape(text.utf8.span) {
            self.writeImmutableBuffer(JSONStringEncoder.escaped(text))
        } else {
            self.writeString(text)
        }
        self.writeInteger(UInt8(ascii: "\""))
    }
}
