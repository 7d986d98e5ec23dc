/// What stands for a token or topic wherever the thing itself must not appear: the first 16 bytes of a keyed hash.
package struct Pseudonym: Sendable, Hashable, CustomStringConvertible {
    /// The length in bytes.
    package static let byteCount = 16

    /// The first eight bytes, big-endian.
    package let high: UInt64
    /// The last eight bytes, big-endian.
    package let low: UInt64

    /// Takes the first ``byteCount`` bytes; missing ones count as zero.
    package init(bytes: some Sequence<UInt8>) {
        var iterator = bytes.makeIterator()
        func word() -> UInt64 {
            (0..<8).reduce(0) { word, _ in word << 8 | UInt64(iterator.next() ?? 0) }
        }
        self.high = word()
        self.low = word()
    }

    /// Appends the ``byteCount`` bytes.
    package func append(to bytes: inout [UInt8]) {
        for word in [self.high, self.low] {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
            }
        }
    }

    /// The bytes as 32 hexadecimal digits.
    package var description: String {
        var bytes: [UInt8] = []
        self.append(to: &bytes)
        return Hex.text(bytes)
    }
}
