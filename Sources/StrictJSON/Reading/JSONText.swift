/// Reads a string's contents byte by byte, escapes resolved; the scanner has accepted them before.
struct JSONText {
    private var position: Int
    private let end: Int
    /// The rest of an escape's UTF-8, the next byte lowest.
    private var pending: UInt32 = 0
    private var pendingCount = 0

    /// Creates a reader.
    ///
    /// - Parameter node: A string or member name.
    init(_ node: JSONNode) {
        self.position = Int(node.start)
        self.end = Int(node.start) + Int(node.extent)
    }

    /// Reads on.
    ///
    /// - Parameter bytes: The text the node belongs to.
    /// - Returns: The next byte of the unescaped UTF-8; nil at the end.
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

    /// Passes over everything before the next escape.
    ///
    /// - Parameter bytes: The text the node belongs to.
    /// - Returns: The positions passed over; none in the middle of an escape's bytes.
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
